"""Reading threads: each with a connection of its own that cannot write."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentstead.state.clock import Clock
from agentstead.state.connections import Connect
from agentstead.state.transaction import Reading

READERS = 3


class Readers:
    """Run reading functions, each in one snapshot, off the event loop."""

    def __init__(self, connect: Connect, clock: Clock) -> None:
        self._connect = connect
        self._clock = clock
        self._own = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="agentstead-reader")

    async def run(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return `fn(reading, ...)`; the snapshot ends with it, so no reader holds up a checkpoint."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: self._read(fn, args, kwargs))

    def close(self) -> None:
        """End the threads and close their connections."""
        self._pool.shutdown(wait=True)
        for connection in self._open:
            connection.close()

    def _read(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            return fn(Reading(connection, self._clock), *args, **kwargs)
        finally:
            connection.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._connect()
            self._own.connection = connection
            self._open.append(connection)
        return connection
