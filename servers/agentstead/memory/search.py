"""The FTS5 side of recall: which documents match, filters and clocks inside the query. SQLite's dialect lives here."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentstead.memory.question import Question, match_expression, speaks_of_time, substring_expression
from agentstead.memory.ranking import Candidate
from agentstead.memory.scopes import scope_token, session_turns
from agentstead.memory.stems import stem
from agentstead.memory.vocabulary import Trust
from agentstead.state import Reading

# Weights of scope_token, author, body, prev, next, far, ask.
COLUMN_WEIGHTS = (0.0, 2.0, 1.0, 0.4, 0.4, 0.3, 0.8)
CANDIDATES = 1_000
COMMON_SHARE = 0.30
# In a store of a few memories every word is "common"; below this many documents none is dropped.
COMMON_LEAST_DOCS = 20
TERMS_THAT_STAY = 2

FATES = ("low_trust", "archived", "superseded", "expired", "future", "shadowed")

# The projection knows the present only; what was archived at an instant stands in the log.
_ARCHIVED = """
CASE WHEN :past THEN (
    SELECT v.op
    FROM memory_events v
    WHERE v.memory_id = m.id AND v.at <= :known AND v.op IN ('archive', 'restore', 'add')
    ORDER BY v.seq DESC
    LIMIT 1
) = 'archive' ELSE m.state = 'archived' END
"""
_ANSWERS = """
{e}.recorded_at <= :known
    AND ({e}.unrecorded_at IS NULL OR {e}.unrecorded_at > :known)
"""
_VALID = "{e}.valid_from <= :valid AND ({e}.valid_to IS NULL OR {e}.valid_to > :valid)"
_SHADOWED = f"""
m.key IS NOT NULL AND EXISTS (
    SELECT 1
    FROM memories s
    JOIN memory_editions se ON se.memory_id = s.id
    JOIN json_each(:scopes) stronger ON stronger.value = se.scope
    WHERE s.type = m.type
        AND s.key = m.key
        AND s.id <> m.id
        AND s.fork_id IN ('', :fork)
        AND s.state IN ('live', 'superseded', 'expired')
        AND stronger.key < (SELECT own.key FROM json_each(:scopes) own WHERE own.value = e.scope)
        AND {_ANSWERS.format(e="se")}
        AND {_VALID.format(e="se")}
)
"""
_FATE = f"""
CASE
    WHEN e.trust < :min_trust THEN 'low_trust'
    WHEN {_ARCHIVED} THEN 'archived'
    WHEN m.state = 'merged' THEN 'superseded'
    WHEN e.valid_to <= :valid THEN CASE m.state WHEN 'superseded' THEN 'superseded' ELSE 'expired' END
    WHEN e.valid_from > :valid THEN 'future'
    WHEN {_SHADOWED} THEN 'shadowed'
    ELSE ''
END
"""
_IN_SCOPE = """
(
    e.scope IN (SELECT value FROM json_each(:scopes))
    OR (:turns <> '' AND e.type = 'episode' AND e.scope LIKE 'session:%' AND e.workspace_id = :turns)
)
"""
_FILTERS = f"""
e.fork_id IN ('', :fork)
    AND {_ANSWERS.format(e="e")}
    AND m.state <> 'erased'
    AND (:types = '[]' OR e.type IN (SELECT value FROM json_each(:types)))
    AND (:author = '' OR e.author = :author)
    AND (:thread = '' OR e.thread = :thread)
    AND (:tags = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(:tags) wanted
        WHERE wanted.value NOT IN (SELECT value FROM json_each(e.tags))
    ))
