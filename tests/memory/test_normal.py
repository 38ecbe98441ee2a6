"""Normal forms, titles, slugs, chunks and shingles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.memory import normal
from agentstead.state import Invalid


def test_text_is_composed_with_line_feeds_and_without_trailing_blanks() -> None:
    assert normal.normalise("\r\nCafe\u0301  \r\n  indented\t\rend \n\n", what="text") == "Caf\u00e9\n  indented\nend"


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\x7f", "\x85", "\ud800"])
def test_control_characters_are_refused_with_their_place(char: str) -> None:
    with pytest.raises(Invalid) as refused:
        normal.normalise(f"ab{char}c", what="The text")
    assert refused.value.code == "memory.invalid"
    assert refused.value.details["offset"] == 2


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normal.normalise(text, what="text")
    assert normal.normalise(once, what="text") == once


def test_equal_texts_differ_in_case_space_and_end_marks_only() -> None:
    same = ["Use  tabs.", "use tabs", " USE\ntabs!! "]
    assert len({normal.text_hash(text) for text in same}) == 1
    assert normal.text_hash("use tabs") != normal.text_hash("use no tabs")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("We deploy on Fridays. Never on Mondays.", "We deploy on Fridays."),
        ("# Heading\nbody", "Heading"),
        ("\n- first point\n- second", "first point"),
        ("word " * 60, "word " * 22 + "word…"),
    ],
)
def test_a_title_is_the_first_sentence_or_line(text: str, title: str) -> None:
    made = normal.title_of(text)
    assert made == title
    assert len(made) <= normal.TITLE_CHARS


def test_a_slug_is_a_file_name_whatever_the_title() -> None:
    assert normal.slug_of("Postgres 15: the Café's DB") == "postgres-15-the-cafe-s-db"
    assert normal.slug_of("東京") == "memory"
    assert len(normal.slug_of("x" * 300)) == normal.SLUG_CHARS


def test_a_short_text_is_one_chunk() -> None:
    assert normal.chunks("a" * 2_000) == ["a" * 2_000]


@given(st.text("ab. \n#", min_size=2_001, max_size=6_000))
def test_chunks_are_small_and_lose_no_word(text: str) -> None:
    parts = normal.chunks(text)
    assert all(len(part) <= normal.CHUNK_CHARS for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_chunks_fall_at_headings() -> None:
    sections = ["# One\n" + "a. " * 300, "# Two\n" + "b. " * 300, "# Three\n" + "c. " * 300]
    parts = normal.chunks("\n".join(sections))
    assert [part[:6] for part in parts] == ["# One\n", "# Two\n", "# Thre"]


def test_shingles_are_runs_of_five_words() -> None:
    assert normal.shingles(["a", "b", "c", "d", "e", "f"]) == {tuple("abcde"), tuple("bcdef")}
    assert normal.shingles(["a"]) == {("a",)}
    assert normal.shingles([]) == frozenset()


def test_questions_are_the_sentences_that_end_so() -> None:
    assert normal.questions("We met. Where did you go? Fine! And when?") == "Where did you go? And when?"
    assert normal.questions("Nothing asked.") == ""
