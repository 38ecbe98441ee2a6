"""Answering a question from memory: found, ranked, explained, and honest about what was left out."""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentstead.memory import normal
from agentstead.memory.question import Question
from agentstead.memory.ranking import Ranked, Uses, rank, scored, standing
from agentstead.memory.search import (
    Filters,
    Found,
    Frequencies,
    count_elsewhere,
    frequencies,
    search,
    search_substrings,
    telling_terms,
)
from agentstead.memory.stems import stem
from agentstead.memory.store import Memory, load_editions
from agentstead.memory.vocabulary import RecallMode
from agentstead.state import Reading

WEAK_SHARE = 0.35
SUBSTRING_SHARE = 0.5
USES_LOOKED_AT = 100
COLUMNS = ("author", "body", "prev", "next", "far", "ask")
OWN_COLUMNS = ("author", "body")

_USES = """
SELECT memory_id, count(*) AS surfaced, sum(used) AS used, sum(outcome = 'helped') AS helped,
    sum(outcome = 'misled') AS misled
FROM recall_items
WHERE memory_id IN (SELECT value FROM json_each(:ids))
GROUP BY memory_id
"""
_DOCS = """
SELECT doc, chunk, author, body, prev, next, far, ask
FROM recall_docs
WHERE doc IN (SELECT value FROM json_each(:docs))
"""
_CONFLICTS = """
SELECT from_id, to_id
FROM links
WHERE kind = 'contradicts'
    AND state = 'open'
    AND (
        to_id IN (SELECT value FROM json_each(:ids))
        OR from_id IN (SELECT value FROM json_each(:ids))
    )
"""
_EVIDENCE = """
SELECT edition_id, count(*) AS number
FROM evidence
WHERE edition_id IN (SELECT value FROM json_each(:ids))
GROUP BY edition_id
"""
_SHADOW = """
SELECT id
FROM memories
WHERE type = :type AND key = :key AND state = 'live' AND id <> :id
    AND scope IN (SELECT value FROM json_each(:stronger))
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Why:
    """Why an item came back: the terms that it holds, where, and the parts and factors of its score."""

    terms: tuple[str, ...]
    columns: tuple[str, ...]
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Item:
    """One answer: a memory in the edition that answered, as the best of its parts."""

    memory: Memory
    score: float
    why: Why
    text: str
    part: str = ""
    conflict_with: str = ""
    shadowed_by: str = ""
    evidence_count: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found and how; `more` says that further items follow behind these."""

    items: tuple[Item, ...]
    mode: RecallMode
    weak: bool
    reason: str
    terms_used: tuple[str, ...]
    terms_dropped: tuple[str, ...]
    candidates: int
    hidden: Mapping[str, int]
    more: bool


def answer(
    reading: Reading, question: Question, filters: Filters, *, limit: int, offset: int = 0, scored_at: int
) -> Answer:
    """Return the answer to a question; `scored_at` is the instant that ages are counted to."""
    known = frequencies(reading, question.terms)
    terms, common = telling_terms(question, known)
    found = search(reading, terms, question, filters)
    ranked = _ranked(reading, found, question, filters, scored_at)
    relaxed = []
    if len(ranked) < limit + offset:
        relaxed = _relaxed(reading, question, filters, ranked, scored_at)
    everything = [*ranked, *relaxed]
    page = everything[offset : offset + limit]
    hidden = dict(found.hidden)
    if len(everything) < limit + offset and (elsewhere := count_elsewhere(reading, terms, filters)):
        hidden["out_of_scope"] = elsewhere
    items = _items(reading, page, terms, filters)
    return Answer(
        items=tuple(items),
        mode="as_of" if filters.past else "relaxed" if relaxed else "lexical",
        weak=_is_weak(reading, everything[:1], terms, known),
        reason=_reason(question, items, hidden, offset),
        terms_used=tuple(terms),
        terms_dropped=(*question.dropped, *common),
        candidates=len(everything),
        hidden=hidden,
        more=len(everything) > offset + limit,
    )


def _ranked(reading: Reading, found: Found, question: Question, filters: Filters, scored_at: int) -> list[Ranked]:
    """Rank twice: how often a memory was of use is looked up for the best of the first round only."""
    first = rank(found.candidates, question, order=filters.scopes, now_us=scored_at, uses={})
    uses = _uses(reading, [each.candidate.memory_id for each in first[:USES_LOOKED_AT]])
    return rank(found.candidates, question, order=filters.scopes, now_us=scored_at, uses=uses) if uses else first


def _relaxed(
    reading: Reading, question: Question, filters: Filters, ranked: Sequence[Ranked], scored_at: int
) -> list[Ranked]:
    """Return what holds the question's words inside other words, below everything that holds the words themselves."""
    seen = {each.candidate.memory_id for each in ranked}
    candidates = [
        each for each in search_substrings(reading, question, filters).candidates if each.memory_id not in seen
    ]
    top = max((each.lexical for each in candidates), default=0.0)
    ceiling = SUBSTRING_SHARE * min((each.score for each in ranked), default=1.0)
    found = []
    for each in candidates:
        signals = {"substring": ceiling * each.lexical / top if top > 0 else ceiling}
        signals |= standing(each, now_us=scored_at, uses=Uses())
        found.append(scored(each, signals))
    return sorted(found, key=lambda each: (-each.score, -each.candidate.recorded_at, each.candidate.memory_id))


