"""The registry of crash points: where a test may kill the process with SIGKILL.

`AGENTSTEAD_CRASH=NAME[:k]` kills at the k-th passage (1). A point that nobody declared is an error, so a sweep over
`CRASH_POINTS` sees them all.
"""

import os
import signal
from collections import Counter


class CrashPoints:
    """Names declared by packages, and the one that this process was told to die at."""

    def __init__(self, wanted: str = "") -> None:
        name, _, passage = wanted.partition(":")
        self._wanted = name
        self._passage = int(passage or "1")
        self._declared: set[str] = set()
        self._passed: Counter[str] = Counter()

    def declare(self, effect: str) -> tuple[str, str]:
        """Register `effect.before` and `effect.after`; return both names."""
        names = (f"{effect}.before", f"{effect}.after")
        self._declared.update(names)
        return names

    def names(self) -> list[str]:
        """Return every declared point, sorted."""
        return sorted(self._declared)

    def pass_by(self, name: str) -> None:
        """Note a passage; end the process where it is the wanted one."""
        if name not in self._declared:
            raise KeyError(f"crash point {name} is not declared")
        if name != self._wanted:
            return
        self._passed[name] += 1
        if self._passed[name] == self._passage:
            os.kill(os.getpid(), signal.SIGKILL)


CRASH_POINTS = CrashPoints(os.environ.get("AGENTSTEAD_CRASH", ""))
CRASH_POINTS.declare("commit")


def crash_point(name: str) -> None:
    """Pass a declared point; the process dies here if `AGENTSTEAD_CRASH` says so."""
    CRASH_POINTS.pass_by(name)
