"""Text to index words: one folding for documents and questions; every word it gives is one token of FTS5."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from agentstead.memory.stems import stem
from agentstead.memory.words import words

_WORD_CHARS = 48
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Scripts that are written without spaces, or whose particles cling to the word: indexed by pairs of characters.
_CLOSE = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# The database that every SQLite with FTS5 agrees with: its letters and digits are token characters in all of them.
_OLD = unicodedata.ucd_3_2_0


def fold(text: str) -> list[str]:
    """Return the index words of a text in order: lower case, without accents, irregular forms and twins replaced."""
    first = words().first_of_group
    return [first.get(word, word) for word in plain_words(text)]


def plain_words(text: str) -> list[str]:
    """Return the words of a text, folded but for irregular forms and twins."""
    lowered = text.lower()
    if lowered.isascii():
        return [word[:_WORD_CHARS] for word in _ASCII_WORD.findall(lowered)]
    return [word for run in _runs(_unaccented(text)) for word in _words_of_run(run)]


def stems_of(folded: Iterable[str]) -> set[str]:
    """Return the distinct stems of folded words without the stop words."""
    stop = words().stop_words
    return {stem(word) for word in folded if word not in stop}


def _unaccented(text: str) -> str:
    spread = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", spread)).casefold()


def _runs(text: str) -> Iterator[str]:
    run: list[str] = []
    for char in text:
        kind = unicodedata.category(char)
        if kind[0] in "LN" or (kind[0] == "M" and run):
            run.append(char)
        elif kind != "Cf" and run:  # a joiner or a soft hyphen inside a word does not end it
            yield "".join(run)
            run.clear()
    if run:
        yield "".join(run)


def _words_of_run(run: str) -> Iterator[str]:
    place = 0
    for close in _CLOSE.finditer(run):
        yield from _one(run[place : close.start()])
        yield from (_safe(pair) for pair in _pairs(close[0]))
        place = close.end()
    yield from _one(run[place:])


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)] or [run]


def _one(word: str) -> Iterator[str]:
    if word:
        yield _safe(word)


def _safe(word: str) -> str:
    if word.isascii() or all(_OLD.category(char)[0] in "LN" for char in word):
        return word[:_WORD_CHARS]
    # FTS5 would cut such a word apart, and a phrase cannot be asked of an index without positions. The last digit
    # keeps the stemmer away.
    return "u" + word[: _WORD_CHARS // 2].encode("utf-8", "replace").hex() + "0"
