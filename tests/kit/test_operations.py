"""One declaration: its rules, its argument model, its schemas, and errors that name what to change."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from agentstead.kit import Call, Result, operation, operation_of
from agentstead.kit.arguments import read_arguments
from agentstead.kit.schema import input_schema, output_schema
from agentstead.state import Invalid


class Item(BaseModel):
    """A nested argument."""

    model_config = ConfigDict(extra="forbid")

    name: str
    size: int = 0


class Kept(Result):
    """A result with everything that schemas have."""

    id: str
    items: Sequence[Item] = ()
    state: Literal["a", "b"] = "a"
    note: str | None = None


@operation("thing_keep", action="things.thing_keep", risk="write", title="Keep a thing")
async def thing_keep(
    call: Call,
    *,
    name: Annotated[str, Field(description="Its name.", max_length=20)],
    tags: Annotated[Sequence[str], Field(description="Its tags.", max_length=3)] = (),
    item: Annotated[Item | None, Field(description="A part.")] = None,
    mode: Annotated[Literal["x", "y"], Field(description="How.")] = "x",
    count: Annotated[int | None, Field(description="How many.", ge=1)] = None,
) -> Kept:
    """Keep a thing.

    It is kept.
    """
    return Kept(id=name, note=f"{len(tags)} {mode} {count} {item}")


@operation(
    "thing_look",
    action=lambda arguments: ("things.deep" if arguments.get("deep") else "things.look", "read"),
    risk="read",
    title="Look",
)
async def thing_look(call: Call, *, deep: Annotated[bool, Field(description="Deeply.")] = False) -> Kept:
    """Look at things."""
    return Kept(id=str(deep))


KEEP = operation_of(thing_keep)


def test_the_function_itself_is_unchanged_and_its_declaration_is_found() -> None:
    assert thing_keep.__name__ == "thing_keep"
    assert KEEP.description == "Keep a thing. It is kept."
    assert KEEP.server == "things"
    assert KEEP.action_for({}) == ("things.thing_keep", "write")
    with pytest.raises(KeyError):
        operation_of(test_the_function_itself_is_unchanged_and_its_declaration_is_found)


def test_an_action_may_depend_on_the_arguments() -> None:
    look = operation_of(thing_look)
    assert look.action_for({}) == ("things.look", "read")
    assert look.action_for({"deep": True}) == ("things.deep", "read")
    assert look.server == "things"
    assert look.idempotent


def test_only_what_changes_something_takes_a_key() -> None:
    assert "idempotency_key" in KEEP.arguments.model_fields
    assert "idempotency_key" not in operation_of(thing_look).arguments.model_fields


@pytest.mark.parametrize("name", ["Keep", "keep", "thing-keep", "thing_" + "k" * 32, "_keep", "thing_"])
def test_a_name_that_is_not_noun_verb_is_refused_at_import(name: str) -> None:
    with pytest.raises(ValueError, match="noun_verb"):
        operation(name, action="a.b", risk="read", title="T")


def declare(fn: Any) -> Any:
    return operation("some_thing", action="a.b", risk="read", title="T")(fn)


def test_a_parameter_without_a_description_is_refused_at_import() -> None:
    async def bare(call: Call, *, name: str) -> Kept:
        """Do."""
        return Kept(id=name)

    async def half(call: Call, *, name: Annotated[str, Field(max_length=3)]) -> Kept:
        """Do."""
        return Kept(id=name)

    async def positional(call: Call, name: Annotated[str, Field(description="N.")]) -> Kept:
        """Do."""
        return Kept(id=name)

    for fn, message in ((bare, "no description"), (half, "no description"), (positional, "keyword-only")):
        with pytest.raises(TypeError, match=message):
            declare(fn)


def test_a_function_without_a_docstring_or_a_result_model_is_refused_at_import() -> None:
    async def silent(call: Call) -> Kept:
        return Kept(id="")

    async def loose(call: Call) -> dict[str, str]:
        """Do."""
        return {}

    async def wordy(call: Call) -> Kept:
        return Kept(id="")

    wordy.__doc__ = "w" * 601
    for fn in (silent, wordy):
        with pytest.raises(ValueError, match="docstring"):
            declare(fn)
    with pytest.raises(TypeError, match="subclass of Result"):
        declare(loose)


def test_arguments_become_typed_values_and_a_digest_without_the_key() -> None:
    one = read_arguments(KEEP, {"name": "a", "item": {"name": "p"}, "idempotency_key": "k1"})
    two = read_arguments(KEEP, {"item": {"name": "p"}, "name": "a", "idempotency_key": "k2"})
    assert one.values["item"] == Item(name="p")
    assert one.values["tags"] == ()
    assert (one.key, two.key) == ("k1", "k2")
    assert one.sha256 == two.sha256
    assert one.json == {"name": "a", "item": {"name": "p"}}
    assert read_arguments(KEEP, {"name": "b"}).sha256 != one.sha256


def test_json_in_a_string_is_read_where_no_text_is_asked_for() -> None:
    found = read_arguments(KEEP, {"name": '["kept as text"]', "tags": '["a","b"]', "item": '{"name":"p"}'})
    assert found.values["name"] == '["kept as text"]'
    assert tuple(found.values["tags"]) == ("a", "b")
    assert found.values["item"] == Item(name="p")
    with pytest.raises(Invalid):
        read_arguments(KEEP, {"name": "a", "tags": "[broken"})


def test_an_explicit_null_for_an_optional_argument_is_served() -> None:
    assert read_arguments(KEEP, {"name": "a", "count": None, "item": None}).values["count"] is None


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({}, "name: field required"),
        ({"name": "a" * 21}, "name: string should have at most 20 characters"),
        ({"name": "a", "nope": 1}, "nope: unknown argument (known: name, tags"),
        ({"name": "a", "mode": "z"}, "mode: input should be 'x' or 'y'"),
        ({"name": "a", "count": 0}, "count: input should be greater than or equal to 1"),
        ({"name": "a", "item": {"name": "p", "extra": 1}}, "item.extra: unknown argument"),
    ],
)
def test_an_argument_error_names_the_field_and_what_it_should_be(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_arguments(KEEP, raw)
    assert caught.value.code == "tool.invalid_arguments"
    assert said in caught.value.message


def test_an_argument_error_echoes_no_value_and_no_web_address() -> None:
    with pytest.raises(Invalid) as caught:
        read_arguments(KEEP, {"name": ["hunter2-secret"], "count": "hunter2-secret", "tags": {"hunter2-secret": 1}})
    assert "hunter2-secret" not in str(caught.value) + json.dumps(caught.value.as_dict()).replace("tags.hunter2", "")
    assert "http" not in str(caught.value)


@given(
    st.dictionaries(
        st.text(max_size=10),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=5,
    )
)
def test_whatever_comes_in_is_valid_or_refused_with_our_code(raw: dict[str, Any]) -> None:
    try:
        found = read_arguments(KEEP, raw | {"name": raw.get("name", "a")})
    except Invalid as error:
        assert error.code == "tool.invalid_arguments"  # noqa: PT017 - either outcome is right
    else:
        assert set(found.values) == {"name", "tags", "item", "mode", "count"}


def test_a_published_input_schema_is_flat_and_strict() -> None:
    schema = input_schema(KEEP.arguments)
    text = json.dumps(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name"]
    assert "$ref" not in text
    assert "$defs" not in text
    assert '"title"' not in text
    assert '"null"' not in text
    assert schema["properties"]["item"]["properties"]["name"] == {"type": "string"}
    assert schema["properties"]["count"]["minimum"] == 1
    assert schema["properties"]["name"] == {"description": "Its name.", "type": "string"}
    assert schema["properties"]["mode"]["default"] == "x"
    assert "default" not in schema["properties"]["tags"]


def test_a_field_that_is_called_title_is_kept() -> None:
    class Titled(BaseModel):
        title: str = Field(description="A title.")

    assert input_schema(Titled)["properties"] == {"title": {"type": "string", "description": "A title."}}


def test_a_published_output_schema_is_short_and_may_be_shallow() -> None:
    deep = output_schema(Kept, shallow=False)
    shallow = output_schema(Kept, shallow=True)
    assert deep["properties"]["items"]["items"]["properties"]["size"]["type"] == "integer"
    assert shallow["properties"]["items"] == {"type": "array", "items": {"type": "object"}}
    assert "required" not in shallow
    assert deep["required"] == ["id"]
    assert shallow["properties"]["note"] == {"type": "string"}
    assert len(json.dumps(shallow)) < len(json.dumps(deep))
