"""SIGKILL at any moment: what was answered is there once, in order, and what was acknowledged stays so."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from agentstead.kit import Home
from agentstead.network.server import SERVER
from agentstead.network.service import inbox_read, peer_join
from agentstead.sessions.server import SERVER as SESSIONS
from agentstead.sessions.service import session_open
from agentstead.state import HomeLock, Reading
from tests.network.conftest import Invoke

pytestmark = pytest.mark.anyio

TALKER = Path(__file__).parent / "talker.py"
DEADLINE_S = 90


@dataclass
class Told:
    """What a talker printed: sequences by message number, what was read, and up to where it was acknowledged."""

    sent: dict[int, int] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)
    acked: int = 0
    done: bool = False
    again: list[int] = field(default_factory=list)

    def hear(self, line: str) -> None:
        word, *rest = line.split()
        if word == "sent":
            self.sent[int(rest[0])] = int(rest[1])
        elif word == "read":
            if int(rest[0]) <= self.acked:
                self.again.append(int(rest[0]))
            self.read.append(int(rest[0]))
        elif word == "acked":
            self.acked = int(rest[0])
        else:
            self.done = True


@pytest.fixture
async def scene(tmp_path: Path, project: Path, invoke: Invoke) -> tuple[Path, Path, str]:
    """Return a home with ada and bob in one channel, its project, and bob's peer id; nobody holds it open."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    async for home in opened(path):
        peer = ""
        for name in ("ada", "bob"):
            principal = f"host:{name}"
            made = await invoke(home, session_open, principal=principal, cwd=project, agent=name)
            joined = await invoke(
                home, peer_join, principal=principal, cwd=project, channel="pruning", session=made.session_id
            )
            peer = joined.peer_id
    return path, project, peer


async def opened(path: Path) -> AsyncIterator[Home]:
    lock = HomeLock(path)
    assert lock.acquire()
    home = await Home.open(path, lock=lock, servers=(SESSIONS, SERVER))
    yield home
    await home.close()
    lock.release()


def talk(
    scene: tuple[Path, Path, str], told: Told, *, first: int, count: int, crash: str = "", kill_at: int = 0
) -> None:
    """Run a talker to its end, to its crash point, or until it printed `kill_at` lines."""
    path, project, peer = scene
    environ = os.environ | {"AGENTSTEAD_CRASH": crash, "AGENTSTEAD_GROUP_LIMIT": "4"}
    argv = [sys.executable, str(TALKER), str(path), str(project), peer, str(first), str(count)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        for number, line in enumerate(whole(process.stdout), start=1):
            told.hear(line)
            if number == kill_at:
                process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)


def whole(stream: IO[str]) -> Iterator[str]:
    """Yield lines; a kill may cut the last one."""
    for line in stream:
        if line.endswith("\n"):
            yield line


async def check(scene: tuple[Path, Path, str], invoke: Invoke, told: Told) -> None:
    path, project, peer = scene
    async for home in opened(path):
        assert (await home.state.verify()).holds
        assert SERVER.verify is not None
        assert not await SERVER.verify(home)
        rows = await home.state.read(
            Reading.all, "SELECT seq, CAST(raw AS TEXT) AS raw FROM net_message WHERE kind = 'say' ORDER BY seq"
        )
        texts = {row["seq"]: row["raw"].partition('"text":"message ')[2].partition('"')[0] for row in rows}
        assert all(texts.get(seq) == str(number) for number, seq in told.sent.items())
        assert max(Counter(texts.values()).values(), default=1) == 1
        deliveries = await home.state.read(
            Reading.all, "SELECT seq FROM net_delivery WHERE peer_id = :peer ORDER BY seq", peer=peer
        )
        assert [row["seq"] for row in deliveries] == sorted(texts)
        left = await invoke(home, inbox_read, principal="host:bob", cwd=project, only="unacked", limit=100)
        open_seqs = [item.seq for item in left.items]
        assert open_seqs == sorted(open_seqs)
        assert all(seq > told.acked for seq in open_seqs)
    assert not told.again


@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
@pytest.mark.parametrize("passage", [2, 5, 9])
async def test_a_kill_at_a_commit_loses_nothing_and_a_retry_doubles_nothing(
    scene: tuple[Path, Path, str], invoke: Invoke, point: str, passage: int
) -> None:
    killed = Told()
    talk(scene, killed, first=0, count=24, crash=f"{point}:{passage}")
    assert not killed.done
    await check(scene, invoke, killed)
    retried = Told(acked=killed.acked)
    talk(scene, retried, first=0, count=24)
    assert retried.done
    assert len(retried.sent) == 24
    assert killed.sent.items() <= retried.sent.items()
    await check(scene, invoke, retried)


async def test_kills_at_any_moment_under_load_leave_one_ordered_inbox(
    scene: tuple[Path, Path, str], invoke: Invoke
) -> None:
    told = Told()
    for kill_at in (3, 25):
        talk(scene, told, first=0, count=80, kill_at=kill_at)
        await check(scene, invoke, told)
    talk(scene, told, first=0, count=80)
    assert told.done
    assert sorted(told.sent) == list(range(80))
    await check(scene, invoke, told)
