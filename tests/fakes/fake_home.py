"""A home with one small server in the place of six: its ledger is a table of its own, each of its tools one line."""

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ResourceUpdated

from agentstead.coordinator.version import installed_version
from agentstead.kit.caller import CALLER
from agentstead.kit.http import TokenKind
from agentstead.kit.sdk import LegacyConnection
from agentstead.state import HomeLock, Invalid, NotFound, Unavailable

TOKENS: dict[str, TokenKind] = {"home-token": "home", "operator-token": "operator"}
BROKEN = "broken"

Context = ServerRequestContext[Any, Any]
Tool = Callable[[Context, dict[str, Any]], Awaitable[object]]


class FakeHome:
    """What a coordinator hosts, with a durable ledger in `fake.db`."""

    warnings = ("fake",)

    def __init__(self, path: Path, only: str) -> None:
        self.names = tuple(name for name in ("notes", "other") if only in ("", name))
        self.draining = False
        self.work = 0
        self.ledger = sqlite3.connect(path / "fake.db", isolation_level=None)
        self.ledger.execute("PRAGMA journal_mode = WAL")
        self.ledger.execute("CREATE TABLE IF NOT EXISTS applied (name TEXT, key TEXT UNIQUE)")
        self.bus = InMemorySubscriptionBus()
        self.legacy: dict[str, set[LegacyConnection]] = defaultdict(set)
        self._servers = {name: self._built(name) for name in self.names}

    def server(self, name: str, *, toolset: str = "core") -> Server[Any]:
        if name not in self._servers:
            raise NotFound("ref.not_found", f"No server is named {name!r}.", remedy="There are notes, other.")
        if toolset != "core":
            raise Invalid("tool.invalid_arguments", f"There is no toolset {toolset!r}.", remedy="Use core.")
        return self._servers[name]

    async def check_token(self, token: str) -> TokenKind | None:
        return TOKENS.get(token)

    async def supervises(self, pid: int) -> bool:
        return False

    def drain(self, *, on: bool) -> None:
        self.draining = on

    async def busy(self) -> int:
        return self.work

    def redact(self, text: str) -> str:
        return text.replace("s3cret", "[redacted]")

    async def apply(self, _context: Context, arguments: dict[str, Any]) -> object:
        """Write one row; with a key only once, however often it is called."""
        self.ledger.execute(
            "INSERT INTO applied (name, key) VALUES (:name, :key) ON CONFLICT (key) DO NOTHING",
            {"name": arguments["row"], "key": arguments.get("key")},
        )
        return {"applied": arguments["row"]}

    async def sleep(self, context: Context, arguments: dict[str, Any]) -> object:
        for step in range(1, 11):
            await anyio.sleep(arguments["seconds"] / 10)
            await context.session.report_progress(step, 10, "sleeping")
        return {"slept": arguments["seconds"]}

    async def where(self, _context: Context, _arguments: dict[str, Any]) -> object:
        caller = CALLER.get()
        print("this print must not reach the protocol")
        return {
            "pid": os.getpid(),
            "version": installed_version(),
            "door": caller.door,
            "cwd": str(caller.cwd),
            "host": caller.pid,
            "environ": dict(caller.environ),
            "token": caller.token,
        }

    async def big(self, _context: Context, arguments: dict[str, Any]) -> object:
        return {"text": "x" * arguments["size"]}

    async def echo(self, _context: Context, arguments: dict[str, Any]) -> object:
        return {"text": arguments["text"]}

    async def touch(self, _context: Context, arguments: dict[str, Any]) -> object:
        uri = arguments["uri"]
        await self.bus.publish(ResourceUpdated(uri=uri))
        for connection in list(self.legacy[uri]):
            await connection.send_resource_updated(uri)
        return {"told": len(self.legacy[uri])}

    async def ask(self, context: Context, _arguments: dict[str, Any]) -> object:
        answer = await context.session.elicit_form(
            "Really?", {"type": "object", "properties": {}}, related_request_id=context.request_id
        )
        return {"action": answer.action}

    async def busy_with(self, _context: Context, arguments: dict[str, Any]) -> object:
        self.work = arguments["work"]
        return {"work": self.work, "draining": self.draining}

    def _built(self, name: str) -> Server[Any]:
        tools: dict[str, Tool] = {
            each.__name__: each
            for each in (
                self.apply,
                self.sleep,
                self.where,
                self.big,
                self.echo,
                self.touch,
                self.ask,
                self.busy_with,
            )
        }

        async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return types.ListToolsResult(
                tools=[types.Tool(name=tool, input_schema={"type": "object"}) for tool in tools]
            )

        async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
            found = await tools[params.name](context, params.arguments or {})
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=json.dumps(found))], structured_content=found
            )

        server: Server[Any] = Server(
            name,
            version=installed_version(),
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_subscriptions_listen=ListenHandler(self.bus),
        )

        async def subscribe(context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
            connection = LegacyConnection(context)
            self.legacy[str(params.uri)].add(connection)
            connection.on_close(lambda: self.legacy[str(params.uri)].discard(connection))
            return types.EmptyResult()

        server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
        return server


@asynccontextmanager
async def open_fake(path: Path, *, lock: HomeLock | None, only: str) -> AsyncIterator[FakeHome]:
    """Open the fake; a file named `broken` in the home keeps it shut, as a newer schema would."""
    if (path / BROKEN).exists():
        raise Unavailable("home.newer", "This home has schema 9; this version knows 1.", remedy="Update Agentstead.")
    assert lock is None or lock.held
    path.mkdir(mode=0o700, exist_ok=True)
    fake = FakeHome(path, only)
    try:
        yield fake
    finally:
        fake.ledger.close()
