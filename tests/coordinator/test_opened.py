"""The real home behind the port: its servers, its token, and what is noticed when it is opened."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from agentstead.coordinator import control
from agentstead.coordinator.opened import open_home
from agentstead.kit import Home, declarations
from agentstead.state import HomeLock, Invalid, NotFound, SimulatedClock, SystemClock, Tx
from tests.coordinator.conftest import Host

SERVERS = [each.name for each in declarations()]


@pytest.fixture
def lock(place: Path) -> Iterator[HomeLock]:
    held = HomeLock(place)
    assert held.acquire()
    yield held
    held.release()


@pytest.fixture
def real(place: Path, environ: dict[str, str]) -> Iterator[Callable[..., Host]]:
    """Start the coordinator's real program on a real home."""
    hosts: list[Host] = []

    def start(*words: str) -> Host:
        hosts.append(Host([sys.executable, "-m", "agentstead.coordinator", *words, "--home", str(place)], environ))
        return hosts[-1]

    yield start
    for host in hosts:
        host.end()
        assert host.process.stderr is not None
        host.process.stderr.close()


@pytest.mark.anyio
async def test_every_installed_server_is_hosted_once(place: Path, lock: HomeLock) -> None:
    async with open_home(place, lock=lock, only="") as hosted:
        assert list(hosted.names) == SERVERS
        for name in SERVERS:
            assert hosted.server(name) is hosted.server(name, toolset="core")
            assert hosted.server(name, toolset="full") is not hosted.server(name)
        assert hosted.warnings == ()
        assert await hosted.busy() == 0


@pytest.mark.anyio
async def test_one_server_can_be_opened_alone_and_the_others_are_named(place: Path) -> None:
    async with open_home(place, lock=None, only=SERVERS[0]) as hosted:
        assert hosted.names == (SERVERS[0],)
        with pytest.raises(NotFound) as caught:
            hosted.server(SERVERS[1])
        assert SERVERS[1] in caught.value.remedy


@pytest.mark.anyio
async def test_a_toolset_that_is_not_there_is_refused(place: Path) -> None:
    async with open_home(place, lock=None, only="") as hosted:
        with pytest.raises(Invalid, match="no toolset or tool 'odd'"):
            hosted.server(SERVERS[0], toolset="odd")


@pytest.mark.anyio
async def test_the_homes_token_is_made_at_the_first_start_and_holds(place: Path, lock: HomeLock) -> None:
    async with open_home(place, lock=lock, only="") as hosted:
        path = place / "keys" / "http.token"
        assert path.stat().st_mode & 0o777 == 0o600
        token = path.read_text().strip()
        assert await hosted.check_token(token) == "home"
        assert await hosted.check_token(token + "x") is None
        assert token not in hosted.redact(f"Authorization: Bearer {token}")


@pytest.mark.anyio
async def test_draining_is_told_to_the_services(place: Path, lock: HomeLock) -> None:
    async with open_home(place, lock=lock, only="") as hosted:
        hosted.drain(on=True)
        assert hosted._home.draining is True
        hosted.drain(on=False)
        assert hosted._home.draining is False


def note(tx: Tx) -> int:
    return tx.journal("identity.token.ended", subject="x", body={})


@pytest.mark.anyio
async def test_a_clock_that_was_set_back_is_a_warning_and_no_refusal(place: Path, lock: HomeLock) -> None:
    ahead = SimulatedClock(SystemClock().now_us() + 3600 * 1_000_000)
    home = await Home.open(place, lock=lock, clock=ahead)
    await home.state.write(note)
    await home.close()
    async with open_home(place, lock=lock, only="") as hosted:
        (warning,) = hosted.warnings
    assert "before the last change" in warning


@pytest.mark.anyio
@pytest.mark.parametrize("door", ["shim", "standalone", "http"])
async def test_a_real_home_lists_its_tools_by_every_door(
    door: str, place: Path, real: Callable[..., Host], environ: dict[str, str]
) -> None:
    listed: dict[str, list[str]] = {}
    if door == "http":
        addresses: dict[str, Any] = real("run", "--port", "0").hear()
        headers = {"authorization": f"Bearer {(place / 'keys' / 'http.token').read_text().strip()}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            for name in SERVERS:
                async with Client(streamable_http_client(addresses[name], http_client=http)) as client:
                    listed[name] = [tool.name for tool in (await client.list_tools()).tools]
    for name in SERVERS if door != "http" else []:
        words = ["-m", "agentstead.coordinator", "serve", name, "--home", str(place)]
        program = StdioServerParameters(
            command=sys.executable, args=words + (["--standalone"] if door == "standalone" else []), env=environ
        )
        async with Client(stdio_client(program)) as client:
            listed[name] = [tool.name for tool in (await client.list_tools()).tools]
    assert all(listed[name] for name in SERVERS)
    assert listed == {each.name: [tool.name for tool in each.tools("core")] for each in declarations()}
    assert control.status(place).state == ("stopped" if door == "standalone" else "serving")
