"""What a transaction function is given: a consistent reading, or a transaction."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from agentstead.state import journal
from agentstead.state.clock import Clock
from agentstead.state.ids import new_id
from agentstead.state.ports import Origin, Redactor

_SEND = """
INSERT INTO outbox (delivery_id, topic, payload, state, attempts, next_at, created_at, error)
VALUES (:delivery_id, :topic, :payload, 'pending', 0, :now, :now, '')
ON CONFLICT (delivery_id) DO NOTHING
"""


class Reading:
    """One consistent snapshot of the database."""

    __slots__ = ("_clock", "_connection", "now_us")

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self.now_us = clock.now_us()

    def one(self, sql: str, /, **params: Any) -> sqlite3.Row | None:
        """Return the first row, or None."""
        row: sqlite3.Row | None = self._connection.execute(sql, params).fetchone()
        return row

    def all(self, sql: str, /, **params: Any) -> list[sqlite3.Row]:
        """Return every row."""
        return self._connection.execute(sql, params).fetchall()

    def value(self, sql: str, /, **params: Any) -> Any:
        """Return the first column of the first row, or None."""
        row = self._connection.execute(sql, params).fetchone()
        return None if row is None else row[0]

    def head(self) -> journal.Head:
        """Return the newest journal entry's place in this snapshot."""
        return journal.head(self._connection)

    def entries(self, after: int, *, kinds: tuple[str, ...] = (), most: int = 500) -> list[journal.Entry]:
        """Return journal entries behind `after`; see `journal.entries`."""
        return journal.entries(self._connection, after, kinds=kinds, most=most)

    def verify_journal(self) -> journal.Verified:
        """Walk the journal's chain in this snapshot."""
        return journal.verify(self._connection)


class Tx(Reading):
    """One transaction function's view: it reads its own writes, and all or nothing of them lasts."""

    __slots__ = ("_chain", "_done", "_origin", "_redactor")

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        *,
        chain: journal.Chain,
        origin: Origin,
        redactor: Redactor,
        done: list[Callable[[], None]],
    ) -> None:
        super().__init__(connection, clock)
        self._chain = chain
        self._origin = origin
        self._redactor = redactor
        self._done = done

    @property
    def principal(self) -> str:
        """Return who causes this change."""
        return self._origin.principal

    @property
    def trace_id(self) -> str:
        """Return the trace that asked for it; empty without one."""
        return self._origin.trace_id

    @property
    def traceparent(self) -> str:
        """Return the call's W3C `traceparent`; background work links back to it. Empty without one."""
        return self._origin.traceparent

    def execute(self, sql: str, /, **params: Any) -> int:
        """Run one statement; return how many rows it changed."""
        return self._connection.execute(sql, params).rowcount

    def new_id(self, prefix: str) -> str:
        """Return a fresh id with this prefix."""
        return new_id(prefix, self._clock)

    def redact(self, text: str) -> str:
        """Return `text` without secrets; whatever free text is stored passes it."""
        return self._redactor.text(text)

    def journal(self, kind: str, *, subject: str, body: Mapping[str, Any], workspace: str = "") -> int:
        """Append the entry of this mutation; return its sequence.

        `kind` is `<server>.<noun>.<past participle>`; strings in `body` are redacted before they are hashed.
        """
        return self._chain.append(
            self._connection,
            self._redactor,
            self._origin,
            at_us=self.now_us,
            workspace=workspace,
            subject=subject,
            kind=kind,
            body=body,
        )

    def send(self, topic: str, payload: Mapping[str, Any], *, delivery_id: str | None = None) -> str:
        """Queue an effect for after the commit: it runs at least once, under the returned delivery id."""
        delivery_id = delivery_id or self.new_id("dlv_")
        self.execute(_SEND, delivery_id=delivery_id, topic=topic, payload=json.dumps(payload), now=self.now_us)
        return delivery_id

    def erase_body(self, seq: int) -> None:
        """Blank the body of one journal entry."""
        journal.erase_body(self._connection, seq)

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Call `fn` on the writer's thread once this is on disk; never needed for correctness."""
        self._done.append(fn)