def _uses(reading: Reading, memory_ids: Sequence[str]) -> dict[str, Uses]:
    rows = reading.all(_USES, ids=json.dumps(list(memory_ids)))
    return {row["memory_id"]: Uses(row["surfaced"], row["used"], row["helped"], row["misled"]) for row in rows}


def _items(reading: Reading, page: Sequence[Ranked], terms: Sequence[str], filters: Filters) -> list[Item]:
    memories = load_editions(reading, [each.candidate.edition_id for each in page])
    docs = {row["doc"]: row for row in reading.all(_DOCS, docs=json.dumps([each.candidate.doc for each in page]))}
    conflicts = _conflicts(reading, [each.candidate.memory_id for each in page])
    evidence = _counts(reading, [each.candidate.edition_id for each in page])
    items = []
    for each in page:
        memory, row = memories[each.candidate.edition_id], docs[each.candidate.doc]
        text, part = _part(memory.text, row["chunk"])
        shadow = _shadow(reading, memory, filters) if each.candidate.fate == "shadowed" else ""
        items.append(
            Item(
                memory=memory,
                score=each.score,
                why=_why(row, terms, each.signals),
                text=text,
                part=part,
                conflict_with=conflicts.get(memory.id, ""),
                shadowed_by=shadow,
                evidence_count=evidence.get(memory.edition_id, 0),
            )
        )
    return items


def items_of(reading: Reading, items: Sequence[Item]) -> list[Item]:
    """Return items with the open contradictions that speak against them."""
    conflicts = _conflicts(reading, [item.memory.id for item in items])
    return [replace(item, conflict_with=conflicts.get(item.memory.id, "")) for item in items]


def _part(text: str, chunk: int) -> tuple[str, str]:
    parts = normal.chunks(text)
    return (text, "") if len(parts) == 1 else (parts[chunk], f"{chunk + 1}/{len(parts)}")


def _why(row: sqlite3.Row, terms: Sequence[str], signals: Mapping[str, float]) -> Why:
    stems = {column: {stem(word) for word in row[column].split()} for column in COLUMNS}
    held = tuple(term for term in terms if any(stem(term) in words for words in stems.values()))
    columns = tuple(column for column in COLUMNS if any(stem(term) in stems[column] for term in terms))
    return Why(held, columns, signals)


def _conflicts(reading: Reading, memory_ids: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in reading.all(_CONFLICTS, ids=json.dumps(list(memory_ids))):
        found[row["to_id"]] = row["from_id"]
        found[row["from_id"]] = row["to_id"]
    return found


def _counts(reading: Reading, edition_ids: Sequence[str]) -> dict[str, int]:
    rows = reading.all(_EVIDENCE, ids=json.dumps(list(edition_ids)))
    return {row["edition_id"]: row["number"] for row in rows}


def _shadow(reading: Reading, memory: Memory, filters: Filters) -> str:
    place = filters.scopes.index(memory.scope) if memory.scope in filters.scopes else 0
    stronger = json.dumps(filters.scopes[:place])
    found = reading.value(_SHADOW, type=memory.type, key=memory.edition.key, id=memory.id, stronger=stronger)
    return str(found or "")


def _is_weak(reading: Reading, best: Sequence[Ranked], terms: Sequence[str], known: Frequencies) -> bool:
    """Tell whether even the best item covers little of what was asked, weighed by how telling each term is."""
    weights = {term: _telling(known, term) for term in terms}
    total = sum(weights.values())
    if not best or total <= 0:
        return True
    row = reading.one(_DOCS, docs=json.dumps([best[0].candidate.doc]))
    assert row is not None
    held = {stem(word) for column in OWN_COLUMNS for word in row[column].split()}
    return sum(weight for term, weight in weights.items() if stem(term) in held) / total < WEAK_SHARE


def _telling(known: Frequencies, term: str) -> float:
    holding = known.of_term.get(term, 0)
    return math.log(1 + (known.docs - holding + 0.5) / (holding + 0.5))


def _reason(question: Question, items: Sequence[Item], hidden: Mapping[str, int], offset: int) -> str:
    """Say why a list is empty, and what to try next; '' for a list that is not."""
    if items:
        return f"The question was cut at {len(question.text)} characters." if question.cut else ""
    if offset:
        return "No further items."
    if not question.terms:
        return "The question holds no letter or digit. Ask in words."
    if hidden:
        shown = ", ".join(f"{number} {name}" for name, number in sorted(hidden.items()))
        return f"What matches is not shown: {shown}. Name its scope, or include it."
    return "No memory holds any of these words. Ask with other words, or see memory_list."
