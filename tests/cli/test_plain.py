"""Values as a person reads them, and nothing in them that could steer a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.cli.plain import clean, is_simple, one_line, shown


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("x", None, ""),
        ("x", True, "yes"),
        ("x", False, "no"),
        ("x", 12, "12"),
        ("x", 1.5, "1.5"),
        ("x", "a b", "a b"),
        ("x", [], ""),
        ("x", ["a", "b"], "a, b"),
        ("x", [1, 2], "1, 2"),
        ("x", {"a": [1]}, '{"a": [1]}'),
        ("created_at", 1_796_000_000_000_000, "2026-11-30 00:53:20Z"),
        ("lease_until", 1_796_000_000_000_000, "2026-11-30 00:53:20Z"),
        ("at", 1_796_000_000_000_000, "2026-11-30 00:53:20Z"),
        ("at", 12, "12"),
        ("format", 1_796_000_000_000_000, "1796000000000000"),
        ("size", 1023, "1023"),
        ("size", 1536, "1.5 KiB"),
        ("rss_bytes", 78 * 2**20, "78.0 MiB"),
        ("blob_bytes", 3 * 2**40, "3.0 TiB"),
        ("resize", 4096, "4096"),
    ],
)
def test_values_are_shown_by_what_their_name_says_of_them(name: str, value: object, text: str) -> None:
    assert shown(name, value) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain text", "plain text"),
        ("Grüße, 世界 🙂", "Grüße, 世界 🙂"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("bell\a back\b return\r", "bell\\x07 back\\x08 return\\x0d"),
        ("\u202egnp.exe", "\\x202egnp.exe"),
        ("zero\u200bwidth", "zero\\x200bwidth"),
        ("\x9b31m", "\\x9b31m"),
        ("half\ud800", "half\\xd800"),
    ],
)
def test_control_and_direction_characters_are_shown_and_not_obeyed(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text())
def test_no_clean_text_holds_a_control_character(text: str) -> None:
    left = {unicodedata.category(char) for char in clean(text) if char not in "\n\t\u200d"}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_one_line_has_no_line_ends() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("a  b") == "a  b"


@pytest.mark.parametrize(
    ("value", "simple"),
    [(1, True), ("a", True), (None, True), (["a"], True), ([], True), ({}, False), ([{}], False), ([[1]], False)],
)
def test_what_fits_behind_its_name_is_told_from_what_needs_lines_of_its_own(value: object, simple: bool) -> None:
    assert is_simple(value) is simple
