"""A home with the sessions and network servers, the hosts that meet in it, and the orchard of the examples."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.network.acceptance import Accepted, Arrival, accept
from agentstead.network.server import SERVER
from agentstead.network.service import peer_join
from agentstead.network.wire import card, examine
from agentstead.sessions.server import SERVER as SESSIONS
from agentstead.sessions.service import session_open
from agentstead.state import HomeLock, Reading, SimulatedClock, Tx

Invoke = Callable[..., Awaitable[Any]]

NOW = 1_790_000_000
CANARY = "CANARY-0123"
STEWARD, GRAFTER, SCOUT = "steward.sess-apple", "grafter.sess-pear", "scout.sess-plum"

TABLES = (
    "net_channel",
    "net_peer",
    "net_participation",
    "net_message",
    "net_thread",
    "net_thread_peer",
    "net_room",
    "net_delivery",
    "net_cursor",
    "net_work",
    "net_work_step",
    "journal",
)

_CHANNEL = """
INSERT INTO net_channel VALUES ('ws_orchard', :channel, '', 'plain', 'flag', 'open', 'named', 'user', 1, 1)
"""
_PEER = """
INSERT INTO net_peer VALUES (
    'ws_orchard', :channel, :peer_id, :stable_id, :kind, '', '', '', :principal, '', :card, '', 'joined', 1, 1, NULL
)
"""


async def opened(path: Path, clock: SimulatedClock) -> AsyncIterator[Home]:
    """Yield a home under `path`; afterwards its records and its journal must verify."""
    path.mkdir(mode=0o700, exist_ok=True)
    lock = HomeLock(path)
    assert lock.acquire()
    home = await Home.open(path, lock=lock, clock=clock, servers=(SESSIONS, SERVER))
    yield home
    faults = await SERVER.verify(home) if SERVER.verify else []
    verified = await home.state.verify()
    await home.close()
    lock.release()
    assert not faults
    assert verified.holds


@pytest.fixture
async def home(tmp_path: Path, clock: SimulatedClock) -> AsyncIterator[Home]:
    async for each in opened(tmp_path / "home", clock):
        yield each


@dataclass(frozen=True)
class Someone:
    """One caller, with a session of its own where it is a host."""

    home: Home
    project: Path
    invoke: Invoke
    principal: str
    session: str

    async def __call__(self, fn: Callable[..., Awaitable[Any]], /, **arguments: Any) -> Any:
        return await self.invoke(self.home, fn, principal=self.principal, cwd=self.project, **arguments)

    async def join(self, channel: str = "pruning", **arguments: Any) -> Any:
        named = {"session": self.session} if self.session else {}
        return await self(peer_join, channel=channel, **named, **arguments)


Meet = Callable[..., Awaitable[Someone]]


@pytest.fixture
def meet(home: Home, project: Path, invoke: Invoke) -> Meet:
    """Return a maker of callers: `await meet('ada')` is a host named ada with an open session; `user` is the person."""

    async def make(name: str) -> Someone:
        if name == "user":
            return Someone(home, project, invoke, "user", "")
        principal = f"host:{name}"
        made = await invoke(home, session_open, principal=principal, cwd=project, agent=name)
        return Someone(home, project, invoke, principal, made.session_id)

    return make


@dataclass(frozen=True)
class Orchard:
    """The receiver of the protocol's examples: its clock, peers and channels; `take` puts bytes in."""

    home: Home
    clock: SimulatedClock

    def at(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds - self.clock.now_us() // 1_000_000)

    async def take(self, raw: bytes | Mapping[str, Any], *, arrival: Arrival | None = None) -> Accepted:
        """Examine and accept; raises `Refused`."""
        data = raw if isinstance(raw, bytes) else json.dumps(raw, ensure_ascii=False).encode()
        envelope = examine(data, now=self.clock.now_us() // 1_000_000, is_secret=lambda text: CANARY in text)
        return await self.home.state.write(accept, envelope, arrival or Arrival(origin="carrier", peering="test"))

    async def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.home.state.read(Reading.all, sql, **params)]

    async def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table that a refusal must leave alone."""
        return {table: await self.rows(f"SELECT * FROM {table}") for table in TABLES}

    async def delivered(self, peer_id: str) -> list[str]:
        sql = """
        SELECT m.message_id
        FROM net_delivery AS d
        JOIN net_message AS m ON m.seq = d.seq
        WHERE d.peer_id = :peer_id AND d.decision = 'deliver'
        ORDER BY d.seq
        """
        return [row[0] for row in await self.rows(sql, peer_id=peer_id)]

    async def work(self, work_id: str) -> str | None:
        found = await self.rows("SELECT state FROM net_work WHERE work_id = :work_id", work_id=work_id)
        return found[0][0] if found else None

    async def enter(self, peer_id: str, channel: str = "pruning", *, kind: str = "session") -> None:
        await self.home.state.write(partial(_enter, peer_id=peer_id, channel=channel, kind=kind))


def _enter(tx: Tx, *, peer_id: str, channel: str, kind: str = "session", principal: str = "host:x") -> None:
    stable_id = peer_id.partition(".")[2] or peer_id
    shown = json.dumps(card(peer_id, display_name=None, capabilities=()))
    tx.execute(
        _PEER,
        channel=channel,
        peer_id=peer_id,
        stable_id=stable_id,
        kind=kind,
        principal=principal,
        card=shown,
    )


def _plant(tx: Tx) -> None:
    for channel in ("pruning", "grafting"):
        tx.execute(_CHANNEL, channel=channel)
        for peer_id in (STEWARD, GRAFTER, SCOUT):
            _enter(tx, peer_id=peer_id, channel=channel, principal=f"host:{peer_id.partition('.')[0]}")


@pytest.fixture
async def orchard(home: Home, clock: SimulatedClock) -> Orchard:
    await home.state.write(_plant)
    found = Orchard(home, clock)
    found.at(NOW)
    return found
