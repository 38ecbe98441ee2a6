"""Our stemmer and folding agree with what FTS5 stores."""

import sqlite3
import sys
import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentstead.memory.folding import fold, plain_words, stems_of
from agentstead.memory.stems import stem
from agentstead.memory.words import words

ENDINGS = (
    *("s", "sses", "ies", "ss", "eed", "ed", "ing", "at", "bl", "iz", "y", "ational", "tional", "enci", "anci", "izer"),
    *("logi", "bli", "alli", "entli", "eli", "ousli", "ization", "ation", "ator", "alism", "iveness", "fulness"),
    *("ousness", "aliti", "iviti", "biliti", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance"),
    *("ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize", "e", "ll"),
)


def stored_terms(texts: Iterable[str]) -> list[set[str]]:
    """Return, for each text, the terms that the index holds of it."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize='porter unicode61 remove_diacritics 2')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
    texts = list(texts)
    db.executemany("INSERT INTO t (rowid, body) VALUES (?, ?)", enumerate(texts))
    found: list[set[str]] = [set() for _ in texts]
    for term, doc in db.execute("SELECT term, doc FROM v"):
        found[doc].add(term)
    db.close()
    return found


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.builds(str.__add__, st.text("abcdefghilmnorstuvwyz", max_size=7), st.sampled_from(ENDINGS)), min_size=1)
)
def test_stems_are_those_that_the_index_stores(made: list[str]) -> None:
    for word, terms in zip(made, stored_terms(made), strict=True):
        assert terms == {stem(word)}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("migrations", "migrat"),
        ("running", "run"),
        ("hopping", "hop"),
        ("agreed", "agre"),
        ("flies", "fli"),
        ("is", "is"),
        ("relational", "relat"),
        ("sky", "sky"),
        ("rolling", "roll"),
    ],
)
def test_known_words_have_known_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=60))
def test_every_folded_word_is_one_token_of_the_index(text: str) -> None:
    folded = fold(text)
    for word, terms in zip(folded, stored_terms(folded), strict=True):
        assert len(terms) == 1, (word, terms)


def test_every_letter_of_unicode_gives_one_token() -> None:
    letters = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code))[0] in "LN"]
    folded = [word for letter in letters for word in fold(f"a{letter}")]
    assert all(len(terms) == 1 for terms in stored_terms(folded))


def test_accents_case_width_and_ligatures_fold_away() -> None:
    assert fold("Caf\u00e9 \uff24\uff22 \ufb01le STRASSE Stra\u00dfe") == ["cafe", "db", "file", "strasse", "strasse"]


def test_irregular_forms_and_twins_become_the_first_of_their_group() -> None:
    assert fold("children went") == ["kid", "go"]
    assert fold("Mum found photos, pic") == ["mom", "find", "photos", "photo"]
    assert plain_words("children went") == ["children", "went"]


def test_apostrophes_paths_and_underscores_part_words() -> None:
    assert fold("don't src/app_main.py") == ["don", "t", "src", "app", "main", "py"]


def test_scripts_without_spaces_are_pairs_of_characters() -> None:
    assert fold("東京都 x") == ["東京", "京都", "x"]
    assert fold("ABC株式会社") == ["abc", "株式", "式会", "会社"]
    assert fold("水") == ["水"]


def test_joiners_do_not_end_a_word_and_vowel_signs_stay_in_it() -> None:
    joined, plain = (
        fold("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        fold("\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"),
    )
    assert joined == plain
    assert len(fold("हिन्दी")) == 1


def test_long_runs_are_cut_alike_in_document_and_question() -> None:
    assert fold("a" * 500) == fold("a" * 300)
    assert len(fold("𞤀" * 500)[0]) < 250


def test_lone_surrogates_are_words_of_nothing() -> None:
    assert fold("\ud800 ok") == ["ok"]


def test_stems_leave_stop_words_out() -> None:
    assert stems_of(fold("the migrations are running")) == {"migrat", "run"}


def test_every_word_of_a_group_has_one_first_and_firsts_are_fixed_points() -> None:
    first = words().first_of_group
    assert all(first.get(target, target) == target for target in first.values())
