"""Two hosts in processes of their own on one home: over one coordinator, and each with a server of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from agentstead.kit import Home
from tests.network.test_mcp_face import Host

pytestmark = pytest.mark.anyio

PROGRAM = [sys.executable, "-m", "agentstead.cli"]
DEADLINE_S = 90.0


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A home's path; what serves it is stopped afterwards."""
    path = tmp_path / "home"
    yield path
    subprocess.run([*PROGRAM, "stop"], env=environ(path), capture_output=True, timeout=DEADLINE_S, check=False)


def environ(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTSTEAD_", "OTEL_"))}
    return kept | {"AGENTSTEAD_HOME": str(home)}


@asynccontextmanager
async def host(home: Path, project: Path, name: str, server: str, *options: str) -> AsyncIterator[Host]:
    """Start a server's shim, or with `--standalone` the server, as the host `name` does."""
    arguments = [*PROGRAM[1:], "serve", server, *options]
    parameters = StdioServerParameters(command=PROGRAM[0], args=arguments, env=environ(home), cwd=project)
    info = types.Implementation(name=name, version="1")
    async with Client(parameters, mode="legacy", client_info=info, read_timeout_seconds=DEADLINE_S) as client:
        yield Host(client)


@pytest.mark.parametrize("options", [(), ("--standalone",)], ids=["shim", "standalone"])
async def test_a_waiting_host_is_woken_by_anothers_message(
    place: Path, project: Path, options: tuple[str, ...]
) -> None:
    sessions: dict[str, str] = {}
    if options:
        # A standalone server never migrates beside others, so the home is made first.
        await (await Home.open(place)).close()
    for name in ("steward", "grafter"):
        async with host(place, project, name, "sessions", *options) as opener:
            sessions[name] = (await opener("session_open", agent=name))["session_id"]
    async with (
        host(place, project, "steward", "network", *options) as steward,
        host(place, project, "grafter", "network", *options) as grafter,
    ):
        await steward("peer_join", channel="pruning", session=sessions["steward"])
        target = await grafter("peer_join", channel="pruning", session=sessions["grafter"])
        waiting = asyncio.create_task(grafter("inbox_read", wait_s=45))
        sent = await steward("message_send", channel="pruning", text="Graft row 7.", to=target["peer_id"], work="new")
        read = await asyncio.wait_for(waiting, DEADLINE_S)
        assert [(each["message_id"], each["work_id"]) for each in read["items"]] == [
            (sent["message_id"], sent["work_id"])
        ]
        for action in ("accept", "complete"):
            await grafter("work_update", work_id=sent["work_id"], action=action)
        marked = await grafter("inbox_ack", upto_seq=sent["seq"])
        assert marked["unread"] == 0
        steps = (await steward("network_view", ref=sent["work_id"], view="steps"))["items"]
        assert [each["to_state"] for each in steps] == ["submitted", "working", "completed"]
