"""Parameters that several tools share. Ranges and nested shapes are checked in full; the list shows a type alone."""

from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

INTEGER: Final = WithJsonSchema({"type": "integer"})
NUMBER: Final = WithJsonSchema({"type": "number"})
LIST: Final = WithJsonSchema({"type": "array"})
OBJECT: Final = WithJsonSchema({"type": "object"})

Channel = Annotated[str, Field(description="Name.", max_length=64)]
SomeChannel = Annotated[str | None, Field(description="Only it.", max_length=64)]
OwnPeer = Annotated[str | None, Field(description="Yours, of several.", max_length=128)]
PeerId = Annotated[str, Field(max_length=128)]
MessageId = Annotated[str, Field(max_length=256)]
Workspace = Annotated[str | None, Field(description="Id, name or path.", max_length=4096)]
Cursor = Annotated[str | None, Field(description="next_cursor.", max_length=2000)]
Limit = Annotated[int, INTEGER, Field(description="A page.", ge=1, le=100)]
Artifacts = Annotated[list[dict[str, Any]] | None, LIST, Field(description="[{type, uri}]", max_length=32)]
