"""The log is the truth: editions and events are appended, and `memories` is what they fold to."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentstead.memory import index, normal
from agentstead.memory.vocabulary import Channel, EventOp, MemoryState, MemoryType, Stale, Trust
from agentstead.state import Reading, Tx, canonical_json

EDITION = "med_"
TEXT = "mtx_"

_TEXT = "INSERT INTO memory_texts (id, title, body) VALUES (:id, :title, :body)"
_EDITION = """
INSERT INTO memory_editions (id, memory_id, ordinal, text_id, scope, workspace_id, type, key, slug, attributes, tags,
    valid_from, valid_to, recorded_at, trust, taint, author, principal, source_kind, source_ref, thread, place, fork_id,
    decision_id, text_hash)
VALUES (:id, :memory_id, :ordinal, :text_id, :scope, :workspace_id, :type, :key, :slug, :attributes, :tags,
    :valid_from, :valid_to, :recorded_at, :trust, :taint, :author, :principal, :source_kind, :source_ref, :thread,
    :place, :fork_id, :decision_id, :text_hash)
"""
_ORDINAL = "SELECT coalesce(max(ordinal), 0) + 1 FROM memory_editions WHERE memory_id = :memory_id"
# A clock that was set back must not end an edition before it began.
_END = """
UPDATE memory_editions
SET unrecorded_at = max(:now, recorded_at)
WHERE id = :id AND unrecorded_at IS NULL
"""
_EVENT = """
INSERT INTO memory_events (memory_id, edition_id, op, detail, decision_id, at)
VALUES (:memory_id, :edition_id, :op, :detail, :decision_id, :now)
"""
_EVENTS = "SELECT memory_id, edition_id, op, detail, at FROM memory_events WHERE memory_id = :memory_id ORDER BY seq"
_PROJECT = """
INSERT INTO memories (id, scope, workspace_id, type, key, slug, title, head_edition, state, pinned, author, trust,
    stale, suspect, channel, fork_id, created_at, updated_at, version)
SELECT e.memory_id, e.scope, e.workspace_id, e.type, e.key, e.slug, t.title, e.id, :state, :pinned, e.author, e.trust,
    :stale, :suspect, e.source_kind, e.fork_id, :created_at, :updated_at, :version
FROM memory_editions e
JOIN memory_texts t ON t.id = e.text_id
WHERE e.id = :head
ON CONFLICT (id) DO UPDATE
SET scope = excluded.scope,
    workspace_id = excluded.workspace_id,
    type = excluded.type,
    key = excluded.key,
    slug = excluded.slug,
    title = excluded.title,
    head_edition = excluded.head_edition,
    state = excluded.state,
    pinned = excluded.pinned,
    author = excluded.author,
    trust = excluded.trust,
    stale = excluded.stale,
    suspect = excluded.suspect,
    channel = excluded.channel,
    fork_id = excluded.fork_id,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at,
    version = excluded.version
