"""Reading memories as they stand, with their newest edition and text; scopes are part of every query."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.memory.log import Edition
from agentstead.memory.scopes import Reach
from agentstead.memory.vocabulary import Channel, MemoryState, MemoryType, Stale, Trust
from agentstead.state import Reading

_COLUMNS = """
m.id, m.state, m.pinned, m.stale, m.suspect, m.channel, m.version, m.created_at, m.updated_at, m.head_edition,
    e.id AS edition_id, e.ordinal, e.text_id, e.scope, e.workspace_id, e.type, e.key, e.slug, e.attributes, e.tags,
    e.valid_from, e.valid_to, e.recorded_at, e.unrecorded_at, e.trust, e.taint, e.author, e.principal, e.source_kind,
    e.source_ref, e.thread, e.place, e.fork_id, e.text_hash, t.title, t.body
"""
_HEAD = f"""
SELECT {_COLUMNS}
FROM memories m
JOIN memory_editions e ON e.id = m.head_edition
JOIN memory_texts t ON t.id = e.text_id
"""
_OF_EDITION = f"""
SELECT {_COLUMNS}
FROM memory_editions e
JOIN memories m ON m.id = e.memory_id
JOIN memory_texts t ON t.id = e.text_id
WHERE e.id IN (SELECT value FROM json_each(:ids))
"""
_BY_IDS = _HEAD + "WHERE m.id IN (SELECT value FROM json_each(:ids))"
_EXACT = (
    _HEAD
    + """
WHERE m.state IN ('live', 'superseded', 'expired')
    AND m.fork_id IN ('', :fork)
    AND (e.valid_to IS NULL OR e.valid_to > :start)
    AND (:end IS NULL OR e.valid_from < :end)
    AND (:turn = 0 OR (e.thread = :thread AND e.place IS :place))
    AND m.head_edition IN (
        SELECT x.id
        FROM memory_editions x
        WHERE x.scope = :scope AND x.type = :type AND x.text_hash = :text_hash AND x.unrecorded_at IS NULL
    )
ORDER BY m.id
LIMIT 1
"""
)
_SLOT = (
    _HEAD
    + """
WHERE m.scope = :scope AND m.type = :type AND m.key = :key AND m.state = 'live' AND m.fork_id IN ('', :fork)
ORDER BY m.fork_id DESC
LIMIT 1
"""
)
_OVERLAP = (
    _HEAD
    + """
WHERE m.scope = :scope
    AND m.type = :type
    AND m.key = :key
    AND m.fork_id IN ('', :fork)
    AND m.state IN ('live', 'superseded', 'expired')
    AND e.unrecorded_at IS NULL
    AND (e.valid_to IS NULL OR (e.valid_to > :start AND e.valid_to > e.valid_from))
    AND (:end IS NULL OR e.valid_from < :end)
    AND m.id NOT IN (SELECT value FROM json_each(:beside))
ORDER BY m.id
LIMIT 1
"""
)
_LAST_PLACE = """
SELECT max(place) FROM memory_editions
WHERE scope = :scope AND thread = :thread AND thread <> '' AND unrecorded_at IS NULL
"""


Span = tuple[int, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory in one edition, its newest unless asked otherwise."""

    id: str
    state: MemoryState
    pinned: bool
    stale: Stale
    suspect: str
    channel: Channel
    version: int
    created_at: int
    updated_at: int
    edition_id: str
    ordinal: int
    recorded_at: int
    unrecorded_at: int | None
    title: str
    text: str
    edition: Edition

    @property
    def scope(self) -> str:
        """Return the scope's id."""
        return self.edition.scope

    @property
    def type(self) -> MemoryType:
        """Return the type."""
        return self.edition.type

    @property
    def trust(self) -> Trust:
        """Return the trust of this edition."""
        return self.edition.trust


def load(reading: Reading, ids: Sequence[str]) -> dict[str, Memory]:
    """Return the memories of these ids by id, in any scope; an unknown id is left out."""
    return {row["id"]: _memory(row) for row in reading.all(_BY_IDS, ids=json.dumps(list(ids)))}


