"""The coordinator's local socket: who may come in, what the first line asks for, and the connections it leads to."""

import asyncio
import logging
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from agentstead.coordinator import greeting
from agentstead.coordinator.hosted import Hosted
from agentstead.coordinator.suitability import make_private
from agentstead.kit.caller import ENVIRONMENT, Caller, Token
from agentstead.kit.connection import Connection
from agentstead.state import AgentsteadError, Denied

log = logging.getLogger(__name__)

GREETING_S = 5.0
CLOSING_S = 1.0
BACKLOG = 128
# struct xucred of macOS: version, uid; sixteen groups follow.
_MAC_PEERCRED, _MAC_XUCRED_BYTES = 1, 76

Said = dict[str, Any]
Reply = Callable[..., Awaitable[None]]
Control = Callable[[Said, Reply], Awaitable[None]]


@dataclass(eq=False, slots=True)
class Link:
    """One greeted host."""

    server: str
    pid: int
    connection: Connection
    writer: asyncio.StreamWriter


@dataclass(slots=True)
class Door:
    """The listener on the local socket, and the hosts that came in by it."""

    path: Path
    hosted: Hosted
    version: str
    control: Control
    links: set[Link] = field(default_factory=set)
    last: float = 0.0
    _server: asyncio.Server | None = None
    _empty: anyio.Event = field(default_factory=anyio.Event)

    async def open(self) -> None:
        """Listen, in the place of a socket that a dead coordinator left; the caller holds the home's lock."""
        make_private(self.path.parent)
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._met, self.path, limit=greeting.LINE_BYTES, backlog=BACKLOG)
        self.path.chmod(0o600)
        self.last = anyio.current_time()

    def close(self) -> None:
        """Let nobody else in."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self.path.unlink(missing_ok=True)

    async def reopen_if_gone(self) -> None:
        """Listen anew where somebody cleared the socket's folder."""
        if self._server is not None and not self.path.exists():
            log.warning("the socket %s had been removed; listening anew", self.path)
            self._server.close()
            await self.open()

    async def leave(self, reason: str, *, within_s: float) -> None:
        """See every host out: each hears it, stops sending, and gets the answers it waits for, up to a bound.

        What is unanswered then is cut off, so that the shim's own answer counts.
        """
        self.close()
        self._empty = anyio.Event()
        for link in self.links:
            link.connection.leave(within_s)
            with suppress(OSError, RuntimeError):
                link.writer.write(greeting.say("leaving", reason=reason))
        with anyio.move_on_after(within_s):
            while self.links:
                await self._empty.wait()
        for link in self.links:
            log.warning("%s: %d calls were cut off", link.server, link.connection.open_calls)
            link.connection.abort()
            link.writer.transport.abort()

    @property
    def open_calls(self) -> int:
        """Return how many requests are being answered."""
        return sum(link.connection.open_calls for link in self.links)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._greeted(reader, writer)
        except (OSError, TimeoutError, ValueError) as error:
            log.info("a connection ended before it was served: %s", type(error).__name__)
        except Exception:
            log.exception("a connection failed")
        finally:
            writer.close()
            with anyio.move_on_after(CLOSING_S, shield=True), suppress(OSError):
                await writer.wait_closed()

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = peer_of(writer.get_extra_info("socket"))
        if peer.uid != os.geteuid():
            log.warning("a connection of another user (uid %d) was refused", peer.uid)
            return
        said = greeting.hear(await asyncio.wait_for(reader.readline(), GREETING_S))

        async def reply(kind: str, **fields: object) -> None:
            writer.write(greeting.say(kind, **fields))
            await writer.drain()

        try:
            if said["agentstead"] == "control":
                await self.control(said, reply)
                return
            connection = await self._admitted(said, peer, reader, writer)
        except AgentsteadError as error:
            await reply("refused", **error.as_dict())
            return
        await reply("welcome", version=self.version, pid=os.getpid())
        await self._serve(Link(str(said.get("server")), peer.pid, connection, writer))

    async def _admitted(
        self, said: Said, peer: "Peer", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Connection:
        server = self.hosted.server(str(said.get("server", "")), toolset=str(said.get("toolset") or "core"))
        caller = caller_of(said, peer, await self._token(str(said.get("token") or "")))
        caller = replace(caller, descends=await self.hosted.supervises(peer.pid))
        return Connection(server, reader, writer, caller=caller, line_bytes=greeting.LINE_BYTES)

    async def _token(self, token: str) -> Token:
        """Return the kind of the token that was given; one that has ended is refused, and never taken for none."""
        if not token:
            return "none"
        kind = await self.hosted.check_token(token)
        if kind is None:
            raise Denied(
                "permission.denied",
                f"The token in {greeting.TOKEN_VARIABLE} is unknown or has ended.",
                remedy=f"Unset {greeting.TOKEN_VARIABLE}, or give one that is in force.",
            )
        return kind

    async def _serve(self, link: Link) -> None:
        self.links.add(link)
        try:
            await link.connection.serve()
        finally:
            self.links.discard(link)
            self.last = anyio.current_time()
            if not self.links:
                self._empty.set()


@dataclass(frozen=True, slots=True)
class Peer:
    """What the system says of the other end; pid 0 where it does not say."""

    uid: int
    pid: int


def peer_of(link: socket.socket) -> Peer:
    """Return who is at the other end of a unix socket."""
    if sys.platform == "linux":
        pid, uid, _gid = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Peer(uid, pid)
    else:  # noqa: RET505 - so that mypy knows it for another system's
        _version, uid = struct.unpack_from("2I", link.getsockopt(0, _MAC_PEERCRED, _MAC_XUCRED_BYTES))
        return Peer(uid, 0)


def caller_of(said: Said, peer: Peer, token: Token) -> Caller:
    """Return the caller that a hello describes; the host's pid is the shim's parent as the system sees it."""
    cwd = Path(str(said.get("cwd") or ""))
    environ = said.get("environ")
    kept = environ if isinstance(environ, dict) else {}
    claimed = said.get("pid")
    return Caller(
        door="socket",
        cwd=cwd if cwd.is_absolute() else None,
        pid=_parent(peer.pid) or (claimed if isinstance(claimed, int) else None),
        environ={name: str(kept[name])[: greeting.VALUE_CHARS] for name in ENVIRONMENT if name in kept},
        token=token,
    )


def _parent(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses.
    return int(status.rpartition(")")[2].split()[1])
