"""Characters that nobody sees: found where they deceive, left where writing needs them, shown as code points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.skills.unseen import UnseenKind, deceiving, find_unseen, reveal, reveal_line


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a\U000e0041b", UnseenKind.TAG),
        ("a\ufe0f", UnseenKind.SELECTOR),
        ("a\U000e0101", UnseenKind.SELECTOR),
        ("a\u202eb", UnseenKind.DIRECTION),
        ("a\u2066b", UnseenKind.DIRECTION),
        ("a\u200bb", UnseenKind.ZERO_WIDTH),
        ("a\u200db", UnseenKind.ZERO_WIDTH),
        ("a\ufeffb", UnseenKind.ZERO_WIDTH),
        ("a\u3164b", UnseenKind.FILLER),
        ("a\u00adb", UnseenKind.SOFT_HYPHEN),
        ("a\ue000b", UnseenKind.PRIVATE),
        ("a\x1bb", UnseenKind.CONTROL),
        ("a\u2028b", UnseenKind.CONTROL),
    ],
)
def test_each_kind_is_found(text: str, kind: UnseenKind) -> None:
    assert [hit.kind for hit in find_unseen(text)] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "plain text\twith\nlines\r\n",
        "naïve café — “quotes”",
        "\u0645\u06cc\u200c\u062e\u0648",
        "क्\u200dष",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\u2764\ufe0f",
        "1\ufe0f\u20e3",
        "\U0001f44d\U0001f3fd",
        "שלום\u200f!",
        "日本語",
    ],
)
def test_what_writing_needs_is_left(text: str) -> None:
    assert reveal(text) == text


def test_unseen_characters_are_shown_in_place() -> None:
    assert reveal("run\u200b this\u202e") == "run<U+200B> this<U+202E>"


def test_a_soft_hyphen_deceives_nobody() -> None:
    assert deceiving("co\u00adop") is None
    hit = deceiving("co\u00adop\u200b")
    assert hit is not None
    assert (hit.offset, hit.code_point) == (5, "U+200B")


def test_a_line_is_cut_and_holds_no_break() -> None:
    assert reveal_line("one\n two\tthree", limit=100) == "one two three"
    assert reveal_line("x" * 50, limit=10) == "x" * 9 + "…"


@given(st.text())
def test_what_was_revealed_hides_nothing_that_deceives(text: str) -> None:
    assert all(hit.character in text for hit in find_unseen(text))
    assert len(reveal(text)) >= len(text)
