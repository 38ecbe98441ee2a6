"""The host of the demonstration: six servers over stdio, a person who answers its forms, and what happened in order."""

import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters

from agentstead.kit import Home
from agentstead.policy import trust_host
from agentstead.state import Unavailable

HOST = "agentstead-demo"
SERVERS = ("sessions", "memory", "skills", "permissions", "workspace", "network")
ANSWER = "allow_once"
CALL_S = 120.0


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline: seconds since the beginning, who, what, and a detail."""

    at_s: float
    who: str
    what: str
    detail: str = ""


@dataclass(slots=True)
class Timeline:
    """What happened, in order; `tell` hears of each event at once."""

    tell: Callable[[Event], None]
    events: list[Event] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def add(self, who: str, what: str, detail: str = "") -> None:
        """Note one event."""
        event = Event(time.monotonic() - self.began, who, what, detail)
        self.events.append(event)
        self.tell(event)


class Stage:
    """The connected servers; `call` returns a tool's structured result."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self._clients = clients

    async def call(self, server: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool; raises `Unavailable` with the server's own words where it refuses."""
        answer = await self._clients[server].call_tool(tool, arguments)
        if answer.is_error:
            said = " ".join(each.text for each in answer.content if isinstance(each, types.TextContent))
            code, _, rest = said.partition(": ")
            raise Unavailable(
                code, f"{tool} was refused: {rest}", remedy="`agentstead logs` in the demo's home may say more."
            )
        return answer.structured_content


@asynccontextmanager
async def on_stage(home: Path, project: Path, timeline: Timeline) -> AsyncIterator[Stage]:
    """Connect to the six servers as a host would, in a home that trusts this host's forms."""
    await _trust(home)
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(_client(name, home, project, timeline)) for name in SERVERS}
        timeline.add("host", "connected to the six servers over stdio", ", ".join(SERVERS))
        yield Stage(clients)


async def _trust(home: Path) -> None:
    opened = await Home.open(home)
    try:
        await opened.state.write(trust_host, HOST, forms_only=True)
    finally:
        await opened.close()


def _client(server: str, home: Path, project: Path, timeline: Timeline) -> Client:
    async def answer(context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        del context
        timeline.add("person", f"asked: {_headline(params.message)}", f"answered {ANSWER}")
        return types.ElicitResult(action="accept", content={"decision": ANSWER})

    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTSTEAD_")}
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "agentstead.cli", "serve", server],
        env=kept | {"AGENTSTEAD_HOME": str(home)},
        cwd=project,
    )
    return Client(
        parameters,
        client_info=types.Implementation(name=HOST, version="1"),
        elicitation_callback=answer,
        read_timeout_seconds=CALL_S,
    )


def _headline(question: str) -> str:
    lines = [line.strip() for line in question.splitlines() if line.strip()]
    return " ".join(lines[:2])[:160]
