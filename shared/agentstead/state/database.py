"""The state library's door: open a database, write by transaction functions, read by snapshots, wait for changes."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from agentstead.state import journal, migrations
from agentstead.state.clock import Clock, SystemClock
from agentstead.state.connections import Durability, connect_reader, connect_writer
from agentstead.state.cursors import Cursors
from agentstead.state.errors import Unavailable
from agentstead.state.feed import Feed
from agentstead.state.lock import HomeLock
from agentstead.state.ports import ORIGIN, NoRedaction, Redactor
from agentstead.state.readers import Readers
from agentstead.state.refs import References
from agentstead.state.transaction import Reading, Tx
from agentstead.state.writer import GROUP_LIMIT, Job, Writer

P = ParamSpec("P")
T = TypeVar("T")

Observe = Callable[[Callable[..., Any]], AbstractContextManager[None]]

DATABASE_FILE = "state.db"
STATE_MIGRATIONS = migrations.Migrations(package="state", anchor="agentstead.state")
MIGRATION_WAIT_S = 10.0

_FACT = "SELECT value FROM home_facts WHERE name = :name"
_SET_FACT = "INSERT INTO home_facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"


def _unobserved(_fn: Callable[..., Any]) -> AbstractContextManager[None]:
    return nullcontext()


class State:
    """One home's database as this process sees it; made by `State.open`.

    `observe` is a port: it wraps each write, from its queueing to its answer.
    """

    def __init__(
        self, path: Path, *, clock: Clock, redactor: Redactor, durability: Durability, group_limit: int
    ) -> None:
        self.path = path
        self.clock = clock
        self.redactor = redactor
        self.refs = References()
        self._feed = Feed(lambda: connect_reader(path))
        self._readers = Readers(lambda: connect_reader(path), clock)
        self._writer = Writer(
            lambda: connect_writer(path, durability),
            clock=clock,
            redactor=redactor,
            committed=self._feed.notify,
            group_limit=group_limit,
        )
        self.cursors = Cursors(b"")
        self.observe: Observe = _unobserved

    @classmethod
    async def open(
        cls,
        home: Path,
        *,
        sets: Sequence[migrations.Migrations] = (),
        clock: Clock | None = None,
        redactor: Redactor | None = None,
        durability: Durability = "full",
        group_limit: int | None = None,
        lock: HomeLock | None = None,
    ) -> "State":
        """Open (and, holding the home's lock, migrate) the database in `home`.

        `lock` is the lock that the caller already holds; without one it is taken for a needed migration only. Raises
        `Unavailable`: `home.newer`, or `coordinator.locked` where another process holds an older schema.
        """
        clock = clock or SystemClock()
        await asyncio.to_thread(_prepare, home, (STATE_MIGRATIONS, *sets), clock, durability, lock)
        state = cls(
            home / DATABASE_FILE,
            clock=clock,
            redactor=redactor or NoRedaction(),
            durability=durability,
            group_limit=group_limit or int(os.environ.get("AGENTSTEAD_GROUP_LIMIT", GROUP_LIMIT)),
        )
        state.cursors = Cursors(bytes.fromhex(await state.fact("cursor_key", lambda: os.urandom(32).hex())))
        return state

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one transaction function; its result comes back once it is on disk.

        Cancelling the wait does not undo the change.
        """
        with self.observe(fn):
            return await self._submit("write", lambda tx: fn(tx, *args, **kwargs))

    async def rehearse(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a transaction function, roll it back, and return its result."""
        return await self._submit("rehearse", lambda tx: fn(tx, *args, **kwargs))

    async def maintain(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` on the writer's own connection between groups, outside any transaction."""
        return await self._submit("maintain", fn)

    async def read(self, fn: Callable[Concatenate[Reading, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a reading function in one snapshot of the last commit."""
        result: T = await self._readers.run(fn, *args, **kwargs)
        return result

    async def wait(
        self, after: int, *, kinds: Sequence[str] = (), timeout_s: float, most: int = 500
    ) -> list[journal.Entry]:
        """Return journal entries behind `after`, waiting up to `timeout_s` for the first; empty when none came.

        `kinds` may hold globs (`network.*`). Changes of other processes count.
        """
        deadline = time.monotonic() + timeout_s
        with self._feed.waiting() as signal:
            while True:
                signal.event.clear()
                found = await self.read(Reading.entries, after, kinds=tuple(kinds), most=most)
                remaining = deadline - time.monotonic()
                if found or remaining <= 0:
                    return found
                try:
                    await asyncio.wait_for(signal.event.wait(), remaining)
                except TimeoutError:
                    return []

    async def fact(self, name: str, make: Callable[[], str]) -> str:
        """Return a fact of this home; the first caller's `make` decides it for good."""
        return await self.write(_fact, name, make)

    async def head(self) -> journal.Head:
        """Return the journal's newest place."""
        return await self.read(Reading.head)

    async def verify(self) -> journal.Verified:
        """Walk the journal's chain."""
        return await self.read(Reading.verify_journal)

    async def close(self) -> None:
        """Finish what is queued and close every connection."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.close()
        self._feed.close()
        self._readers.close()

    async def _submit(self, kind: str, run: Callable[..., T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._writer.submit(Job(run, loop, future, ORIGIN.get(), kind))
        return await future


def _fact(tx: Tx, name: str, make: Callable[[], str]) -> str:
    known = tx.value(_FACT, name=name)
    if known is None:
        known = make()
        tx.execute(_SET_FACT, name=name, value=known)
    return str(known)


def _prepare(
    home: Path,
    sets: Sequence[migrations.Migrations],
    clock: Clock,
    durability: Durability,
    lock: HomeLock | None,
) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    connection = connect_writer(home / DATABASE_FILE, durability)
    try:
        if migrations.pending(connection, sets):
            _migrate(home, connection, sets, clock, lock or HomeLock(home))
    finally:
        connection.close()
    (home / DATABASE_FILE).chmod(0o600)


def _migrate(
    home: Path,
    connection: sqlite3.Connection,
    sets: Sequence[migrations.Migrations],
    clock: Clock,
    lock: HomeLock,
) -> None:
    """Bring the schema up to date under the home's lock; a holder that is migrating now gets time to finish."""
    already = lock.held
    deadline = time.monotonic() + MIGRATION_WAIT_S
    while not lock.acquire():
        if not migrations.pending(connection, sets):
            return
        if time.monotonic() > deadline:
            raise Unavailable(
                "coordinator.locked",
                "Another process holds this home and has an older schema.",
                remedy="Run `agentstead stop`, then retry.",
                retryable=True,
            )
        time.sleep(0.05)
    try:
        if missing := migrations.pending(connection, sets):
            migrations.back_up(connection, home / "backups", clock)
            migrations.apply(connection, missing, clock)
    finally:
        if not already:
            lock.release()
