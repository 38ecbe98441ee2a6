"""One supervised process tree: started in a session of its own, watched by one thread, and ended as a whole."""

import hashlib
import os
import selectors
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

from agentstead.runner.command import Command, Exit, ExitReason, Stream
from agentstead.runner.environment import MARKER
from agentstead.runner.sightings import Identity, end_marked, group_members, identify
from agentstead.state import Unavailable

if TYPE_CHECKING:
    from resource import struct_rusage

_READ_BYTES: Final = 2**16
_TICK_S: Final = 0.05
_DRAIN_S: Final = 2.0


@dataclass(slots=True)
class _Capture:
    """Hash all of a stream and keep its first bytes."""

    kept_bytes: int
    kept: bytearray = field(default_factory=bytearray)
    size: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def feed(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        self.size += len(chunk)
        self.kept += chunk[: max(0, self.kept_bytes - len(self.kept))]

    def stream(self) -> Stream:
        return Stream(self.digest.hexdigest(), self.size, bytes(self.kept))


class Supervised:
    """A started command: `wait` for it in one thread, `stop` it from any.

    Making one starts the program; raises Unavailable `runner.start_failed` where the system refuses.
    """

    def __init__(self, command: Command, process_id: str) -> None:
        self._limits = command.limits
        self._process_id = process_id
        self._began = time.monotonic()
        self._ended = self._began
        self._process = _start(command, process_id)
        self.identity: Identity = identify(self._process.pid)
        self._captures = {
            _number(self._process.stdout): _Capture(command.limits.stdout_kept_bytes),
            _number(self._process.stderr): _Capture(command.limits.stderr_kept_bytes),
        }
        self._cause: ExitReason | None = None
        self._handle = -1
        self._asked_to_stop = threading.Event()

    def stop(self) -> None:
        """Ask the process tree to end: TERM to its group, and KILL after the grace."""
        self._asked_to_stop.set()

    def wait(self) -> Exit:
        """Watch until nothing of the tree is alive; return what was measured."""
        with ExitStack() as stack:
            stack.callback(self._close)
            selector = stack.enter_context(selectors.DefaultSelector())
            for pipe in self._captures:
                selector.register(pipe, selectors.EVENT_READ)
            self._watch_leader(selector)
            self._watch(selector)
            self._forget_handle(selector)
            # The leader is dead but not reaped, so its number cannot have been given to a foreign group.
            orphans = group_members(self._process.pid)
            self._signal(signal.SIGKILL)
            code, usage = self._reap()
            orphans += end_marked(self._process_id)
            self._drain(selector)
        return self._exit(code, usage, orphans)

    def _watch_leader(self, selector: selectors.BaseSelector) -> None:
        """Wake up at the leader's end, where the system has handles of processes; else the tick finds it."""
        if hasattr(os, "pidfd_open"):
            self._handle = os.pidfd_open(self._process.pid)
            selector.register(self._handle, selectors.EVENT_READ)

    def _forget_handle(self, selector: selectors.BaseSelector) -> None:
        if self._handle >= 0:
            selector.unregister(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _watch(self, selector: selectors.BaseSelector) -> None:
        kill_at: float | None = None
        while not self._has_ended():
            self._read(selector, _TICK_S)
            self._cause = self._cause or self._reason_to_end()
            now = time.monotonic()
            if self._cause is not None and kill_at is None:
                self._signal(signal.SIGTERM)
                kill_at = now + self._limits.grace_s
            if kill_at is not None and now >= kill_at:
                self._signal(signal.SIGKILL)
        self._ended = time.monotonic()

    def _reason_to_end(self) -> ExitReason | None:
        if self._asked_to_stop.is_set():
            return "stopped"
        if time.monotonic() - self._began >= self._limits.wall_s:
            return "wall_limit"
        if sum(capture.size for capture in self._captures.values()) > self._limits.output_bytes:
            return "output_limit"
        return None

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _read(self, selector: selectors.BaseSelector, timeout_s: float) -> bool:
        """Take what the pipes hold; return whether any of them is still open."""
        for key, _ in selector.select(timeout_s):
            if key.fd == self._handle:
                continue
            chunk = os.read(key.fd, _READ_BYTES)
            if chunk:
                self._captures[key.fd].feed(chunk)
            else:
                selector.unregister(key.fd)
        return any(pipe in selector.get_map() for pipe in self._captures)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what was written before the end; a pipe that something foreign holds open is given up."""
        deadline = time.monotonic() + _DRAIN_S
        while self._read(selector, _TICK_S) and time.monotonic() < deadline:
            pass

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _reap(self) -> "tuple[int, struct_rusage]":
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return self._process.returncode, usage

    def _exit(self, code: int, usage: "struct_rusage", orphans: int) -> Exit:
        out, err = (capture.stream() for capture in self._captures.values())
        return Exit(
            process_id=self._process_id,
            reason=self._cause or ("exit" if code >= 0 else "signal"),
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            wall_us=int((self._ended - self._began) * 1e6),
            cpu_user_us=int(usage.ru_utime * 1e6),
            cpu_system_us=int(usage.ru_stime * 1e6),
            peak_rss_bytes=usage.ru_maxrss * 1024,
            stdout=out,
            stderr=err,
            orphans_killed=orphans,
            usage_complete=orphans == 0,
        )

    def _close(self) -> None:
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def _start(command: Command, process_id: str) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [str(command.program()), *command.argv[1:]],
            cwd=command.cwd,
            env={**command.environ, MARKER: process_id},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Unavailable(
            "runner.start_failed",
            f"{command.argv[0]!r} could not be started: {error.strerror}",
            remedy="Check that the program can be executed on this machine.",
        ) from None


def _number(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()
