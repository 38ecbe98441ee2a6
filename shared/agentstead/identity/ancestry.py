"""Which processes a process descends from, where the system tells; used to see whether a person typed a command."""

import subprocess
from collections.abc import Callable, Collection
from pathlib import Path

Parent = Callable[[int], int | None]

_DEPTH = 64
_PS_DEADLINE_S = 5.0


def ancestors(pid: int, *, parent: Parent | None = None) -> list[int]:
    """Return the ids of all processes above `pid`, nearest first; empty where the system does not say."""
    step = parent or parent_of
    found: list[int] = []
    above = step(pid)
    while above is not None and above > 0 and above not in found and len(found) < _DEPTH:
        found.append(above)
        above = step(above)
    return found


def descends_from(pid: int, owners: Collection[int], *, parent: Parent | None = None) -> bool | None:
    """Tell whether `pid` or a process above it is one of `owners`; None where the system does not say."""
    above = ancestors(pid, parent=parent)
    if not above:
        return None
    return any(each in owners for each in (pid, *above))


def parent_of(pid: int) -> int | None:
    """Return the id of a process's parent; None where it cannot be told."""
    status = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # the name of the program stands in brackets and may hold spaces and brackets itself
            return int(status.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return _parent_by_ps(pid)


def _parent_by_ps(pid: int) -> int | None:
    try:
        answer = subprocess.run(
            ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, timeout=_PS_DEADLINE_S, check=True, text=True
        )
        return int(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
