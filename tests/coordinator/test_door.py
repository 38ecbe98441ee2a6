"""The coordinator's side of the local socket, within one process."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentstead.coordinator import door, greeting
from agentstead.coordinator.door import Door, Peer, Reply, Said, caller_of, peer_of
from agentstead.state import Unavailable
from tests.coordinator.conftest import fake_home

ME = Peer(os.geteuid(), os.getpid())
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


class Visitor:
    """A shim's connection, seen from the shim."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def hear(self) -> dict[str, Any]:
        with anyio.fail_after(10):
            message: dict[str, Any] = json.loads(await self.reader.readline())
        return message

    async def at_end(self) -> bool:
        with anyio.fail_after(10):
            try:
                return await self.reader.readline() == b""
            except ConnectionResetError:
                return True

    def call(self, key: int, name: str, **arguments: Any) -> None:
        params = {"name": name, "arguments": arguments, "_meta": MODERN}
        message = {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params}
        self.writer.write(json.dumps(message).encode() + b"\n")


class House:
    """A door over the fake home."""

    def __init__(self, path: Path) -> None:
        self.hosted = fake_home(path)
        self.commands: list[Said] = []
        self.door = Door(path / "run" / "socket", self.hosted, "0.1.0", control=self._control)

    async def _control(self, said: Said, reply: Reply) -> None:
        self.commands.append(said)
        await reply("done", done=True)

    async def connect(self, line: bytes = b"") -> Visitor:
        visitor = Visitor(*await asyncio.open_unix_connection(self.door.path))
        visitor.writer.write(line)
        return visitor

    async def enter(self, server: str = "notes") -> Visitor:
        visitor = await self.connect(greeting.say("hello", server=server, environ={}, cwd="/"))
        assert (await visitor.hear())["agentstead"] == "welcome"
        return visitor


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[House]:
    house = House(path)
    await house.door.open()
    try:
        yield house
    finally:
        await house.door.leave("test", within_s=0)
        with anyio.fail_after(10):
            while house.door.links:
                await anyio.lowlevel.checkpoint()
        house.hosted.ledger.close()


@pytest.mark.anyio
async def test_a_host_is_welcomed_with_version_and_process(place: Path) -> None:
    async with opened(place) as house:
        visitor = await house.connect(greeting.say("hello", server="notes"))
        assert await visitor.hear() == {"agentstead": "welcome", "version": "0.1.0", "pid": os.getpid()}
        assert [link.server for link in house.door.links] == ["notes"]
        visitor.writer.close()


@pytest.mark.anyio
async def test_a_command_is_passed_on_with_its_fields(place: Path) -> None:
    async with opened(place) as house:
        visitor = await house.connect(greeting.say("control", verb="drain", timeout_s=1))
        assert await visitor.hear() == {"agentstead": "done", "done": True}
        assert await visitor.at_end()
        assert house.commands == [{"agentstead": "control", "verb": "drain", "timeout_s": 1}]
        assert not house.door.links
        visitor.writer.close()


@pytest.mark.anyio
async def test_a_refusal_has_code_message_and_remedy(place: Path) -> None:
    async with opened(place) as house:
        visitor = await house.connect(greeting.say("hello", server="nots"))
        said = await visitor.hear()
        assert {key: bool(said[key]) for key in ("agentstead", "code", "message", "remedy")} == {
            "agentstead": True,
            "code": True,
            "message": True,
            "remedy": True,
        }
        assert await visitor.at_end()
        visitor.writer.close()


@pytest.mark.anyio
async def test_one_that_says_nothing_is_sent_away_in_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "GREETING_S", 0.05)
    async with opened(place) as house:
        visitor = await house.connect()
        assert await visitor.at_end()
        visitor.writer.close()


@pytest.mark.anyio
async def test_hosts_without_open_calls_are_seen_out_at_once(place: Path) -> None:
    async with opened(place) as house:
        visitors = [await house.enter() for _ in range(5)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: house.door.leave("stop", within_s=60))
            for visitor in visitors:
                assert await visitor.hear() == {"agentstead": "leaving", "reason": "stop"}
                visitor.writer.write_eof()
                assert await visitor.at_end()
        assert not house.door.links
        for visitor in visitors:
            visitor.writer.close()


