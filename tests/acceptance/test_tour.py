"""The same scripted tour gives the same structured results through every door and in both protocol eras."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.acceptance.doors import DOORS, ERAS, SERVERS, Door, Person, connected, innermost, serving, stop, trusting
from tests.acceptance.tour import Normal, lay_out, tour

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]


async def walk(door: Door, era: str, place: Path) -> tuple[list[tuple[str, Any]], set[str]]:
    """Take the tour in a home and a project of its own; return what was told, and the names of every listed tool."""
    home, project = place / "home", place / "project"
    await trusting(home)
    lay_out(project, home)
    listed: set[str] = set()
    person = Person()
    with serving(home) if door == "http" else nullcontext("") as base:
        async with AsyncExitStack() as stack:
            clients: dict[str, Client] = {}
            for server in SERVERS:
                client = await stack.enter_async_context(
                    connected(door, era, server, home, base=base, cwd=project, person=person)
                )
                clients[server] = client
                listed |= {tool.name for tool in (await client.list_tools()).tools}

            async def call(server: str, tool: str, arguments: dict[str, Any]) -> Any:
                answer = await clients[server].call_tool(tool, arguments)
                assert not answer.is_error, (tool, answer.content[0])
                content: Any = answer.content[0]
                return answer.structured_content or json.loads(content.text)

            told = await tour(call, project)
    normal = Normal(home, project)
    return [(tool, normal.of(answer)) for tool, answer in told], listed


@pytest.fixture
async def homes(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path
    for home in tmp_path.glob("*/home"):
        stop(home)


async def test_every_listed_tool_answers_alike_through_every_door_and_era(homes: Path) -> None:
    reference: list[tuple[str, Any]] = []
    for door in DOORS:
        for era in ERAS:
            try:
                told, listed = await walk(door, era, homes / f"{door}-{era}")
            except BaseExceptionGroup as group:
                raise innermost(group) from None
            assert {tool for tool, _ in told} == listed
            reference = reference or told
            for (tool, answer), (expected_tool, expected) in zip(told, reference, strict=True):
                assert tool == expected_tool
                assert answer == expected, (door, era, tool)
