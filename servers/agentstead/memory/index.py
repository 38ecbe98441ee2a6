"""The rows that recall searches: each edition's chunks, with the neighbours of a turn, kept beside every write.

Derived: everything here can be dropped and rebuilt from the editions and their texts.
"""

import json
import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from agentstead.memory import normal
from agentstead.memory.folding import fold
from agentstead.memory.scopes import scope_token, session_turns
from agentstead.state import Reading, Tx

NEIGHBOURS = 2

_IDENTIFIER = re.compile(
    r"`[^`\n]{1,120}`"  # code spans
    r"|[^\s`'\"()<>,;]*[./_\\-][^\s`'\"()<>,;]*\w"  # paths, dotted names, snake and kebab case
    r"|\b\w*(?:[a-z][A-Z]|[A-Z]{2}|\d)\w*\b"  # camel case, acronyms, numbers
    "|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]{2,}"
)
_NAMES_CHARS = 4_000

_EDITION = """
SELECT e.id, e.scope, e.workspace_id, e.type, e.key, e.tags, e.author, e.principal, e.thread, e.place, e.fork_id,
    e.unrecorded_at, t.title, t.body
FROM memory_editions e
JOIN memory_texts t ON t.id = e.text_id
WHERE e.id = :edition
"""
_NEAR = """
SELECT e.id, t.body
FROM memory_editions e
JOIN memory_texts t ON t.id = e.text_id
WHERE e.scope = :scope
    AND e.thread = :thread
    AND e.thread <> ''
    AND e.type = 'episode'
    AND e.fork_id = :fork
    AND e.unrecorded_at IS NULL
    AND e.place {beyond} :place
ORDER BY e.place {direction}
LIMIT :most
"""
_BEFORE = _NEAR.format(beyond="<", direction="DESC")
_AFTER = _NEAR.format(beyond=">", direction="ASC")
_PUT = """
INSERT INTO recall_docs (edition_id, chunk, scope_token, author, body, prev, next, far, ask, names)
VALUES (:edition, :chunk, :scope_token, :author, :body, :prev, :next, :far, :ask, :names)
ON CONFLICT (edition_id, chunk) DO UPDATE
SET scope_token = excluded.scope_token,
    author = excluded.author,
    body = excluded.body,
    prev = excluded.prev,
    next = excluded.next,
    far = excluded.far,
    ask = excluded.ask,
    names = excluded.names
WHERE (recall_docs.scope_token, recall_docs.author, recall_docs.body, recall_docs.prev, recall_docs.next)
    IS NOT (excluded.scope_token, excluded.author, excluded.body, excluded.prev, excluded.next)
    OR (recall_docs.far, recall_docs.ask, recall_docs.names) IS NOT (excluded.far, excluded.ask, excluded.names)
"""
_CLEAR = "DELETE FROM recall_docs"
_EVERY = "SELECT id FROM memory_editions WHERE text_hash <> '' ORDER BY recorded_at, id"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The texts around one turn of a thread, folded; empty for everything that is no turn."""

    prev: str = ""
    next: str = ""
    far: str = ""
    ask: str = ""


def put(tx: Tx, edition_id: str) -> None:
    """Index an edition as it stands; a turn, begun or ended, also refreshes the two turns on each side of it."""
    row = _edition(tx, edition_id)
    _put(tx, row)
    if _is_turn(row):
        for near in (*_near(tx, row, _BEFORE), *_near(tx, row, _AFTER)):
            _put(tx, _edition(tx, near["id"]))


def rebuild(tx: Tx) -> int:
    """Drop every row and index every edition anew; return how many editions there are."""
    tx.execute(_CLEAR)
    editions = [row["id"] for row in tx.all(_EVERY)]
    for edition_id in editions:
        _put(tx, _edition(tx, edition_id))
    return len(editions)


def indexed_author(author: str, principal: str) -> str:
    """Return the author's name as recall sees it: one that was given, not the caller's that stands in for it."""
    return "" if author == principal else " ".join(fold(author))


def identifiers(*texts: str) -> str:
    """Return names that a part of can be asked for: identifiers, paths, numbers, runs of close scripts."""
    found = dict.fromkeys(part.strip("`") for text in texts for part in _IDENTIFIER.findall(text))
    return "\n".join(found)[:_NAMES_CHARS]


def _edition(reading: Reading, edition_id: str) -> sqlite3.Row:
    row = reading.one(_EDITION, edition=edition_id)
    assert row is not None, edition_id
    return row


def _put(tx: Tx, row: sqlite3.Row) -> None:
    # What is believed no more stands alone: its rows must not depend on what its thread became since.
    around = _surroundings(tx, row) if _is_turn(row) and row["unrecorded_at"] is None else Surroundings()
    tags = json.loads(row["tags"])
    # A title made from the text would count its first words twice.
    title = "" if row["title"] == normal.title_of(row["body"]) else row["title"]
    for number, chunk in enumerate(normal.chunks(row["body"])):
        tx.execute(
            _PUT,
            edition=row["id"],
            chunk=number,
            scope_token=" ".join(_tokens(row)),
            author=indexed_author(row["author"], row["principal"]),
            body=_folded(title, chunk, *tags),
            prev=around.prev,
            next=around.next,
            far=around.far,
            ask=around.ask,
            names="\n".join([row["title"], *filter(None, (row["key"], identifiers(chunk)))]),
        )


def _tokens(row: sqlite3.Row) -> Iterable[str]:
    yield scope_token(row["scope"], row["fork_id"])
    if row["scope"].startswith("session:") and row["type"] == "episode":
        yield scope_token(session_turns(row["workspace_id"]), row["fork_id"])


def _surroundings(reading: Reading, row: sqlite3.Row) -> Surroundings:
    before = [near["body"] for near in _near(reading, row, _BEFORE)]
    after = [near["body"] for near in _near(reading, row, _AFTER)]
    return Surroundings(
        prev=_folded(*before[:1]),
        next=_folded(*after[:1]),
        far=_folded(*before[1:], *after[1:]),
        ask=_folded(*(normal.questions(text) for text in before[:1])),
    )


def _near(reading: Reading, row: sqlite3.Row, sql: str) -> list[sqlite3.Row]:
    return reading.all(
        sql, scope=row["scope"], thread=row["thread"], fork=row["fork_id"], place=row["place"], most=NEIGHBOURS
    )


def _is_turn(row: sqlite3.Row) -> bool:
    return bool(row["type"] == "episode" and row["thread"] and row["place"] is not None)


def _folded(*texts: str) -> str:
    return " ".join(word for text in texts for word in fold(text))
