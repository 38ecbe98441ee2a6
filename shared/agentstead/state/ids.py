"""Prefixed, sortable ids: `ses_` and a ULID."""

import os
import re
import threading
from collections.abc import Callable

from ulid import ULID

from agentstead.state.clock import Clock

_ID = re.compile(r"^[a-z]{3}_[0-9A-HJKMNP-TV-Z]{26}$")

Randomness = Callable[[int], bytes]

_MOST = 2**80 - 1


class _Last:
    """The newest id of this process: ids of one millisecond count up, so that they sort as they were made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._millisecond = -1
        self._tail = 0

    def next(self, millisecond: int, randomness: Randomness) -> bytes:
        with self._lock:
            if millisecond == self._millisecond and self._tail < _MOST:
                self._tail += 1
            else:
                self._millisecond = millisecond
                # The top bit stays free, so that counting up does not run over.
                self._tail = int.from_bytes(randomness(10), "big") >> 1
            return millisecond.to_bytes(6, "big") + self._tail.to_bytes(10, "big")


_LAST = _Last()


def new_id(prefix: str, clock: Clock, *, randomness: Randomness = os.urandom) -> str:
    """Return `prefix` and a ULID of the clock's millisecond; ids made one after another by a process sort so."""
    return prefix + str(ULID(_LAST.next(clock.now_us() // 1000, randomness)))


def is_id(text: str, prefix: str) -> bool:
    """Tell whether `text` has the form of an id with this prefix."""
    return text.startswith(prefix) and _ID.match(text) is not None