"""
_MATCH = """
SELECT d.doc, d.edition_id, {score} AS lexical, {fate} AS fate
FROM {index}
JOIN recall_docs d ON d.doc = {index}.rowid
JOIN memory_editions e ON e.id = d.edition_id
JOIN memories m ON m.id = e.memory_id
WHERE {index} MATCH :match AND {scope} AND {filters}
"""
_FOUND = """
WITH found AS MATERIALIZED ({match}),
shown AS (
    SELECT doc, edition_id, lexical, fate
    FROM found
    WHERE fate = '' OR fate IN (SELECT value FROM json_each(:include))
    ORDER BY lexical DESC, doc
    LIMIT {most}
)
SELECT s.doc, s.edition_id, s.lexical, s.fate, e.memory_id, e.type, e.scope, e.thread, e.trust, m.stale, m.pinned,
    e.valid_from, e.recorded_at, m.updated_at, d.author, CASE WHEN :when THEN d.body ELSE '' END AS body, 0 AS number
FROM shown s
JOIN recall_docs d ON d.doc = s.doc
JOIN memory_editions e ON e.id = s.edition_id
JOIN memories m ON m.id = e.memory_id
UNION ALL
SELECT 0, '', 0.0, f.fate, '', '', '', '', 0, '', 0, 0, 0, 0, '', '', count(DISTINCT e.memory_id)
FROM found f
JOIN memory_editions e ON e.id = f.edition_id
WHERE f.fate <> '' AND f.fate NOT IN (SELECT value FROM json_each(:include))
GROUP BY f.fate
"""


def _found(index: str, weights: Sequence[float]) -> str:
    score = f"-bm25({', '.join([index, *map(str, weights)])})"
    match = _MATCH.format(index=index, score=score, fate=_FATE, scope=_IN_SCOPE, filters=_FILTERS)
    return _FOUND.format(match=match, most=CANDIDATES)


_LEXICAL = _found("recall_index", COLUMN_WEIGHTS)
_SUBSTRING = _found("recall_trigrams", ())
_STANDING = f"""
SELECT e.id
FROM memories m
JOIN memory_editions e ON e.id = m.head_edition
WHERE m.state = 'live'
    AND {_IN_SCOPE}
    AND {_FILTERS}
    AND (:pinned = 0 OR m.pinned = 1)
    AND (:doubtful = 0 OR m.stale <> 'no' OR EXISTS (
        SELECT 1 FROM links l WHERE l.to_id = m.id AND l.kind = 'contradicts' AND l.state = 'open'
    ))
    AND {_FATE} = ''
