"""`agentstead serve NAME`: the program that a host starts; it pumps whole lines between the host and the coordinator.

Imports nothing but light modules of the standard library: no `mcp`, `pydantic`, `asyncio`, `threading`, `logging`.
"""

import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress

from agentstead.coordinator import greeting
from agentstead.coordinator.arguments import USAGE, serve_arguments
from agentstead.coordinator.hostpipe import CHUNK, STDIN, STDOUT, HostPipe, ready
from agentstead.coordinator.ledger import Ledger, Outgoing, oversize
from agentstead.coordinator.lines import Lines, TooLong
from agentstead.coordinator.reach import Reach, Unreachable
from agentstead.coordinator.spawn import command
from agentstead.coordinator.version import installed_version

UNAVAILABLE = 7
QUEUE_BYTES = 1024 * 1024
# A result may repeat a request of full length.
ANSWER_BYTES = 2 * greeting.LINE_BYTES
# A host that closes our input is gone, and we must be within 100 ms; what is answered until then still arrives.
GRACE_S = 0.08
# A host that has not said anything yet is given this long to hear why nothing works.
CONFESSION_S = 2.0
REACHING_MS = 5
PARKED_MS = 250
_CHANGED = ("tools", "resources", "prompts")


class Shim:
    """One host's connection to one server, over as many coordinators as it takes."""

    def __init__(self, home: str, server: str, *, toolset: str = "core", program: "tuple[str, ...]" = ()) -> None:
        self._version = installed_version()
        self._hello = greeting.hello(server, toolset=toolset, version=self._version)
        self._home = home
        self._command = command(home, program)
        self._ledger = Ledger()
        self._host = HostPipe(greeting.LINE_BYTES)
        self._heard = Lines(ANSWER_BYTES)
        self._queue: deque[Outgoing] = deque()
        self._queued_bytes = 0
        self._written = 0
        self._link: socket.socket | None = None
        self._reach: Reach | None = self._reaching(wanted=True)
        self._coordinator = ""
        self._leaving = False
        self._end = 0.0
        self._status: int | None = None
        self._poll = select.poll()
        self._watched: dict[int, int] = {}

    def run(self) -> int:
        """Pump until the host closes our input or no coordinator can be had; return the exit status."""
        while self._status is None:
            self._watch()
            self._attend(dict(self._poll.poll(self._timeout_ms())))
        self._close()
        return self._status

    def _attend(self, events: dict[int, int]) -> None:
        if STDIN in events:
            self._take(self._host.read())
        if self._reach is not None:
            self._come_closer(self._reach)
        elif self._link is not None and self._link.fileno() in events:
            self._receive(self._link)
        self._send()
        if STDOUT in events and self._status is None:
            self._host.write()
        self._perhaps_end()

    def _reaching(self, *, wanted: bool) -> Reach:
        return Reach(self._home, self._hello, self._version, command=self._command, wanted=wanted)

    def _take(self, lines: "list[bytes | TooLong]") -> None:
        for line in lines:
            if isinstance(line, TooLong):
                self._host.tell(oversize(line.head, greeting.LINE_BYTES))
            elif (item := self._ledger.from_host(line)) is not None:
                self._queue.append(item)
                self._queued_bytes += len(item.line)
        if self._reach is not None and self._queue:
            self._reach.wanted = True
        if self._host.eof and not self._end:
            self._end = time.monotonic() + GRACE_S

    def _come_closer(self, reach: Reach) -> None:
        try:
            link = reach.step()
        except Unreachable as error:
            self._give_up(error)
            return
        if link is None:
            return
        self._link, self._reach, self._leaving = link, None, False
        again = self._ledger.again()
        self._queue.extendleft(reversed(again))
        self._queued_bytes += sum(len(item.line) for item in again)
        if self._ledger.legacy and self._coordinator not in ("", reach.version):
            self._host.tell(*(_list_changed(what) for what in _CHANGED))
        self._coordinator = reach.version
        self._heard = Lines(ANSWER_BYTES)
        self._hear(reach.tail)

    def _receive(self, link: socket.socket) -> None:
        try:
            chunk = link.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._hear(chunk)
        else:
            self._lost()

    def _hear(self, chunk: bytes) -> None:
        for line in self._heard.feed(chunk):
            if isinstance(line, TooLong):
                self._lost()
                return
            if line.startswith(greeting.LEAVING_HEAD):
                self._leaving = True
            elif (told := self._ledger.from_coordinator(line)) is not None:
                self._host.tell(told)

    def _send(self) -> None:
        """Hand over what is queued; a coordinator that is leaving gets the rest of a begun line and then our end."""
        while self._link is not None and self._sendable():
            item = self._queue[0]
            try:
                self._written += self._link.send(memoryview(item.line)[self._written :])
            except BlockingIOError:
                return
            except OSError:
                self._lost()
                return
            if self._written == len(item.line):
                self._queue.popleft()
                self._queued_bytes -= len(item.line)
                self._written = 0
                self._ledger.sent(item)
        if self._link is not None and (self._leaving or self._host.eof):
            _finish(self._link)

    def _sendable(self) -> bool:
        return bool(self._queue) and (self._written > 0 or not self._leaving)

    def _lost(self) -> None:
        """Go back to where this coordinator was met: half lines are dropped, the host hears what is lost."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._host.tell(*self._ledger.lost())
        self._written = 0
        self._queue = deque(item for item in self._queue if item.lasting and not self._host.eof)
        self._queued_bytes = sum(len(item.line) for item in self._queue)
        if self._host.eof:
            self._ledger.open.clear()
        else:
            # One that left on purpose is not started again until the host has something to say.
            self._reach = self._reaching(wanted=not self._leaving or bool(self._queue) or self._ledger.waiting)

    def _give_up(self, error: Unreachable) -> None:
        """Tell the host why: by the answer to what it asked or asks next, and on standard error."""
        print(f"agentstead: {error}", file=sys.stderr)
        self._close()  # another shim may have better luck meanwhile
        if not self._ledger.open and not self._host.eof and ready(STDIN, select.POLLIN, CONFESSION_S):
            self._take(self._host.read())
        self._host.tell(*self._ledger.refuse(error.code, error.message, error.remedy))
        self._host.flush(CONFESSION_S)
        self._status = UNAVAILABLE

    def _watch(self) -> None:
        """Ask for the events that can be used now; a full buffer stops the reading of its source."""
        wanted: dict[int, int] = {}
        if not self._host.eof and self._queued_bytes < QUEUE_BYTES:
            wanted[STDIN] = select.POLLIN
        elif not self._host.eof and self._link is None:
            wanted[STDIN] = 0  # a host that hangs up is noticed even so
        if self._host.untold_bytes:
            wanted[STDOUT] = select.POLLOUT
        if self._link is not None:
            receive = select.POLLIN if self._host.untold_bytes < QUEUE_BYTES else 0
            send = select.POLLOUT if self._sendable() else 0
            if receive or send:
                wanted[self._link.fileno()] = receive | send
        elif self._reach is not None and self._reach.fileno() >= 0:
            wanted[self._reach.fileno()] = select.POLLIN
        for fd in self._watched.keys() - wanted.keys():
            self._poll.unregister(fd)
        for fd, events in wanted.items():
            if self._watched.get(fd) != events:
                self._poll.register(fd, events)
        self._watched = wanted

    def _timeout_ms(self) -> int | None:
        waits = []
        if self._reach is not None:
            waits.append(REACHING_MS if self._reach.wanted or self._reach.fileno() >= 0 else PARKED_MS)
        if self._host.eof:
            waits.append(max(0, int((self._end - time.monotonic()) * 1000) + 1))
        return min(waits) if waits else None

    def _perhaps_end(self) -> None:
        if self._status is not None:
            return
        if self._host.gone:
            self._status = 0
        elif self._host.eof:
            outstanding = self._ledger.open or self._queue or self._host.untold_bytes
            if not outstanding or time.monotonic() >= self._end:
                self._status = 0

    def _close(self) -> None:
        if self._reach is not None:
            self._reach.close()
        if self._link is not None:
            self._link.close()


def _finish(link: socket.socket) -> None:
    with suppress(OSError):  # it is gone, and the next read says so
        link.shutdown(socket.SHUT_WR)


def _list_changed(what: str) -> bytes:
    return f'{{"jsonrpc":"2.0","method":"notifications/{what}/list_changed"}}\n'.encode()


def main(argv: "list[str]", *, program: "tuple[str, ...]" = ()) -> int:
    """Run the shim with what follows `serve` on the command line; return the exit status.

    `program` is what runs the coordinator in place of this interpreter and `agentstead.coordinator`.
    """
    wanted = serve_arguments(argv)
    if wanted is None:
        print(USAGE, file=sys.stderr)
        return 2
    if wanted.standalone:
        from agentstead.coordinator import standalone

        return standalone.main(argv)
    try:
        return Shim(wanted.home, wanted.name, toolset=wanted.toolset, program=program).run()
    except KeyboardInterrupt:
        return 130
