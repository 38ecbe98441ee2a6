"""Work that goes on after the call that began it was answered; how it ends is always a row, never an exception."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final
from weakref import WeakKeyDictionary

from agentstead.kit import Home

_LOG: Final = logging.getLogger(__name__)


class Background:
    """The running work of one home in this process."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Begin some work and keep hold of it until it ends."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    @property
    def running(self) -> int:
        """Return how much is under way."""
        return len(self._tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("%s ended with %s", task.get_name(), type(error).__name__)


_OF_HOMES: WeakKeyDictionary[Home, Background] = WeakKeyDictionary()


def background_of(home: Home) -> Background:
    """Return the running work of a home."""
    return _OF_HOMES.setdefault(home, Background())