ORDER BY m.pinned DESC, e.trust DESC, m.updated_at DESC, m.id
LIMIT :most
"""
_ELSEWHERE = f"""
SELECT count(DISTINCT e.memory_id)
FROM recall_index
JOIN recall_docs d ON d.doc = recall_index.rowid
JOIN memory_editions e ON e.id = d.edition_id
WHERE recall_index MATCH :match AND NOT {_IN_SCOPE} AND e.unrecorded_at IS NULL
"""
_DOCS = "SELECT count(*) FROM recall_docs"
_FREQUENCIES = "SELECT term, doc FROM recall_stems WHERE term IN (SELECT value FROM json_each(:stems))"


@dataclass(frozen=True, slots=True)
class Filters:
    """Where and when recall looks. `scopes` run from the strongest; `turns` is the workspace whose sessions count."""

    scopes: tuple[str, ...]
    turns: str
    valid_at: int
    known_at: int
    past: bool = False
    fork_id: str = ""
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    author: str = ""
    thread: str = ""
    min_trust: Trust = Trust.FOREIGN
    include: tuple[str, ...] = ()

    def tokens(self) -> list[str]:
        """Return the index words of every scope that counts, in the base and in the caller's fork."""
        names = [*self.scopes, *([session_turns(self.turns)] if self.turns else [])]
        return [scope_token(name, fork) for name in names for fork in dict.fromkeys(("", self.fork_id))]

    def params(self) -> dict[str, object]:
        """Return the parameters of the queries."""
        return {
            "scopes": json.dumps(self.scopes),
            "turns": self.turns,
            "fork": self.fork_id,
            "valid": self.valid_at,
            "known": self.known_at,
            "past": self.past,
            "types": json.dumps(self.types),
            "tags": json.dumps(self.tags),
            "author": self.author,
            "thread": self.thread,
            "min_trust": int(self.min_trust),
            "include": json.dumps(self.include),
        }


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many of the `docs` documents each term occurs, whatever their scope."""

    docs: int
    of_term: Mapping[str, int]

    def is_common(self, term: str) -> bool:
        """Tell whether a term says too little: it stands in more than 30 % of the documents."""
        return self.docs >= COMMON_LEAST_DOCS and self.of_term.get(term, 0) > COMMON_SHARE * self.docs


@dataclass(frozen=True, slots=True)
class Found:
    """What one query gave: candidates by chunk, and how many memories were hidden, by reason."""

    candidates: list[Candidate]
    hidden: dict[str, int] = field(default_factory=dict)


def frequencies(reading: Reading, terms: Sequence[str]) -> Frequencies:
    """Return how common the terms are."""
    stems = {term: stem(term) for term in terms}
    rows = reading.all(_FREQUENCIES, stems=json.dumps(list(stems.values())))
    of_stem = {row["term"]: row["doc"] for row in rows}
    return Frequencies(reading.value(_DOCS), {term: of_stem.get(base, 0) for term, base in stems.items()})


def telling_terms(question: Question, known: Frequencies) -> tuple[list[str], list[str]]:
    """Return the terms to ask for and those dropped as too common; two always stay."""
    common = [term for term in question.terms if known.is_common(term)]
    kept = [term for term in question.terms if term not in common]
    if len(kept) >= TERMS_THAT_STAY:
        return kept, common
    return list(question.terms), []


def search(reading: Reading, terms: Sequence[str], question: Question, filters: Filters) -> Found:
    """Return what matches any of the terms, the best chunk of each memory."""
    if not terms:
        return Found([])
    match = match_expression(terms, filters.tokens())
    return _run(reading, _LEXICAL, match, question, filters)


def search_substrings(reading: Reading, question: Question, filters: Filters) -> Found:
    """Return what holds a word of the question inside its title or an identifier."""
    match = substring_expression(question)
    return _run(reading, _SUBSTRING, match, question, filters) if match else Found([])


def standing_editions(
    reading: Reading, filters: Filters, *, most: int, pinned: bool = False, doubtful: bool = False
) -> list[str]:
    """Return the editions that hold now, without a question: pinned ones, then the most trusted, then the newest.

    `doubtful` keeps to those that are stale or contradicted.
    """
    rows = reading.all(_STANDING, most=most, pinned=int(pinned), doubtful=int(doubtful), **filters.params())
    return [row["id"] for row in rows]


def count_elsewhere(reading: Reading, terms: Sequence[str], filters: Filters) -> int:
    """Return how many memories outside of these scopes match: a number, never their texts or ids."""
    if not terms:
        return 0
    number: int = reading.value(
        _ELSEWHERE, match=match_expression(terms), scopes=json.dumps(filters.scopes), turns=filters.turns
    )
    return number


def _run(reading: Reading, sql: str, match: str, question: Question, filters: Filters) -> Found:
    rows = reading.all(sql, match=match, when=question.asks_when, **filters.params())
    best: dict[str, Candidate] = {}
    hidden: dict[str, int] = {}
    for row in sorted(rows, key=lambda each: -each["lexical"]):
        if not row["edition_id"]:
            hidden[row["fate"]] = row["number"]
        elif row["memory_id"] not in best:
            best[row["memory_id"]] = _candidate(row)
    return Found(list(best.values()), hidden)


def _candidate(row: sqlite3.Row) -> Candidate:
    return Candidate(
        memory_id=row["memory_id"],
        edition_id=row["edition_id"],
        doc=row["doc"],
        type=row["type"],
        scope=row["scope"],
        author_words=tuple(row["author"].split()),
        thread=row["thread"] if row["type"] == "episode" else "",
        trust=Trust(row["trust"]),
        stale=row["stale"],
        pinned=bool(row["pinned"]),
        valid_from=row["valid_from"],
        recorded_at=row["recorded_at"],
        touched_at=row["updated_at"],
        lexical=row["lexical"],
        speaks_of_time=bool(row["body"]) and speaks_of_time(row["body"]),
        fate=row["fate"],
    )
