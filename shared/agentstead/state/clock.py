"""Time as an object, so that tests can replace it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tell the time of day and an always rising one."""

    def now_us(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for deadlines."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_us(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()


class SimulatedClock:
    """A clock that moves only when told."""

    def __init__(self, start_us: int = 1_800_000_000_000_000) -> None:
        self._now_us = start_us
        self._start_us = start_us

    def now_us(self) -> int:
        """Return the simulated microseconds since 1970-01-01 UTC."""
        return self._now_us

    def monotonic(self) -> float:
        """Return the simulated seconds since the clock was made."""
        return (self._now_us - self._start_us) / 1e6

    def advance(self, *, seconds: float) -> None:
        """Move time on; a negative amount makes the wall clock jump back."""
        self._now_us += int(seconds * 1e6)
