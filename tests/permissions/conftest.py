"""A home with every server, a host whose forms count, and a client of the permissions server in either era."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from agentstead.identity import Facts, Principal
from agentstead.kit import CALLER, Caller, Home
from agentstead.kit.changes import ChangeHub
from agentstead.kit.mcp_server import build
from agentstead.permissions.server import SERVER
from agentstead.policy import CallFacts, Enforcement
from agentstead.state import HomeLock, PendingAnswer, SimulatedClock

ERAS = ("legacy", "2026-07-28")
PERSON = Principal.user(at_terminal=True)
HOST = Principal.host("tester", version="1", facts=Facts(door="socket"))
OPERATOR = Principal.host("ops", facts=Facts(door="http", token="operator"))
AGENT = Principal.agent("reviewer", session_id="ses_01ARZ3NDEKTSV4RRFFQ69G5FAV")

Connect = Any
Rules = Callable[[str], None]


@pytest.fixture
def prompt_wait_s() -> int:
    return 0


@pytest.fixture
async def home(tmp_path: Path, clock: SimulatedClock, prompt_wait_s: int) -> AsyncIterator[Home]:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    (path / "config.toml").write_text(
        f'[elicitation]\ntrusted_hosts = ["tester"]\n[prompt]\nwait_s = {prompt_wait_s}\n'
    )
    lock = HomeLock(path)
    assert lock.acquire()
    opened = await Home.open(path, lock=lock, clock=clock)
    yield opened
    await opened.close()
    lock.release()


@pytest.fixture
def rules(home: Home) -> Rules:
    """Write a file of the user layer, without `version`."""

    def write(text: str) -> None:
        folder = home.path / "policy.d"
        folder.mkdir(exist_ok=True)
        (folder / "mine.toml").write_text(f"version = 1\n{text}")
        home.enforcement.layers.current(force=True)

    return write


@pytest.fixture
def connect(home: Home) -> Connect:
    """Connect a client of an era under a client name; with `choose`, it answers forms."""

    def connected(
        era: Any, *, name: str = "tester", choose: str = "", progress: Any = None
    ) -> AbstractAsyncContextManager[Client]:
        async def answer(context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
            return types.ElicitResult(action="accept", content={"decision": choose})

        @asynccontextmanager
        async def run() -> AsyncIterator[Client]:
            CALLER.set(Caller(door="socket"))
            client = Client(
                build(SERVER, home, toolset="full", hub=ChangeHub([SERVER])),
                mode=era,
                client_info=types.Implementation(name=name, version="1"),
                elicitation_callback=answer if choose else None,
            )
            async with client:
                yield client

        return run()

    return connected


async def ask(enforcement: Enforcement, clock: SimulatedClock, principal: Principal = HOST, **more: Any) -> str:
    """Have a destructive call of the workspace server asked about; return the approval's id."""
    fields: dict[str, Any] = {"arguments": {}, "action": "workspace.promote", "tool": "tree_promote", **more}
    call = CallFacts(server="workspace", risk="destructive", principal=principal, now_us=clock.now_us(), **fields)
    with pytest.raises(PendingAnswer) as caught:
        await enforcement.enter(call)
    return str(caught.value.details["approval_id"])
