"""Fields of an operation become arguments and options, and what is typed becomes the operation's arguments."""

import io
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import BaseModel, Field

from agentstead.cli.fields import CommandField, command_fields, typed_arguments, typed_item
from agentstead.kit import Call, Operation, Result, operation, operation_of
from agentstead.state import Invalid

TaskId = NewType("TaskId", str)


class Block(BaseModel):
    kind: str
    reason: str = ""


class Done(Result):
    ok: bool = True


@operation("probe_every", action="probe.every", risk="write", title="Every kind of field")
async def probe_every(
    call: Call,
    *,
    ref: Annotated[str, Field(description="What is meant.")],
    words: Annotated[list[str], Field(description="Some words.")],
    text: Annotated[str | None, Field(description="A text.")] = None,
    limit: Annotated[int, Field(description="How many.", ge=1, le=100)] = 20,
    share: Annotated[float | None, Field(description="How much.")] = None,
    reuse: Annotated[bool, Field(description="Go on.")] = True,
    detail: Annotated[Literal["brief", "full"], Field(description="How much recap.")] = "brief",
    kinds: Annotated[tuple[Literal["a", "b"], ...], Field(description="Which kinds.")] = (),
    tags: Annotated[list[str], Field(description="Labels.")] = [],  # noqa: B006 - as operations declare it
    task: Annotated[TaskId | None, Field(description="A task.")] = None,
    block: Annotated[Block | None, Field(description="What blocks.")] = None,
    either: Annotated[str | int | None, Field(description="One of two.")] = None,
    facts: Annotated[dict[str, str], Field(description="Facts.")] = {},  # noqa: B006
) -> Done:
    """Take one field of every kind."""
    return Done()


EVERY: Operation = operation_of(probe_every)


@pytest.fixture
def fields() -> list[CommandField]:
    return command_fields(EVERY)


def info_of(fields: list[CommandField], name: str) -> Any:
    annotation = next(field.parameter.annotation for field in fields if field.name == name)
    return annotation.__metadata__[0]


def test_required_fields_are_arguments_and_the_others_options(fields: list[CommandField]) -> None:
    kinds = {field.name: type(info_of(fields, field.name)).__name__ for field in fields}
    assert [name for name, kind in kinds.items() if kind == "ArgumentInfo"] == ["ref", "words"]
    assert [name for name, kind in kinds.items() if kind == "OptionInfo"] == [
        *["text", "limit", "share", "reuse", "detail", "kinds", "tags", "task", "block", "either", "facts"],
        "idempotency_key",
    ]


def test_descriptions_are_the_help_and_defaults_are_named(fields: list[CommandField]) -> None:
    assert info_of(fields, "ref").help == "What is meant."
    assert info_of(fields, "limit").help == "How many. [default: 20]"
    assert info_of(fields, "reuse").help == "Go on. [default: true]"
    assert info_of(fields, "text").help == "A text."


def test_closed_sets_are_shown_and_completed(fields: list[CommandField]) -> None:
    assert info_of(fields, "detail").metavar == "brief|full"
    assert info_of(fields, "detail").autocompletion("f") == ["full"]
    assert info_of(fields, "kinds").metavar == "a|b"


def test_what_is_no_plain_value_is_read_as_json(fields: list[CommandField], tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text('{"b": "2"}')
    given = {"block": '{"kind": "x"}', "either": "3", "facts": f"@{path}"}
    assert typed_arguments(fields, given) == {"block": {"kind": "x"}, "either": 3, "facts": {"b": "2"}}


def test_json_can_come_from_standard_input(fields: list[CommandField], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"a": "1"}'))
    assert typed_arguments(fields, {"facts": "@-"}) == {"facts": {"a": "1"}}


@pytest.mark.parametrize(
    ("text", "what"),
    [("{", "what was typed is not JSON"), ("@/absent/file", "/absent/file cannot be read: No such file")],
)
def test_what_cannot_be_read_as_json_is_a_usage_error(fields: list[CommandField], text: str, what: str) -> None:
    with pytest.raises(Invalid, match=what) as refused:
        typed_arguments(fields, {"facts": text})
    assert refused.value.code == "tool.invalid_arguments"


def test_a_file_that_is_no_text_is_a_usage_error(fields: list[CommandField], tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Invalid, match="it is not UTF-8 text"):
        typed_arguments(fields, {"facts": f"@{path}"})


def test_what_was_not_typed_is_left_to_the_operation(fields: list[CommandField]) -> None:
    assert typed_arguments(fields, {"ref": "x", "text": None, "tags": [], "limit": None}) == {"ref": "x"}
    assert typed_arguments(fields, {"ref": "x", "reuse": False, "limit": 0}) == {"ref": "x", "reuse": False, "limit": 0}


def test_fields_that_a_path_stands_for_are_not_asked_and_leading_ones_are_arguments() -> None:
    fields = command_fields(EVERY, fixed=("words", "detail"), leading=("text",))
    names = [field.name for field in fields]
    assert names[:2] == ["text", "ref"]
    assert "words" not in names
    assert "detail" not in names
    assert type(info_of(fields, "text")).__name__ == "ArgumentInfo"
    assert fields[0].parameter.default is None


def test_a_required_list_takes_the_rest_of_the_line_only_as_the_last_argument() -> None:
    first = command_fields(EVERY, leading=("words", "ref"))
    assert type(info_of(first, "words")).__name__ == "OptionInfo"
    last = command_fields(EVERY)
    assert info_of(last, "words").metavar == "WORDS"


class Piece(BaseModel):
    title: str = Field(description="What to do.")
    after: list[str] = Field(default=[], description="What comes before.")


@operation("probe_pieces", action="probe.pieces", risk="write", title="A list of objects")
async def probe_pieces(
    call: Call,
    *,
    pieces: Annotated[list[Piece], Field(description="The pieces.", min_length=1)],
    place: Annotated[str | None, Field(description="Where.")] = None,
) -> Done:
    """Take a list of objects."""
    return Done()


@operation("probe_clash", action="probe.clash", risk="read", title="Twice the same name")
async def probe_clash(
    call: Call,
    *,
    pieces: Annotated[list[Piece], Field(description="The pieces.")],
    title: Annotated[str, Field(description="Of all.")],
) -> Done:
    """Take a list of objects that have a field of the same name."""
    return Done()


def test_the_fields_of_one_object_stand_in_the_place_of_a_list_of_them() -> None:
    fields = command_fields(operation_of(probe_pieces), item="pieces")
    assert [field.name for field in fields] == ["title", "after", "place", "idempotency_key"]
    assert info_of(fields, "title").help == "What to do."
    typed = typed_arguments(fields, {"title": "T", "after": ["a"], "place": "P"})
    assert typed_item(operation_of(probe_pieces), "pieces", fields, typed) == {
        "place": "P",
        "pieces": [{"title": "T", "after": ["a"]}],
    }


def test_only_some_fields_of_the_object_are_asked_and_fixed_ones_go_into_it() -> None:
    fields = command_fields(operation_of(probe_pieces), fixed=("after",), item="pieces", only=("title", "after"))
    assert [field.name for field in fields] == ["title", "place", "idempotency_key"]
    typed = {"title": "T", "after": ["b"]}
    assert typed_item(operation_of(probe_pieces), "pieces", fields, typed) == {"pieces": [typed]}


def test_of_two_fields_with_one_name_that_of_the_object_is_meant() -> None:
    fields = command_fields(operation_of(probe_clash), item="pieces")
    assert [(field.name, field.of_item) for field in fields] == [("title", True), ("after", True)]
