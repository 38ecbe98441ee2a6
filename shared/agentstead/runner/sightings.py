"""Which process is which: by boot, pid and start time, so that a reused pid is never taken for ours."""

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentstead.runner.environment import MARKER

_PROC: Final = Path("/proc")
_ENDED: Final = ("Z", "X")
_GROUP_FIELD: Final = 2
_START_FIELD: Final = 19
_GONE_MS: Final = 5_000
# A killed process may have forked meanwhile: look again until a look finds none, but not for ever.
_ROUNDS: Final = 50


@dataclass(frozen=True, slots=True)
class Identity:
    """One process: `start_ticks` and `boot_id` are 0 and empty where the system does not tell them."""

    pid: int
    start_ticks: int
    boot_id: str


def boot_id() -> str:
    """Return the id of this boot, or an empty text where the system has none."""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""


def start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 where it has ended or is unknown."""
    fields = _stat(pid)
    return int(fields[_START_FIELD]) if fields and fields[0] not in _ENDED else 0


def identify(pid: int) -> Identity:
    """Return the identity of a process of this moment."""
    return Identity(pid, start_ticks(pid), boot_id())


def is_alive(identity: Identity) -> bool:
    """Tell whether exactly this process is still there; where the system cannot say, it is not."""
    return bool(identity.start_ticks) and identify(identity.pid) == identity


def group_members(leader_pid: int) -> int:
    """Return how many living processes besides its leader a process group holds; 0 where that cannot be seen."""
    if not _PROC.is_dir():
        return 0
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit() and entry.name != str(leader_pid)]
    return sum(_group_of_living(pid) == leader_pid for pid in pids)


def end_group(leader: Identity) -> bool:
    """Kill the process group that this process leads; false, and nothing done, where it is another process now."""
    if not is_alive(leader):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader.pid, signal.SIGKILL)
    _wait_gone(leader.pid)
    return True


def end_marked(process_id: str) -> int:
    """Kill every process of ours that was started under a process id; return how many.

    The mark in the environment finds those that left the group, and those that a crash kept from being recorded.
    """
    ended = 0
    for _ in range(_ROUNDS):
        found = [pid for pid in _marked(process_id) if _end(pid, process_id)]
        if not found:
            break
        ended += len(found)
    return ended


def _stat(pid: int) -> list[str]:
    """Return the fields of a process from its state on; empty where it is gone."""
    with suppress(OSError):
        # The name in parentheses may hold blanks and parentheses itself: fields count from the last one.
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return []


def _group_of_living(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[_GROUP_FIELD]) if fields and fields[0] not in _ENDED else 0


def _marked(process_id: str) -> list[int]:
    if not _PROC.is_dir():
        return []
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _carries(pid, process_id)]


def _carries(pid: int, process_id: str) -> bool:
    with suppress(OSError):
        return f"{MARKER}={process_id}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def _end(pid: int, process_id: str) -> bool:
    """Kill one process by a handle that was taken before the mark was read again."""
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if not _carries(pid, process_id):
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            _wait_readable(handle)
        finally:
            os.close(handle)
        return True
    return False


def _wait_gone(pid: int) -> None:
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            _wait_readable(handle)
        finally:
            os.close(handle)


def _wait_readable(handle: int) -> None:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll(_GONE_MS)
