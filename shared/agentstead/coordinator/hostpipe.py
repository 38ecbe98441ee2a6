"""The shim's two pipes to its host: whole lines in, whole lines out. Standard library only."""

import os
import select
from collections import deque

from agentstead.coordinator.lines import Lines, TooLong

CHUNK = 64 * 1024
STDIN, STDOUT = 0, 1


class HostPipe:
    """Standard input and output, neither made non-blocking: their other ends may be shared with a terminal.

    `eof` says that the host sends no more, `gone` that it reads no more.
    """

    def __init__(self, line_bytes: int) -> None:
        self.eof = False
        self.gone = False
        self.untold_bytes = 0
        self._lines = Lines(line_bytes)
        self._untold: deque[memoryview] = deque()

    def read(self) -> "list[bytes | TooLong]":
        """Read once and return the lines that are whole now; a last line needs no line break."""
        try:
            chunk = os.read(STDIN, CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            self.eof = True
            chunk = b"\n" if self._lines.unfinished else b""
        return self._lines.feed(chunk)

    def tell(self, *lines: bytes) -> None:
        """Queue lines for the host."""
        for line in lines:
            self._untold.append(memoryview(line))
            self.untold_bytes += len(line)

    def write(self) -> None:
        """Write what the host takes at once: a pipe that is ready takes so many bytes without blocking."""
        while self._untold and not self.gone:
            line = self._untold[0]
            try:
                written = os.write(STDOUT, line[: select.PIPE_BUF])
            except OSError:
                self.gone = True
                return
            self.untold_bytes -= written
            if written == len(line):
                self._untold.popleft()
            else:
                self._untold[0] = line[written:]
            if not ready(STDOUT, select.POLLOUT):
                return

    def flush(self, timeout_s: float) -> None:
        """Write all that is queued, waiting up to `timeout_s` each time that the host is slow."""
        while self._untold and not self.gone and ready(STDOUT, select.POLLOUT, timeout_s):
            self.write()


def ready(fd: int, event: int, timeout_s: float = 0) -> bool:
    """Tell whether a descriptor is ready, waiting for it up to `timeout_s`."""
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(int(timeout_s * 1000)))