@pytest.mark.anyio
async def test_an_open_call_is_answered_before_its_host_is_seen_out(place: Path) -> None:
    async with opened(place) as house:
        visitor = await house.enter()
        visitor.call(1, "sleep", seconds=0.2)
        await visitor.writer.drain()
        while not house.door.open_calls:
            await anyio.lowlevel.checkpoint()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: house.door.leave("stop", within_s=60))
            assert (await visitor.hear())["agentstead"] == "leaving"
            visitor.writer.write_eof()
            assert (await visitor.hear())["result"]["structuredContent"] == {"slept": 0.2}
            assert await visitor.at_end()
        visitor.writer.close()


@pytest.mark.anyio
@pytest.mark.parametrize("polite", [True, False])
async def test_a_call_that_outlasts_the_bound_ends_without_any_answer(place: Path, polite: bool) -> None:
    async with opened(place) as house:
        visitor = await house.enter()
        visitor.call(1, "sleep", seconds=60)
        while not house.door.open_calls:
            await anyio.lowlevel.checkpoint()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: house.door.leave("stop", within_s=0.1))
            assert (await visitor.hear())["agentstead"] == "leaving"
            if polite:
                visitor.writer.write_eof()
            assert await visitor.at_end()
        visitor.writer.close()


@pytest.mark.anyio
async def test_nobody_comes_in_once_it_is_closed(place: Path) -> None:
    async with opened(place) as house:
        house.door.close()
        with pytest.raises((FileNotFoundError, ConnectionRefusedError)):
            await house.connect()


@pytest.mark.anyio
async def test_the_socket_is_made_anew_where_it_is_gone_and_only_there(place: Path) -> None:
    async with opened(place) as house:
        before = house.door.path.stat().st_ino
        await house.door.reopen_if_gone()
        assert house.door.path.stat().st_ino == before
        staying = await house.enter()
        shutil.rmtree(house.door.path.parent)
        await house.door.reopen_if_gone()
        (await house.enter()).writer.close()
        staying.call(1, "echo", text="still here")
        assert (await staying.hear())["result"]["structuredContent"] == {"text": "still here"}
        staying.writer.close()


@pytest.mark.anyio
async def test_a_socket_folder_that_is_not_ours_is_told(place: Path) -> None:
    house = House(place)
    (place / "run").symlink_to("/tmp")
    with pytest.raises(Unavailable) as caught:
        await house.door.open()
    assert caught.value.code == "home.quarantined"
    house.hosted.ledger.close()


@pytest.mark.anyio
async def test_a_fault_in_one_connection_leaves_the_others(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(place) as house:
        staying = await house.enter()

        async def fail(_said: Said, _reply: Reply) -> None:
            raise RuntimeError("broken")

        house.door.control = fail
        visitor = await house.connect(greeting.say("control", verb="x"))
        assert await visitor.at_end()
        assert "a connection failed" in caplog.text
        staying.call(1, "echo", text="here")
        assert (await staying.hear())["result"]["structuredContent"] == {"text": "here"}
        visitor.writer.close()
        staying.writer.close()


def test_the_system_says_who_is_at_the_other_end() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert peer_of(one).uid == os.geteuid()
        if sys.platform == "linux":
            assert peer_of(one).pid == os.getpid()


def test_a_caller_has_what_was_said_where_it_can_be_true() -> None:
    said = {"cwd": "/w", "environ": {"AGENTSTEAD_WORKSPACE": "w", "PATH": "/bin"}, "pid": 99_999_999}
    caller = caller_of(said, ME, "operator")
    assert (caller.door, caller.cwd, caller.token) == ("socket", Path("/w"), "operator")
    assert caller.environ == {"AGENTSTEAD_WORKSPACE": "w"}
    if sys.platform == "linux":
        assert caller.pid == os.getppid()


def test_where_the_system_does_not_say_the_claim_is_taken() -> None:
    assert caller_of({"pid": 42}, Peer(0, 0), "none").pid in (42, 0)
    assert caller_of({"pid": "42"}, Peer(0, 99_999_999), "none").pid is None


@pytest.mark.parametrize(
    "said", [{}, {"cwd": None, "environ": None}, {"cwd": "relative", "environ": []}, {"environ": 7}]
)
def test_a_hello_that_lacks_things_is_a_caller_without_them(said: Said) -> None:
    caller = caller_of(said, ME, "none")
    assert caller.cwd is None
    assert caller.environ == {}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_program_with_parentheses_in_its_name_has_a_parent_too(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    shutil.copy("/bin/sleep", odd)
    child = subprocess.Popen([str(odd), "30"])
    try:
        assert door._parent(child.pid) == os.getpid()
    finally:
        child.kill()
        child.wait()
    assert door._parent(99_999_999) is None
