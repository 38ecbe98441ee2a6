"""The SDK's own client in both eras, over the shim, a standalone server and HTTP: the same tour, the same results."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.coordinator.conftest import PROGRAM, Host

ERAS = ("legacy", "2026-07-28", "auto")
DOORS = ("shim", "standalone", "http")
Reach = Callable[[str, str], AbstractAsyncContextManager[Client]]


@pytest.fixture
def reach(place: Path, environ: dict[str, str], run: Callable[..., Host]) -> Reach:
    """Connect a client of an era by a door."""

    @asynccontextmanager
    async def connect(door: str, era: str) -> AsyncIterator[Client]:
        if door == "http":
            url = run().heard[0]["notes"]
            headers = {"authorization": "Bearer home-token"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=30) as http,
                Client(streamable_http_client(url, http_client=http), mode=era) as client,
            ):
                yield client
            return
        options = ["--standalone"] if door == "standalone" else []
        program = StdioServerParameters(
            command=sys.executable,
            args=[str(PROGRAM), "serve", "notes", "--home", str(place), *options],
            env=environ,
        )
        async with Client(stdio_client(program), mode=era) as client:
            yield client

    return connect


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("door", DOORS)
async def test_the_same_tour_gives_the_same_results(reach: Reach, door: str, era: str) -> None:
    seen: list[float] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with reach(door, era) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools][:3] == ["apply", "sleep", "where"]
        assert (await client.call_tool("echo", {"text": "\u00e9\u2028\n"})).structured_content == {
            "text": "\u00e9\u2028\n"
        }
        slept = await client.call_tool("sleep", {"seconds": 0.05}, progress_callback=progress)
        assert slept.structured_content == {"slept": 0.05}
        assert seen == [float(step) for step in range(1, 11)]
        # The SDK's client takes an event of 1 MiB over HTTP.
        size = 400_000 if door == "http" else 3_000_000
        for name, arguments in (("big", {"size": size}), ("echo", {"text": "y" * size})):
            big: Any = (await client.call_tool(name, arguments)).structured_content
            assert len(big["text"]) == size
        with pytest.raises(MCPError):
            await client.read_resource("note://none")
        where: Any = (await client.call_tool("where", {})).structured_content
        assert where["door"] == {"shim": "socket", "standalone": "stdio", "http": "http"}[door]
        assert where["token"] == ("home" if door == "http" else "none")


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS[:2])
async def test_a_coordinator_that_is_killed_costs_a_client_one_retry(reach: Reach, era: str, place: Path) -> None:
    from tests.coordinator.conftest import coordinator_pid, kill

    async with reach("shim", era) as client:
        first: Any = (await client.call_tool("where", {})).structured_content
        kill(coordinator_pid(place))
        answers = [await client.call_tool("where", {}) for _ in range(2)]
        assert not answers[-1].is_error
        last: Any = answers[-1].structured_content
        assert last["pid"] != first["pid"]