"""
_CLEAR = "DELETE FROM memories"
_IDS = "SELECT DISTINCT memory_id FROM memory_events ORDER BY memory_id"
_SLUGS = """
SELECT slug FROM memories
WHERE scope = :scope AND type = :type AND fork_id = :fork AND (slug = :slug OR slug GLOB :slug || '-[0-9]*')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """What one immutable statement holds, besides its text."""

    memory_id: str
    text_id: str
    scope: str
    workspace_id: str
    type: MemoryType
    key: str | None
    slug: str
    attributes: Mapping[str, Any]
    tags: tuple[str, ...]
    valid_from: int
    valid_to: int | None
    trust: Trust
    author: str
    principal: str
    source_kind: Channel
    text_hash: str
    taint: tuple[str, ...] = ()
    source_ref: str = ""
    thread: str = ""
    place: int | None = None
    fork_id: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log, as the fold reads it."""

    op: EventOp
    edition_id: str
    at: int
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Folded:
    """What the events of one memory come to."""

    head: str
    state: MemoryState
    created_at: int
    updated_at: int
    version: int
    pinned: bool = False
    stale: Stale = "no"
    suspect: str = ""


_STATES: Mapping[EventOp, MemoryState] = {
    "add": "live",
    "restore": "live",
    "supersede": "superseded",
    "retract": "retracted",
    "archive": "archived",
    "expire": "expired",
    "merge": "merged",
    "erase": "erased",
}


def fold(events: Iterable[Event]) -> Folded | None:
    """Return what events come to, in their order; None for none."""
    folded: Folded | None = None
    for event in events:
        before = folded or Folded("", "live", event.at, event.at, 0)
        folded = replace(
            before,
            head=event.edition_id or before.head,
            state=_STATES.get(event.op, before.state),
            updated_at=event.at,
            version=before.version + 1,
            pinned=bool(event.detail["pinned"]) if event.op == "pin" else before.pinned,
            stale=_stale(event, before),
            suspect=_suspect(event, before),
        )
    return folded


def store_text(tx: Tx, *, title: str, body: str) -> str:
    """Keep a text, without secrets; return its id."""
    text_id = tx.new_id(TEXT)
    tx.execute(_TEXT, id=text_id, title=tx.redact(title), body=tx.redact(body))
    return text_id


def append_edition(tx: Tx, edition: Edition, *, decision_id: str) -> str:
    """Record an edition and index it; return its id."""
    edition_id = tx.new_id(EDITION)
    tx.execute(
        _EDITION,
        id=edition_id,
        memory_id=edition.memory_id,
        ordinal=tx.value(_ORDINAL, memory_id=edition.memory_id),
        text_id=edition.text_id,
        scope=edition.scope,
        workspace_id=edition.workspace_id,
        type=edition.type,
        key=edition.key,
        slug=edition.slug,
        attributes=canonical_json(dict(edition.attributes)).decode(),
        tags=json.dumps(edition.tags, ensure_ascii=False),
        valid_from=edition.valid_from,
        valid_to=edition.valid_to,
        recorded_at=tx.now_us,
        trust=int(edition.trust),
        taint=json.dumps(edition.taint),
        author=edition.author,
        principal=edition.principal,
        source_kind=edition.source_kind,
        source_ref=edition.source_ref,
        thread=edition.thread,
        place=edition.place,
        fork_id=edition.fork_id,
        decision_id=decision_id,
        text_hash=edition.text_hash,
    )
    return edition_id


def end_edition(tx: Tx, edition_id: str) -> None:
    """Stop believing an edition from now on; one that has ended stays as it is."""
    tx.execute(_END, id=edition_id, now=tx.now_us)
    index.put(tx, edition_id)


def append_event(
    tx: Tx, memory_id: str, *ops: EventOp, edition_id: str = "", decision_id: str = "", **detail: Any
) -> None:
    """Append a line of the log, or several that mean one change, and bring the memory's row in line with it."""
    for op in ops:
        tx.execute(
            _EVENT,
            memory_id=memory_id,
            edition_id=edition_id,
            op=op,
            detail=json.dumps(detail),
            decision_id=decision_id,
            now=tx.now_us,
        )
    project(tx, memory_id)
    if edition_id:
        index.put(tx, edition_id)


def events_of(reading: Reading, memory_id: str) -> list[Event]:
    """Return the log of one memory."""
    return [_event(row) for row in reading.all(_EVENTS, memory_id=memory_id)]


def project(tx: Tx, memory_id: str) -> None:
    """Write the row that the log of this memory folds to."""
    folded = fold(events_of(tx, memory_id))
    if folded is not None:
        tx.execute(
            _PROJECT,
            head=folded.head,
            state=folded.state,
            pinned=int(folded.pinned),
            stale=folded.stale,
            suspect=folded.suspect,
            created_at=folded.created_at,
            updated_at=folded.updated_at,
            version=folded.version,
        )


def project_all(tx: Tx) -> int:
    """Drop every row of `memories` and fold the whole log anew; return how many memories there are."""
    tx.execute(_CLEAR)
    ids = [row["memory_id"] for row in tx.all(_IDS)]
    for memory_id in ids:
        project(tx, memory_id)
    return len(ids)


def free_slug(reading: Reading, title: str, *, scope: str, type: MemoryType, fork_id: str) -> str:  # noqa: A002
    """Return the title's slug, with -2, -3 and so on where it is taken."""
    slug = normal.slug_of(title)
    taken = {row["slug"] for row in reading.all(_SLUGS, scope=scope, type=type, fork=fork_id, slug=slug)}
    number = 2
    free = slug
    while free in taken:
        free = f"{slug}-{number}"
        number += 1
    return free


def _event(row: sqlite3.Row) -> Event:
    return Event(row["op"], row["edition_id"], row["at"], json.loads(row["detail"]))


def _stale(event: Event, before: Folded) -> Stale:
    if event.op == "fresh":
        return "no"
    stale: Stale = event.detail["stale"] if event.op == "stale" else before.stale
    return stale


def _suspect(event: Event, before: Folded) -> str:
    if event.op == "clear":
        return ""
    return str(event.detail["path"]) if event.op == "suspect" else before.suspect
