"""The event log of a session: gapless, append-only, and each call's events named by digest in the journal."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from agentstead.sessions.machines import EventKind
from agentstead.sessions.sessions import get_open
from agentstead.state import Entry, Reading, Tx

INLINE_BYTES = 16 * 1024
BODY_BYTES = 4 * 1024 * 1024

TurnMark = Literal["begin", "end", "none"]

_INSERT = """
INSERT INTO events (session_id, seq, turn_id, kind, actor, body, blob, size, digest, archived, at)
VALUES (:session_id, :seq, :turn_id, :kind, :actor, :body, :blob, :size, :digest, 0, :at)
"""
_ADVANCE = """
UPDATE sessions
SET last_seq = :last_seq,
    last_active_at = :now
WHERE id = :id
"""
_PAGE = """
SELECT seq, turn_id, kind, actor, body, blob, size, at
FROM events
WHERE session_id = :session_id
    AND seq > :after
    AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
    AND archived = 0
ORDER BY seq
LIMIT :most
"""
_DIGESTS = """
SELECT seq, digest, body
FROM events
WHERE session_id = :session_id
    AND seq BETWEEN :first AND :last
ORDER BY seq
"""
_SENT_TURN = "SELECT id FROM turns WHERE session_id = :session_id AND state = 'sent'"
_BEGIN_TURN = """
INSERT INTO turns (
    id, session_id, ordinal, message_id, idempotency_key, fingerprint, state, effect_class, runtime, stop_reason,
    failure, started_at, ended_at
)
SELECT :id, :session_id, COALESCE(MAX(ordinal), 0) + 1, :id, :id, '', 'sent', 'irreversible', '{}', '', '', :now, NULL
FROM turns
WHERE session_id = :session_id
"""
_END_TURN = """
UPDATE turns
SET state = 'completed',
    stop_reason = 'recorded',
    ended_at = :now
WHERE session_id = :session_id
    AND state = 'sent'
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """One event as it will lie in the table: redacted JSON in `body`, or the id of a blob with it."""

    kind: EventKind
    size: int
    digest: str
    body: str | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one call recorded: the range of its events, and the turn that they belong to ('' outside one)."""

    first_seq: int
    last_seq: int
    turn_id: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event as it is read; the body of a large one is in the blob store."""

    seq: int
    turn_id: str
    kind: str
    actor: str
    body: Mapping[str, Any] | None
    blob: str | None
    size: int
    at: int


def encode(kind: EventKind, body: Mapping[str, Any]) -> tuple[EventKind, bytes]:
    """Return an event's stored bytes: sorted, compact JSON of its redacted body."""
    return kind, json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def stored(kind: EventKind, data: bytes, *, blob: str | None) -> Stored:
    """Return the row of an encoded event; `blob` is set for one that was put aside."""
    body = None if blob is not None else data.decode()
    return Stored(kind, len(data), sha256(data).hexdigest(), body, blob)


def append(tx: Tx, session_id: str, events: Sequence[Stored], *, turn: TurnMark) -> Recorded:
    """Append events behind the last one of an open session, as one journal entry."""
    session = get_open(tx, session_id)
    turn_id = _turn(tx, session_id, turn)
    first = session.last_seq + 1
    for seq, event in enumerate(events, first):
        tx.execute(
            _INSERT,
            session_id=session_id,
            seq=seq,
            turn_id=turn_id,
            kind=event.kind,
            actor=tx.principal,
            body=event.body,
            blob=event.blob,
            size=event.size,
            digest=event.digest,
            at=tx.now_us,
        )
    last = session.last_seq + len(events)
    tx.execute(_ADVANCE, id=session_id, last_seq=last, now=tx.now_us)
    if turn == "end":
        tx.execute(_END_TURN, session_id=session_id, now=tx.now_us)
    body = {"first_seq": first, "last_seq": last, "digest": fold([event.digest for event in events]), "turn": turn}
    tx.journal("sessions.events.recorded", subject=session_id, workspace=session.workspace_id, body=body)
    return Recorded(first, last, turn_id)


def page(
    reading: Reading, session_id: str, *, after: int = 0, kinds: Sequence[str] = (), most: int = 200
) -> list[EventRow]:
    """Return events behind `after` in order."""
    rows = reading.all(_PAGE, session_id=session_id, after=after, kinds=json.dumps(list(kinds)), most=most)
    return [_event(row) for row in rows]


def fold(digests: Sequence[str]) -> str:
    """Return the one digest that the journal keeps of a call's events: SHA-256 over their digests, a line each."""
    return sha256("\n".join(digests).encode()).hexdigest()


def fault_of(reading: Reading, entry: Entry) -> str:
    """Return what is wrong with the events that a journal entry names; empty when all are as they were recorded."""
    if entry.body is None:
        return ""
    first, last = int(entry.body["first_seq"]), int(entry.body["last_seq"])
    rows = reading.all(_DIGESTS, session_id=entry.subject, first=first, last=last)
    for row in rows:
        if row["body"] is not None and sha256(row["body"].encode()).hexdigest() != row["digest"]:
            return f"event {entry.subject}/{row['seq']} is not the one that was recorded"
    if [row["seq"] for row in rows] != list(range(first, last + 1)):
        return f"events {first} to {last} of {entry.subject} have a gap"
    if fold([row["digest"] for row in rows]) != entry.body["digest"]:
        return f"events {first} to {last} of {entry.subject} do not match journal entry {entry.seq}"
    return ""


def _turn(tx: Tx, session_id: str, mark: TurnMark) -> str:
    if mark == "begin":
        tx.execute(_END_TURN, session_id=session_id, now=tx.now_us)
        turn_id = tx.new_id("trn_")
        tx.execute(_BEGIN_TURN, id=turn_id, session_id=session_id, now=tx.now_us)
        return turn_id
    return str(tx.value(_SENT_TURN, session_id=session_id) or "")


def _event(row: sqlite3.Row) -> EventRow:
    fields = dict(row)
    fields["body"] = None if row["body"] is None else json.loads(row["body"])
    return EventRow(**fields)