def load_editions(reading: Reading, ids: Sequence[str]) -> dict[str, Memory]:
    """Return memories as these editions have them, by edition id."""
    return {row["edition_id"]: _memory(row) for row in reading.all(_OF_EDITION, ids=json.dumps(list(ids)))}


def find_exact(
    reading: Reading,
    *,
    scope: str,
    memory_type: MemoryType,
    text_hash: str,
    fork_id: str,
    span: Span,
    turn: tuple[str, int | None] | None = None,
) -> Memory | None:
    """Return the memory of this scope and type that says the same of a time in `span`; of a turn that very turn."""
    thread, place = turn or ("", None)
    row = reading.one(
        _EXACT,
        scope=scope,
        type=memory_type,
        text_hash=text_hash,
        fork=fork_id,
        start=span[0],
        end=span[1],
        turn=int(turn is not None),
        thread=thread,
        place=place,
    )
    return None if row is None else _memory(row)


def find_slot(reading: Reading, *, scope: str, memory_type: MemoryType, key: str, fork_id: str) -> Memory | None:
    """Return the live memory in this slot; a fork's own comes before the base's."""
    row = reading.one(_SLOT, scope=scope, type=memory_type, key=key, fork=fork_id)
    return None if row is None else _memory(row)


def find_overlap(
    reading: Reading,
    *,
    scope: str,
    memory_type: MemoryType,
    key: str,
    fork_id: str,
    span: Span,
    beside: Sequence[str],
) -> Memory | None:
    """Return a memory in this slot that is believed of a time in `span`, besides those that are about to change."""
    row = reading.one(
        _OVERLAP,
        scope=scope,
        type=memory_type,
        key=key,
        fork=fork_id,
        start=span[0],
        end=span[1],
        beside=json.dumps(list(beside)),
    )
    return None if row is None else _memory(row)


def next_place(reading: Reading, *, scope: str, thread: str) -> int:
    """Return the number of the next turn of a thread, from 0."""
    last = reading.value(_LAST_PLACE, scope=scope, thread=thread)
    return 0 if last is None else last + 1


def readable(memory: Memory, reach: Reach, scopes: Sequence[str]) -> bool:
    """Tell whether a caller with these scopes sees a memory; sessions of its workspace count for turns."""
    edition = memory.edition
    if edition.fork_id not in ("", reach.fork_id):
        return False
    of_workspace = bool(reach.workspace_id) and edition.workspace_id == reach.workspace_id
    past_turn = of_workspace and edition.type == "episode" and edition.scope.startswith("session:")
    return reach.person or edition.scope in scopes or past_turn


def _memory(row: sqlite3.Row) -> Memory:
    attributes: Mapping[str, Any] = json.loads(row["attributes"])
    edition = Edition(
        memory_id=row["id"],
        text_id=row["text_id"],
        scope=row["scope"],
        workspace_id=row["workspace_id"],
        type=row["type"],
        key=row["key"],
        slug=row["slug"],
        attributes=attributes,
        tags=tuple(json.loads(row["tags"])),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        trust=Trust(row["trust"]),
        taint=tuple(json.loads(row["taint"])),
        author=row["author"],
        principal=row["principal"],
        source_kind=row["source_kind"],
        source_ref=row["source_ref"],
        thread=row["thread"],
        place=row["place"],
        fork_id=row["fork_id"],
        text_hash=row["text_hash"],
    )
    return Memory(
        id=row["id"],
        state=row["state"],
        pinned=bool(row["pinned"]),
        stale=row["stale"],
        suspect=row["suspect"],
        channel=row["channel"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        edition_id=row["edition_id"],
        ordinal=row["ordinal"],
        recorded_at=row["recorded_at"],
        unrecorded_at=row["unrecorded_at"],
        title=row["title"],
        text=row["body"],
        edition=edition,
    )
