"""A question in plain words, read into index terms and the hints that ranking uses; any text at all is a question."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentstead.memory.folding import fold, plain_words
from agentstead.memory.words import words

QUERY_CHARS = 2_000
TERMS = 64

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"),
    "december",
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
# "may" and "march" are everyday words: they name a month beside a date word or a number only.
_DOUBTFUL = {
    name: re.compile(
        r"\b(?:in|of|since|until|by|last|next|this|early|late|mid|before|after|during|\d{1,2}(?:st|nd|rd|th)?) "
        rf"{name}\b"
        rf"|\b{name},? (?:\d{{1,2}}(?:st|nd|rd|th)?|(?:19|20)\d\d)\b"
    )
    for name in ("may", "march")
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `terms` go to the index; `dropped` are the stop words left out; `names` are all folded words."""

    text: str
    cut: bool
    terms: tuple[str, ...]
    dropped: tuple[str, ...]
    names: frozenset[str]
    asks_when: bool
    months: frozenset[int]
    years: frozenset[int]


def read_question(text: str) -> Question:
    """Read a question of any length and any characters; what lies behind 2,000 characters or 64 terms is left out."""
    asked = text[:QUERY_CHARS]
    plain, folded = plain_words(asked), fold(asked)
    stop = words().stop_words
    content = [word for bare, word in zip(plain, folded, strict=True) if bare not in stop and word not in stop]
    terms = tuple(dict.fromkeys(content or folded))
    lowered = " ".join(plain)
    return Question(
        text=asked,
        cut=len(text) > QUERY_CHARS or len(terms) > TERMS,
        terms=terms[:TERMS],
        dropped=tuple(dict.fromkeys(bare for bare, word in zip(plain, folded, strict=True) if word not in terms)),
        names=frozenset(folded) | frozenset(plain),
        asks_when=any(_begins(lowered, opener) for opener in words().when_openers),
        months=frozenset(number for number, name in enumerate(_MONTHS, 1) if _names_month(lowered, name)),
        years=frozenset(int(year) for year in _YEAR.findall(lowered)),
    )


def speaks_of_time(folded: str) -> bool:
    """Tell whether folded text holds a word of time or a year."""
    return _YEAR.search(folded) is not None or not words().time_words.isdisjoint(folded.split())


def match_expression(terms: Iterable[str], scope_tokens: Sequence[str] = ()) -> str:
    """Return the FTS5 expression: any of the terms, in documents of any of these scopes; every word is quoted."""
    found = " OR ".join(f'"{term}"' for term in terms)
    if not scope_tokens:
        return found
    inside = " OR ".join(f'"{token}"' for token in scope_tokens)
    return f"scope_token : ({inside}) AND ({found})"


def substring_expression(question: Question) -> str:
    """Return the trigram expression of a question: its plain words of three letters and more; '' for none."""
    stop = words().stop_words
    parts = [word for word in dict.fromkeys(_substrings(question.text.lower())) if word not in stop]
    return " OR ".join(f'"{part}"' for part in parts[:TERMS])


def _substrings(text: str) -> Iterable[str]:
    return (part for part in re.findall(r"[^\W_]{3,}", text) if part.isalnum())


def _begins(text: str, opener: str) -> bool:
    return text == opener or text.startswith(opener + " ")


def _names_month(text: str, name: str) -> bool:
    doubtful = _DOUBTFUL.get(name)
    return doubtful.search(text) is not None if doubtful else re.search(rf"\b{name}\b", text) is not None
