"""Reading requested changes: limits, fields of each operation, attributes, times."""

from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.memory.attributes import MODELS, read_attributes
from agentstead.memory.changes import Change, ChangeOp, read_changes
from agentstead.memory.times import read_instant, show_instant
from agentstead.memory.vocabulary import MEMORY_TYPES, MemoryType
from agentstead.state import Invalid

MEM = "mem_01J9ZZZZZZZZZZZZZZZZZZZZZA"


def read(**fields: Any) -> Any:
    return read_changes([Change(**fields)])[0]


def refused(**fields: Any) -> Invalid:
    with pytest.raises(Invalid) as error:
        read(**fields)
    return error.value


def test_an_add_is_read_with_normal_text_tags_and_times() -> None:
    draft = read(
        op="add",
        text="\r\nUse tabs. \r\n",
        type="fact",
        tags=["Style", "style", " go "],
        valid_from="2026-01-02",
        evidence=["a", "a"],
    )
    assert (draft.text, draft.tags, draft.evidence) == ("Use tabs.", ("go", "style"), ("a",))
    assert show_instant(draft.valid_from) == "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"op": "add", "type": "fact"}, "memory.invalid"),
        ({"op": "add", "text": "x"}, "memory.invalid"),
        ({"op": "add", "text": " \n", "type": "fact"}, "memory.invalid"),
        ({"op": "add", "text": "x" * 16_385, "type": "fact"}, "memory.too_large"),
        ({"op": "add", "text": "\u00e9" * 8_193, "type": "fact"}, "memory.too_large"),
        ({"op": "add", "text": "x", "type": "fact", "key": "Not A Key"}, "memory.key"),
        ({"op": "add", "text": "x", "type": "fact", "key": "k" * 65}, "memory.key"),
        ({"op": "add", "text": "x", "type": "fact", "title": "t" * 121}, "memory.too_large"),
        ({"op": "add", "text": "x", "type": "fact", "tags": ["t" * 41]}, "memory.too_large"),
        ({"op": "add", "text": "x", "type": "fact", "tags": [str(n) for n in range(17)]}, "memory.too_large"),
        ({"op": "add", "text": "x", "type": "fact", "evidence": ["e"] * 33}, "memory.too_large"),
        ({"op": "add", "text": "x", "type": "fact", "place": 3}, "memory.invalid"),
        ({"op": "add", "text": "x", "type": "fact", "memory_id": MEM}, "memory.invalid"),
        ({"op": "add", "text": "x", "type": "fact", "valid_from": "soon"}, "memory.invalid"),
        (
            {"op": "add", "text": "x", "type": "fact", "valid_from": "2026-02-01", "valid_to": "2026-02-01"},
            "memory.invalid",
        ),
        ({"op": "revise", "memory_id": MEM}, "memory.invalid"),
        ({"op": "revise", "memory_id": MEM, "expected_version": 2, "reason": "x"}, "memory.invalid"),
        (
            {"op": "revise", "memory_id": MEM, "text": "x", "edits": [{"old_text": "a", "new_text": "b"}]},
            "memory.invalid",
        ),
        ({"op": "retract", "memory_id": MEM}, "memory.invalid"),
        ({"op": "archive", "memory_id": "mem_1"}, "memory.invalid"),
        ({"op": "revert", "memory_id": MEM}, "memory.invalid"),
        ({"op": "supersede", "memory_id": MEM}, "memory.invalid"),
    ],
)
def test_what_cannot_be_is_refused_with_its_number_and_a_remedy(fields: dict[str, Any], code: str) -> None:
    error = refused(**fields)
    assert error.code == code
    assert error.remedy


def test_the_first_bad_operation_of_a_batch_is_named() -> None:
    fine = Change(op="add", text="x", type="fact")
    with pytest.raises(Invalid, match="Operation 3"):
        read_changes([fine, fine, Change(op="add", text="x")])


@pytest.mark.parametrize("op", get_args(ChangeOp))
def test_every_operation_says_what_it_takes(op: ChangeOp) -> None:
    error = refused(op=op)
    assert error.remedy.startswith(f"{op} takes ")


@pytest.mark.parametrize("memory_type", MEMORY_TYPES)
def test_attributes_of_each_type_are_closed(memory_type: MemoryType) -> None:
    assert read_attributes(memory_type, {}) == {}
    with pytest.raises(Invalid) as error:
        read_attributes(memory_type, {"colour": "planted-value"})
    assert "planted-value" not in str(error.value)
    assert all(name in error.value.remedy for name in MODELS[memory_type].model_fields)


def test_attributes_are_strict_and_bounded() -> None:
    choice = {"alternatives": ["a"], "assumptions": [{"id": "1", "text": "holds", "holds": "no"}]}
    assert read_attributes("choice", choice)["assumptions"][0]["holds"] == "no"
    for bad in ({"alternatives": "a"}, {"assumptions": [{"id": "1", "text": "x", "holds": "maybe"}]}):
        with pytest.raises(Invalid):
            read_attributes("choice", bad)
    with pytest.raises(Invalid) as error:
        read_attributes("fact", {"value": "x" * 8_200})
    assert error.value.code == "memory.too_large"


def test_texts_hold_everything_that_a_reader_could_be_shown() -> None:
    draft = read(
        op="add",
        text="body",
        type="incident",
        title="title",
        tags=["tag"],
        author="author",
        thread="thread",
        evidence=["evidence"],
        attributes={"cause": "cause"},
    )
    assert set(draft.texts()) == {"body", "title", "tag", "author", "thread", "evidence", "cause"}


@given(st.datetimes())
def test_instants_survive_a_round_trip(moment: Any) -> None:
    at_us = read_instant(moment.isoformat(), what="t")
    assert read_instant(show_instant(at_us), what="t") == at_us


@given(st.text(max_size=30))
def test_any_text_is_an_instant_or_refused(text: str) -> None:
    with suppress(Invalid):
        assert isinstance(read_instant(text, what="t"), int)
