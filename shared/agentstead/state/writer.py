"""The writer's thread: transaction functions in, one commit a group, answers out.

It takes what is queued, begins IMMEDIATE, runs each function in a savepoint, commits once and only then answers, so
that no caller sees a result that is not on disk. A function that raises fails alone; a commit that fails, fails all.
"""

import asyncio
import sqlite3
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentstead.state.clock import Clock
from agentstead.state.connections import Connect
from agentstead.state.crash import crash_point
from agentstead.state.errors import Unavailable
from agentstead.state.journal import Chain
from agentstead.state.ports import Origin, Redactor
from agentstead.state.transaction import Tx

GROUP_LIMIT = 256
BEGIN_DEADLINE_S = 30.0
# Measured: writers that never pause starve each other; half a millisecond kept four shares within 11 %.
GAP_S = 0.0005
CONTENDED_S = 1.0

_STOP = object()


@dataclass(slots=True)
class Job:
    """One function to run, and where its answer goes."""

    run: Callable[..., Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    origin: Origin
    kind: str = "write"
    result: Any = None
    error: BaseException | None = None
    done: list[Callable[[], None]] = field(default_factory=list)


class _Rehearsed(Exception):
    """Carry the result of a function whose changes must not last."""


class Writer:
    """The one thread of this process that writes; `submit` from any event loop."""

    def __init__(
        self,
        connect: Connect,
        *,
        clock: Clock,
        redactor: Redactor,
        committed: Callable[[], None],
        group_limit: int = GROUP_LIMIT,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._redactor = redactor
        self._committed = committed
        self._group_limit = group_limit
        self._queue: deque[Job | object] = deque()
        self._filled = threading.Condition()
        self._data_version = 0
        self._contended_until = 0.0
        self._thread = threading.Thread(target=self._serve, name="agentstead-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue one job."""
        if not self._thread.is_alive():
            raise Unavailable("coordinator.lost", "The state library is closed.", remedy="Retry.", retryable=True)
        with self._filled:
            self._queue.append(job)
            self._filled.notify()

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        with self._filled:
            self._queue.append(_STOP)
            self._filled.notify()
        self._thread.join()

    def _serve(self) -> None:
        connection = self._connect()
        self._data_version = connection.execute("PRAGMA data_version").fetchone()[0]
        try:
            while (group := self._take()) is not None:
                self._run_group(connection, group)
                _answer(group)
                if self._queue and self._is_contended(connection):
                    time.sleep(GAP_S)
        finally:
            connection.close()

    def _take(self) -> list[Job] | None:
        """Wait for work; return up to a group of it, maintenance alone, or None at the end."""
        with self._filled:
            self._filled.wait_for(lambda: bool(self._queue))
            group: list[Job] = []
            while self._queue and len(group) < self._group_limit:
                job = self._queue[0]
                if not isinstance(job, Job):
                    return group or None
                if job.kind == "maintain" and group:
                    break
                group.append(job)
                self._queue.popleft()
                if job.kind == "maintain":
                    break
            return group

    def _run_group(self, connection: sqlite3.Connection, group: list[Job]) -> None:
        if group[0].kind == "maintain":
            _run_alone(connection, group[0])
            return
        try:
            self._begin(connection)
            chain = Chain(connection)
            for job in group:
                self._run_job(connection, chain, job)
            crash_point("commit.before")
            connection.execute("COMMIT")
            crash_point("commit.after")
        except BaseException as error:
            _fail_all(connection, group, error)
            return
        for job in group:
            for fn in job.done:
                fn()
        self._committed()

    def _run_job(self, connection: sqlite3.Connection, chain: Chain, job: Job) -> None:
        before = chain.head
        tx = Tx(connection, self._clock, chain=chain, origin=job.origin, redactor=self._redactor, done=job.done)
        connection.execute("SAVEPOINT one")
        try:
            job.result = job.run(tx)
            if job.kind == "rehearse":
                raise _Rehearsed
            connection.execute("RELEASE one")
        except BaseException as error:
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
            chain.restore(before)
            job.done.clear()
            job.error = None if isinstance(error, _Rehearsed) else error

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Begin IMMEDIATE; while other processes write, try until the deadline."""
        deadline = time.monotonic() + BEGIN_DEADLINE_S
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
            else:
                return

    def _is_contended(self, connection: sqlite3.Connection) -> bool:
        """Tell whether another process wrote within the last second."""
        now = time.monotonic()
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._data_version:
            self._data_version = version
            self._contended_until = now + CONTENDED_S
        return now < self._contended_until


def _run_alone(connection: sqlite3.Connection, job: Job) -> None:
    try:
        job.result = job.run(connection)
    except BaseException as error:
        job.error = error


def _fail_all(connection: sqlite3.Connection, group: list[Job], error: BaseException) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    for job in group:
        job.done.clear()
        job.error = _translate(error)


def _translate(error: BaseException) -> BaseException:
    if not isinstance(error, sqlite3.Error):
        return error
    if _is_busy(error):
        return Unavailable(
            "coordinator.locked",
            f"Another process has held the database for {BEGIN_DEADLINE_S:.0f} s.",
            remedy="Retry; `agentstead doctor` names the process.",
            retryable=True,
        )
    code = "store.disk_low" if "full" in str(error) else "store.corrupt"
    return Unavailable(
        code, f"The database could not commit: {error}.", remedy="Run `agentstead doctor`.", retryable=True
    )


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _answer(group: list[Job]) -> None:
    """Hand the results back, one wake-up a loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = defaultdict(list)
    for job in group:
        by_loop[job.loop].append(job)
    for loop, jobs in by_loop.items():
        # A loop that was closed meanwhile has nobody left to tell; the change stays committed.
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
