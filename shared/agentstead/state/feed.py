"""Waking those who wait for a change, whichever process made it.

While anyone waits, one thread watches `PRAGMA data_version`, which a commit by another connection moves.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agentstead.state.connections import Connect

POLL_S = 0.02


@dataclass(eq=False, slots=True)
class Signal:
    """One waiter's bell, rung on its own loop."""

    loop: asyncio.AbstractEventLoop
    event: asyncio.Event = field(default_factory=asyncio.Event)

    def ring(self) -> None:
        """Wake the waiter from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.event.set)


class Feed:
    """The waiters of this process."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._signals: set[Signal] = set()
        self._lock = threading.Lock()
        self._watched = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def notify(self) -> None:
        """Ring every bell."""
        with self._lock:
            signals = list(self._signals)
        for signal in signals:
            signal.ring()

    @contextmanager
    def waiting(self) -> Iterator[Signal]:
        """Register a bell for the running loop while the block runs."""
        signal = Signal(asyncio.get_running_loop())
        with self._lock:
            self._signals.add(signal)
            self._watch()
        try:
            yield signal
        finally:
            with self._lock:
                self._signals.discard(signal)
                if not self._signals:
                    self._watched.clear()

    def close(self) -> None:
        """End the watching thread."""
        self._closed = True
        self._watched.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        self._watched.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._poll, name="agentstead-feed", daemon=True)
            self._thread.start()

    def _poll(self) -> None:
        connection = self._connect()
        pause = threading.Event()
        seen = _data_version(connection)
        while not self._closed:
            self._watched.wait()
            version = _data_version(connection)
            if version != seen:
                seen = version
                self.notify()
            pause.wait(POLL_S)
        connection.close()


def _data_version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version
