"""Reading front matter: what is refused, where, and that nothing expands or hangs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.skills.frontmatter import (
    MAX_FRONTMATTER_BYTES,
    Fields,
    FrontMatterRefused,
    Listing,
    Text,
    parse,
    requote,
    split,
)


def refusal(text: str) -> tuple[str, int]:
    with pytest.raises(FrontMatterRefused) as caught:
        parse(text)
    return caught.value.diagnostic.code, caught.value.diagnostic.line


def test_the_two_marks_part_fields_from_body() -> None:
    parts = split("---\nname: a\n---\nFirst\nSecond\n")
    assert (parts.frontmatter, parts.body, parts.body_line) == ("name: a\n", "First\nSecond\n", 4)


def test_three_hyphens_inside_a_line_end_nothing() -> None:
    assert split("---\nname: a --- b\n --- \n---\n").frontmatter == "name: a --- b\n --- \n"


def test_windows_line_ends_are_read() -> None:
    assert parse(split("---\r\nname: a\r\n---\r\nBody\r\n").frontmatter).text("name") == "a"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "fm.missing"),
        ("name: a\n", "fm.missing"),
        (" ---\nname: a\n---\n", "fm.missing"),
        ("---\nname: a\n", "fm.unclosed"),
        ("---\nname: a\n----\n", "fm.unclosed"),
        ("---\u2028name: a\u2028---\n", "fm.missing"),
        ("---\n" + "x" * MAX_FRONTMATTER_BYTES + "\n---\n", "fm.too_large"),
    ],
)
def test_a_file_that_cannot_be_parted_says_why(text: str, code: str) -> None:
    with pytest.raises(FrontMatterRefused) as caught:
        split(text)
    assert caught.value.diagnostic.code == code
    assert caught.value.diagnostic.line > 0


def test_values_stay_as_they_were_written() -> None:
    fields = parse("a: yes\nb: 1.0\nc: 2026-01-02\nd: 'quoted'\ne: |\n  two\n  lines\nf:\n")
    assert [fields.text(key) for key in "abcdef"] == ["yes", "1.0", "2026-01-02", "quoted", "two\nlines\n", ""]


def test_nodes_carry_the_line_and_column_of_the_file() -> None:
    fields = parse("a: one\nb:\n  - two\n")
    listing = fields.get("b")
    assert fields.get("a") == Text("one", 2, 4)
    assert isinstance(listing, Listing)
    assert listing.items == (Text("two", 4, 5),)


def test_flow_style_is_marked() -> None:
    fields = parse("a: [x]\nb: {c: d}\n")
    assert [getattr(fields.get(key), "flow", None) for key in "ab"] == [True, True]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: 1\nb: &x 2\n", "fm.alias", 3),
        ("a: *x\n", "fm.alias", 2),
        ("&x a: 1\n", "fm.alias", 2),
        ("a: !!python/object:os.system x\n", "fm.tag", 2),
        ("a: ! x\n", "fm.tag", 2),
        ("a: 1\nb: 2\na: 3\n", "fm.duplicate_key", 4),
        ("m:\n  a: 1\n  a: 2\n", "fm.duplicate_key", 4),
        ("<<: {a: 1}\n<<: {b: 1}\n", "fm.duplicate_key", 3),
        ("- a\n", "fm.not_mapping", 2),
        ("only text\n", "fm.not_mapping", 2),
        ("", "fm.not_mapping", 2),
        ("# nothing\n", "fm.not_mapping", 2),
        ("a: b: c\n", "fm.yaml", 2),
        ("a: [b\n", "fm.yaml", 3),
        ("? [a]\n: b\n", "fm.yaml", 2),
        ("a: b\n--- c\n", "fm.yaml", 2),
        ("%TAG ! x\na: b\n", "fm.yaml", 3),
        ("a: \x00\n", "fm.yaml", 2),
        ('a: "\\uD800"\n', "fm.yaml", 2),
    ],
)
def test_what_yaml_could_expand_guess_or_hide_is_refused(text: str, code: str, line: int) -> None:
    assert refusal(text) == (code, line)


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    layers = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 60)]
    assert refusal("\n".join(["a0: &a0 [x, x]", *layers, ""])) == ("fm.alias", 2)


@pytest.mark.parametrize("opening", ["[", "{", "- ", "? ", "a:"])
def test_depth_is_bounded(opening: str) -> None:
    deep = opening * 20_000 if opening.strip() in "[{-?" else "".join(f"{' ' * n}a:\n" for n in range(200))
    assert refusal(deep)[0] == "fm.yaml"


def test_an_unquoted_colon_is_quoted_and_named() -> None:
    text, touched = requote("name: a\ndescription: Use when: it's late\nlicense: 'b: c'\n")
    assert touched == ("description",)
    assert parse(text).text("description") == "Use when: it's late"


def outcome(text: str) -> Fields | int:
    """Return the fields, or the line at which they were refused."""
    try:
        return parse(text)
    except FrontMatterRefused as refused:
        return refused.diagnostic.line


@given(st.text(max_size=400))
def test_any_text_gives_fields_or_a_placed_refusal(text: str) -> None:
    assert outcome(text) != 0


@given(st.lists(st.sampled_from(["a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", "&x", "*x", "'", '"', "|", "#"])))
def test_any_yaml_like_text_gives_fields_or_a_placed_refusal(parts: list[str]) -> None:
    assert outcome("".join(parts)) != 0
