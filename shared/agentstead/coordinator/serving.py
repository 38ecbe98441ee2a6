"""The coordinator at work: it listens, answers commands, watches itself, and leaves without losing an answer."""

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import anyio

from agentstead.coordinator import places
from agentstead.coordinator.door import Door, Reply, Said
from agentstead.coordinator.hosted import Hosted
from agentstead.coordinator.statefile import Record, write_record
from agentstead.coordinator.terms import Terms
from agentstead.coordinator.version import is_older
from agentstead.coordinator.web import Web, base_url, bind
from agentstead.kit.http import Exchanges, Standing, hosts_of, http_app
from agentstead.state import Invalid, Unavailable

log = logging.getLogger(__name__)

DRAIN_S = 60.0
DRAIN_TOLD_S = 0.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Coordinator:
    """One home's servers on the local socket and on HTTP; made for one `run`."""

    def __init__(self, terms: Terms, hosted: Hosted, record: Record, *, announce: Callable[[Record], None]) -> None:
        self._terms = terms
        self._hosted = hosted
        self._announce = announce
        self._record = replace(record, servers=hosted.names, warnings=hosted.warnings)
        self._keep = terms.started_by == "user"
        self._exchanges = Exchanges()
        self._web: Web | None = None
        self._stop = anyio.Event()
        self._leaving = ("", 0.0)
        self._began = anyio.current_time()
        self._door = Door(Path(places.socket_path(str(terms.home))), hosted, terms.version, control=self._control)

    async def run(self) -> None:
        """Serve until a command, a signal or idleness ends it; raises `Unavailable` where it cannot listen."""
        bound = self._bound()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signaled)
        try:
            async with anyio.create_task_group() as tasks:
                await self._door.open()
                if bound is not None:
                    self._web = self._listening(bound)
                    tasks.start_soon(self._web.serve)
                self._stand("serving")
                self._announce(self._record)
                tasks.start_soon(self._probe)
                await self._stop.wait()
                await self._leave()
                tasks.cancel_scope.cancel()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def stop(self, reason: str, within_s: float) -> None:
        """Begin to leave, giving what is under way so long; the first demand counts."""
        if not self._stop.is_set():
            self._leaving = (reason, within_s)
            self._stop.set()

    def _signaled(self) -> None:
        if self._stop.is_set():
            os._exit(1)  # asked twice; whatever is acknowledged is on disk
        self.stop("signal", self._terms.stop_s)

    def _bound(self) -> socket.socket | None:
        wish = self._terms.http
        if wish is None:
            self._record = replace(self._record, no_http="switched off")
            return None
        try:
            bound = bind(wish.host, wish.port)
        except Unavailable as error:
            if wish.required:
                raise
            log.warning("%s", error)
            self._record = replace(self._record, no_http=error.message)
            return None
        self._record = replace(self._record, http=base_url(bound))
        return bound

    def _listening(self, bound: socket.socket) -> Web:
        app = http_app(
            {name: self._hosted.server(name) for name in self._hosted.names},
            check_token=self._hosted.check_token,
            standing=self._standing,
            exchanges=self._exchanges,
            hosts=hosts_of(self._terms.http.host) if self._terms.http else (),
        )
        return Web(app, bound, self._exchanges)

    def _standing(self) -> Standing:
        return "stopping" if self._record.state == "stopped" else self._record.state

    def _stand(self, state: Standing) -> None:
        self._record = replace(self._record, state=state)
        write_record(Path(places.state_file(str(self._terms.home))), self._record)
        log.info("%s", state)

    async def _leave(self) -> None:
        reason, within_s = self._leaving
        log.info("leaving (%s), %d calls open, within %.0f s", reason, self._open_calls, within_s)
        self._stand("stopping")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: self._door.leave(reason, within_s=within_s))
            if self._web is not None:
                web = self._web
                tasks.start_soon(lambda: web.leave(within_s=within_s))

    @property
    def _open_calls(self) -> int:
        return self._door.open_calls + self._exchanges.calls

    async def _probe(self) -> None:
        """Look now and then whether the socket and the home are still there, and whether anybody needs us."""
        lock = self._terms.home / "coordinator.lock"
        while not self._stop.is_set():
            await anyio.sleep(min(self._terms.probe_s, self._terms.idle_exit_s / 4))
            if not lock.exists():
                log.warning("the home is gone")
                self.stop("gone", 0.0)
                return
            await self._door.reopen_if_gone()
            if not self._keep and await self._idle_s() >= self._terms.idle_exit_s:
                self.stop("idle", self._terms.stop_s)

    async def _idle_s(self) -> float:
        if self._door.links or self._exchanges.calls or self._exchanges.streams or await self._hosted.busy():
            return 0.0
        return anyio.current_time() - max(self._began, self._door.last, self._exchanges.last)

    async def _control(self, said: Said, reply: Reply) -> None:
        verbs = {
            "status": self._status,
            "drain": self._drain,
            "undrain": self._undrain,
            "stop": self._stop_asked,
            "handover": self._hand_over,
            "keep": self._kept,
        }
        verb = verbs.get(str(said.get("verb")))
        if verb is None:
            raise Invalid(
                "tool.invalid_arguments",
                f"This coordinator ({self._terms.version}) knows no command {str(said.get('verb'))[:40]!r}.",
                remedy=f"It knows {', '.join(verbs)}.",
            )
        await verb(said, reply)

    async def _status(self, _said: Said, reply: Reply) -> None:
        links: dict[str, int] = {}
        for link in self._door.links:
            links[link.server] = links.get(link.server, 0) + 1
        await reply(
            "status",
            done=True,
            **asdict(self._record),
            links=links,
            shims=sorted({link.pid for link in self._door.links if link.pid}),
            open_calls=self._open_calls,
            work=await self._hosted.busy(),
            streams=self._exchanges.streams,
            kept=self._keep,
            up_s=round(anyio.current_time() - self._began, 3),
            rss_bytes=rss_bytes(),
        )

    async def _drain(self, said: Said, reply: Reply) -> None:
        """Refuse new work and wait until what is under way is done; the coordinator goes on until it is stopped."""
        self._hosted.drain(on=True)
        self._stand("draining")
        until = anyio.current_time() + _seconds(said, DRAIN_S)
        while True:
            left = self._open_calls + await self._hosted.busy()
            over = not left or anyio.current_time() >= until
            await reply("drain", done=over, left=left)
            if over:
                return
            await anyio.sleep(DRAIN_TOLD_S)

    async def _undrain(self, _said: Said, reply: Reply) -> None:
        if self._record.state == "draining":
            self._hosted.drain(on=False)
            self._stand("serving")
        await reply("undrain", done=True, state=self._record.state)

    async def _stop_asked(self, said: Said, reply: Reply) -> None:
        await reply("stop", done=True, pid=os.getpid())
        self.stop("stop", _seconds(said, self._terms.stop_s))

    async def _hand_over(self, said: Said, reply: Reply) -> None:
        """Make room for a newer installation: nobody else comes in, and the lock is free as soon as we have left."""
        newer = str(said.get("version", ""))
        if not is_older(self._terms.version, newer):
            raise Invalid("tool.invalid_arguments", f"{newer!r} is not newer than {self._terms.version}.")
        log.info("handing over to %s", newer)
        self._door.close()
        await reply("handover", done=True)
        self.stop("handover", self._terms.handover_s)

    async def _kept(self, _said: Said, reply: Reply) -> None:
        """Stay although a shim started us: a person asked for it."""
        self._keep = True
        await reply("keep", done=True)


def _seconds(said: Said, default: float) -> float:
    given = said.get("timeout_s", default)
    return min(max(float(given), 0.0), 3600.0) if isinstance(given, int | float) else default


def rss_bytes() -> int:
    """Return the memory this process has in use now (its most ever, where the system does not say)."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
