"""Any result reads well as text, with rich in a terminal and in plain columns elsewhere."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.cli.rendering import plain, print_rich

RESULT: dict[str, Any] = {
    "session_id": "ses_1",
    "created": True,
    "nothing": None,
    "recap": {"goal": "Ship it", "facts": ["a", "b"]},
    "needs_you": [
        {"ref": "apr_1", "question": "May it\nrun?", "unused": None},
        {"ref": "tsk_22", "question": "Look", "extra": 3},
    ],
}

EXPECTED = """session_id  ses_1
created     yes
recap
  goal   Ship it
  facts  a, b
needs_you
  REF     QUESTION     EXTRA
  apr_1   May it run?
  tsk_22  Look         3"""


def test_pairs_tables_and_nested_objects_are_laid_out() -> None:
    assert plain(RESULT) == EXPECTED


def test_an_only_list_is_a_table_without_a_heading() -> None:
    assert plain({"items": [{"id": "a", "n": 1}], "next_cursor": None}) == "ID  N\na   1"


def test_a_list_of_plain_lists_is_shown_as_values() -> None:
    assert plain({"rows": [[1, 2], [3]]}) == "VALUE\n1, 2\n3"


def test_an_empty_result_says_so() -> None:
    assert plain({"items": [], "next_cursor": None}) == "nothing"
    assert plain({}) == "nothing"


def test_further_lines_of_a_text_stand_below_its_first() -> None:
    assert plain({"id": "a", "text": "one\ntwo"}) == "id    a\ntext  one\n      two"


def test_a_number_of_zero_and_a_no_are_values_and_not_nothing() -> None:
    assert plain({"left": 0, "done": False}) == "left  0\ndone  no"


def rich(result: dict[str, Any], *, colour: bool) -> str:
    stream = io.StringIO()
    print_rich(result, stream, colour=colour)
    return stream.getvalue()


def test_a_terminal_gets_the_same_words_in_tables_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = rich(RESULT, colour=False)
    assert text.split() == EXPECTED.split()
    assert "\x1b" not in text
    long = rich({"items": [{"id": "x", "text": "word " * 60}]}, colour=False)
    assert max(len(line) for line in long.splitlines()) <= 60
    assert long.count("word") == 60


def test_a_table_of_too_many_columns_is_a_block_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    row = {f"name_{place}": f"value number {place}" for place in range(6)}
    text = rich({"items": [row, {**row, "name_0": None}]}, colour=False)
    first, second = "\n".join(line.rstrip() for line in text.splitlines()).split("\n\n")
    assert [line.split(maxsplit=1) for line in first.splitlines()] == [[name, value] for name, value in row.items()]
    assert "name_0" not in second
    assert plain({"items": [row]}).startswith("NAME_0")


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    assert "[bold]x[/bold] :smile:" in rich({"text": "[bold]x[/bold] :smile:"}, colour=False)


def test_nothing_in_a_value_steers_the_terminal() -> None:
    for text in (plain({"a": "\x1b[2J", "b": [{"c": "\x1b]0;t\a"}]}), rich({"a": "\x1b[2J"}, colour=False)):
        assert "\x1b" not in text
        assert "\\x1b" in text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_any_json_object_can_be_shown(result: dict[str, Any]) -> None:
    assert plain(result)
    assert rich(result, colour=False)
