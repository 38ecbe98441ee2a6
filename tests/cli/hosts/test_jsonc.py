"""JSON is read with positions, as `json` reads it, and a broken text is refused with its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.cli.hosts.jsonc import JsonFault, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 0, 2, 4, "\t"]), st.booleans())
def test_plain_json_is_read_as_json_reads_it(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    node = parse(f" \n{text}\n", strict=True)
    assert node.value == value
    assert f" \n{text}\n"[node.start : node.end] == text


def test_members_say_where_they_and_their_commas_stand() -> None:
    text = '{"a": 1, /* b */ "b": [2], // end\n}'
    node = parse(text, strict=False)
    assert [(text[m.start : m.start + 3], text[m.node.start : m.node.end], m.comma) for m in node.members] == [
        ('"a"', "1", text.index(",")),
        ('"b"', "[2]", text.rindex(",")),
    ]


def test_comments_and_last_commas_are_read_where_they_are_allowed() -> None:
    text = '// head\n{\n  /* one */ "a": [1, 2,], // tail\n  "b": {"c": "// no comment",},\n}\n// foot'
    assert parse(text, strict=False).value == {"a": [1, 2], "b": {"c": "// no comment"}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1: a value is expected"),
        ("{", "line 1: a key in double quotes is expected"),
        ('{"a" 1}', "line 1: ':' is expected after 'a'"),
        ('{\n"a": 1\n"b": 2}', "line 3: ',' or '}' is expected"),
        ('{"a": 1,\n"a": 2}', "line 2: the key 'a' is there twice"),
        ("[1 2]", r"line 1: ',' or '\]' is expected"),
        ('["a\n"]', "line 1: a string that does not end"),
        ('"\\q"', "line 1: a string that does not end, or holds"),
        ("{} {}", "line 1: more text after the end"),
        ("\n\nnope", "line 3: a value is expected"),
        ("[" * 300, "line 1: values nested too deep"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_a_broken_text_is_refused_with_the_line(text: str, fault: str, strict: bool) -> None:
    with pytest.raises(JsonFault, match=fault):
        parse(text, strict=strict)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{\n// why\n"a": 1}', "line 2: a comment"),
        ('{"a": 1,\n}', "line 1: a comma after the last item"),
        ("[1,]", "line 1: a comma after the last item"),
    ],
)
def test_a_host_that_reads_plain_json_gets_no_comments_or_last_commas(text: str, fault: str) -> None:
    parse(text, strict=False)
    with pytest.raises(JsonFault, match=fault):
        parse(text, strict=True)


@given(st.text('{}[]",:/*1atn \n\\', max_size=30))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        mine = parse(text, strict=True).value
    except JsonFault:
        return
    assert mine == json.loads(text)
