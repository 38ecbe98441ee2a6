"""The append-only journal: one hash chain over every change, and the one change feed.

An entry's hash covers the entry before, its header and the SHA-256 of its body, never the body itself: an erasure can
blank a body and the chain still holds.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.state.ports import Origin, Redactor, redact_value

GENESIS = "0" * 64

_HEAD = "SELECT seq, hash, at_us FROM journal ORDER BY seq DESC LIMIT 1"
_APPEND = """
INSERT INTO journal (seq, at_us, workspace_id, subject, kind, principal, trace_id, body, body_sha256, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_FROM = """
SELECT seq, at_us, workspace_id, subject, kind, principal, trace_id, body, body_sha256, hash
FROM journal
WHERE seq > :after
ORDER BY seq
LIMIT :most
"""
_FROM_KINDS = """
SELECT seq, at_us, workspace_id, subject, kind, principal, trace_id, body, body_sha256, hash
FROM journal
WHERE seq > :after
    AND EXISTS (SELECT 1 FROM json_each(:kinds) AS wanted WHERE journal.kind GLOB wanted.value)
ORDER BY seq
LIMIT :most
"""
_BLANK = "UPDATE journal SET body = NULL WHERE seq = :seq"


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: its place in the chain, who caused it, and its redacted body (None once erased)."""

    seq: int
    at_us: int
    workspace_id: str
    subject: str
    kind: str
    principal: str
    trace_id: str
    body: Mapping[str, Any] | None
    body_sha256: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry: sequence, hash and time."""

    seq: int
    hash: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Verified:
    """What a walk over the chain found; `broken_seq` is the first entry that does not fit, `erased` blanked bodies."""

    entries: int
    erased: int
    head: Head
    broken_seq: int | None
    reason: str

    @property
    def holds(self) -> bool:
        """Tell whether every entry fits."""
        return self.broken_seq is None


class Chain:
    """The head of the chain inside one commit group; a rolled-back function puts it back with `restore`."""

    __slots__ = ("head",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.head = head(connection)

    def restore(self, to: Head) -> None:
        """Forget what was appended since `to`."""
        self.head = to

    def append(
        self,
        connection: sqlite3.Connection,
        redactor: Redactor,
        origin: Origin,
        *,
        at_us: int,
        workspace: str,
        subject: str,
        kind: str,
        body: Mapping[str, Any],
    ) -> int:
        """Write one entry behind the head; return its sequence."""
        text = json.dumps(redact_value(redactor, dict(body)), separators=(",", ":"), sort_keys=True)
        body_sha256 = hashlib.sha256(text.encode()).hexdigest()
        seq = self.head.seq + 1
        fields = (seq, at_us, workspace, subject, kind, origin.principal, origin.trace_id)
        digest = _link(self.head.hash, fields, body_sha256)
        connection.execute(_APPEND, (*fields, text, body_sha256, digest))
        self.head = Head(seq, digest, at_us)
        return seq


def head(connection: sqlite3.Connection) -> Head:
    """Return the newest entry's place; sequence 0 for an empty journal."""
    row = connection.execute(_HEAD).fetchone()
    return Head(0, GENESIS, 0) if row is None else Head(row[0], row[1], row[2])


def entries(connection: sqlite3.Connection, after: int, *, kinds: Sequence[str] = (), most: int = 500) -> list[Entry]:
    """Return up to `most` entries behind sequence `after`; `kinds` may hold globs (`sessions.*`)."""
    sql = _FROM_KINDS if kinds else _FROM
    rows = connection.execute(sql, {"after": after, "most": most, "kinds": json.dumps(list(kinds))})
    return [_entry(row) for row in rows]


def erase_body(connection: sqlite3.Connection, seq: int) -> None:
    """Blank the body of one entry; its digest and place stay."""
    connection.execute(_BLANK, {"seq": seq})


def verify(connection: sqlite3.Connection) -> Verified:
    """Walk the whole chain; stop at the first entry that does not fit."""
    last, erased, count = Head(0, GENESIS, 0), 0, 0
    for row in _all_rows(connection):
        reason = _fault(last, row)
        if reason:
            return Verified(count, erased, last, row["seq"], reason)
        count += 1
        erased += row["body"] is None
        last = Head(row["seq"], row["hash"], row["at_us"])
    return Verified(count, erased, last, None, "")


def _all_rows(connection: sqlite3.Connection) -> Iterator[sqlite3.Row]:
    after = -1
    while rows := connection.execute(_FROM, {"after": after, "most": 2000}).fetchall():
        yield from rows
        after = rows[-1]["seq"]


def _fault(last: Head, row: sqlite3.Row) -> str:
    if row["seq"] != last.seq + 1:
        return f"entry {last.seq + 1} is missing"
    if row["body"] is not None and hashlib.sha256(row["body"].encode()).hexdigest() != row["body_sha256"]:
        return "its body is not the one that was written"
    fields = tuple(row)[:7]
    return "" if _link(last.hash, fields, row["body_sha256"]) == row["hash"] else "its hash does not follow"


def _link(before: str, fields: tuple[Any, ...], body_sha256: str) -> str:
    header = json.dumps([before, *fields, body_sha256], separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(header.encode("utf-8", "surrogatepass")).hexdigest()


def _entry(row: sqlite3.Row) -> Entry:
    fields = dict(row)
    fields["body"] = None if row["body"] is None else json.loads(row["body"])
    return Entry(**fields)
