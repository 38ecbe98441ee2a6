"""The parameters that operations of this server share, described once for tools, verbs and the reference.

Descriptions are terse and bounds are checked without being published: a model reads all of it at every start.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field, WithJsonSchema

from agentstead.workspace.checks import CheckCommand
from agentstead.workspace.editing import FileEdit

# `from` is a word of the language: the parameter is from_, and callers say from.
FROM_NAMES = AliasChoices("from", "from_")


def within(least: int, most: int) -> AfterValidator:
    """Return the check that a number lies between two bounds, both included."""

    def check(value: int) -> int:
        if not least <= value <= most:
            raise ValueError(f"must be between {least} and {most}")
        return value

    return AfterValidator(check)


def at_most(most: int) -> AfterValidator:
    """Return the check that a text or list is no longer than a bound."""

    def check(value: Any) -> Any:
        if len(value) > most:
            raise ValueError(f"must have at most {most} entries or characters")
        return value

    return AfterValidator(check)


def begins_with(prefix: str) -> AfterValidator:
    """Return the check that a text is an id of one kind."""
    return AfterValidator(_check_prefix(prefix))


def _check_prefix(prefix: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not value.startswith(prefix):
            raise ValueError(f"must be an id that begins with {prefix}")
        return value

    return check


_OBJECT = WithJsonSchema({"type": "object"})
Names = Annotated[list[str], WithJsonSchema({"type": "array"})]

Workspace = Annotated[str | None, Field(description="Id, name or path.")]
ForkId = Annotated[str, Field(description="frk_"), begins_with("frk_")]
PlaceName = Annotated[str, Field(description="Or a fork.")]
Paths = Annotated[Names, Field(description="Only these."), at_most(200)]
DryRun = Annotated[bool, Field(description="Only plan.")]
PlanDigest = Annotated[str | None, Field(description="Of the plan to apply.")]
Limit = Annotated[int, Field(description="Rows."), within(1, 200)]
Cursor = Annotated[str | None, Field(description="next_cursor.")]
SessionId = Annotated[str | None, Field(description="ses_")]
ExpectedVersion = Annotated[int | None, Field(description="Refuse if it is at another version.")]
Command = Annotated[CheckCommand, _OBJECT]
Files = Annotated[list[FileEdit], WithJsonSchema({"type": "array"}), at_most(200)]
