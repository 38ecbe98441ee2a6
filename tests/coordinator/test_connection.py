"""One connection over a pair of byte streams, and the form of what it writes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from agentstead.coordinator import greeting, ledger
from agentstead.kit import caller as kit_caller
from agentstead.kit import connection as kit_connection
from agentstead.kit.caller import CALLER, Caller
from agentstead.kit.connection import LINE_BYTES, OPEN_CALLS, Connection

LINE_LIMIT = 10_000
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


class Sink:
    """What the connection wrote; a `broken` one takes no more."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.closed = asyncio.Event()
        self.broken = False
        self._written = asyncio.Event()

    def write(self, data: bytes) -> None:
        if self.broken:
            raise ConnectionResetError
        self.lines.append(data)
        self._written.set()

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    def close(self) -> None:
        self.closed.set()

    async def answer(self, key: int | str | None) -> dict[str, Any]:
        with anyio.fail_after(10):
            while True:
                for line in self.lines:
                    message: dict[str, Any] = json.loads(line)
                    if message.get("id", "absent") == key and "method" not in message:
                        return message
                self._written.clear()
                await self._written.wait()


class Peer:
    """A client of one served connection."""

    def __init__(self, connection: Connection, reader: asyncio.StreamReader, sink: Sink) -> None:
        self.connection = connection
        self.reader = reader
        self.sink = sink

    def say(self, **message: Any) -> None:
        self.reader.feed_data(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def call(self, key: int | str, name: str, **arguments: Any) -> None:
        self.say(id=key, method="tools/call", params={"name": name, "arguments": arguments, "_meta": MODERN})


def server(release: asyncio.Event) -> Server[Any]:
    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "wait":
            await release.wait()
        if params.name == "ask":
            await context.session.elicit_form("?", {"type": "object", "properties": {}})
        door = CALLER.get().door
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"{params.name} {door}")])

    async def list_tools(
        _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    return Server("notes", on_call_tool=call_tool, on_list_tools=list_tools)


@asynccontextmanager
async def served(release: asyncio.Event | None = None) -> AsyncIterator[Peer]:
    reader, sink = asyncio.StreamReader(limit=LINE_LIMIT), Sink()
    connection = Connection(
        server(release or asyncio.Event()), reader, sink, caller=Caller(door="socket"), line_bytes=LINE_LIMIT
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        yield Peer(connection, reader, sink)
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_every_handler_sees_who_calls() -> None:
    async with served() as peer:
        peer.call(1, "x")
        assert (await peer.sink.answer(1))["result"]["content"][0]["text"] == "x socket"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "code", "key"),
    [
        (b"nonsense\n", -32700, None),
        (b"\xff\xfe\n", -32700, None),
        (b"[" * 5000 + b"\n", -32700, None),
        (b"[]\n", -32600, None),
        (b'{"jsonrpc":"2.0","id":9}\n', -32600, 9),
        (b'{"jsonrpc":"1.0","id":"k","method":"ping"}\n', -32600, "k"),
    ],
)
async def test_what_is_no_message_is_answered_and_the_connection_goes_on(
    line: bytes, code: int, key: int | str | None
) -> None:
    async with served() as peer:
        peer.reader.feed_data(line)
        assert (await peer.sink.answer(key))["error"]["code"] == code
        peer.call(1, "x")
        assert "result" in await peer.sink.answer(1)


@pytest.mark.anyio
async def test_a_line_over_the_bound_is_refused_and_skipped() -> None:
    async with served() as peer:
        peer.reader.feed_data(b'{"jsonrpc":"2.0","id":"big","method":"' + b"x" * LINE_LIMIT * 3)
        peer.reader.feed_data(b'"}\n')
        assert (await peer.sink.answer("big"))["error"]["code"] == -32600
        peer.call(1, "x")
        assert "result" in await peer.sink.answer(1)


@pytest.mark.anyio
async def test_half_a_line_at_the_end_of_input_is_no_call() -> None:
    async with served() as peer:
        peer.call(1, "x")
        await peer.sink.answer(1)
        peer.reader.feed_data(b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
        peer.reader.feed_eof()
        with anyio.fail_after(5):
            await peer.sink.closed.wait()
        assert len(peer.sink.lines) == 1


@pytest.mark.anyio
async def test_calls_that_come_with_the_end_of_input_are_answered() -> None:
    async with served() as peer:
        for key in range(20):
            peer.call(key, "x")
        peer.reader.feed_eof()
        for key in range(20):
            assert "result" in await peer.sink.answer(key)


@pytest.mark.anyio
async def test_one_that_leaves_answers_what_is_open() -> None:
    release = asyncio.Event()
    async with served(release) as peer:
        peer.call(1, "wait")
        await anyio.wait_all_tasks_blocked()
        assert peer.connection.open_calls == 1
        peer.connection.leave(10)
        peer.reader.feed_eof()
        await anyio.wait_all_tasks_blocked()
        release.set()
        assert "result" in await peer.sink.answer(1)


@pytest.mark.anyio
async def test_what_is_open_when_the_time_is_over_stays_unanswered() -> None:
    async with served() as peer:
        peer.call(1, "wait")
        await anyio.wait_all_tasks_blocked()
        peer.connection.leave(0.01)
        peer.reader.feed_eof()
        with anyio.fail_after(5):
            await peer.sink.closed.wait()
        assert peer.sink.lines == []


@pytest.mark.anyio
async def test_listening_and_canceled_requests_are_no_open_calls() -> None:
    async with served() as peer:
        peer.say(id="ear", method="subscriptions/listen", params={"notifications": {}, "_meta": MODERN})
        peer.call(1, "wait")
        await anyio.wait_all_tasks_blocked()
        assert peer.connection.open_calls == 1
        peer.say(method="notifications/cancelled", params={"requestId": 1})
        with anyio.fail_after(5):
            await peer.connection.settled()


@pytest.mark.anyio
async def test_more_open_requests_than_the_bound_are_refused() -> None:
    release = asyncio.Event()
    async with served(release) as peer:
        for key in range(OPEN_CALLS + 1):
            peer.call(key, "wait")
        refused = await peer.sink.answer(OPEN_CALLS)
        assert "too many requests" in refused["error"]["message"]
        release.set()
        assert "result" in await peer.sink.answer(0)


@pytest.mark.anyio
async def test_a_broken_writer_ends_nothing_but_its_own_connection() -> None:
    async with served() as peer:
        peer.sink.broken = True
        peer.call(1, "x")
        await anyio.wait_all_tasks_blocked()
        peer.reader.feed_eof()
        with anyio.fail_after(5):
            await peer.sink.closed.wait()


@pytest.mark.anyio
async def test_a_lost_reader_is_the_end_of_input() -> None:
    async with served() as peer:
        peer.reader.set_exception(ConnectionResetError())
        with anyio.fail_after(5):
            await peer.sink.closed.wait()


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_every_answer_and_question_begins_as_the_shim_expects(era: str) -> None:
    async with served() as peer:
        if era == "legacy":
            peer.say(id=0, method="initialize", params={**INITIALIZE, "capabilities": {"elicitation": {"form": {}}}})
            await peer.sink.answer(0)
            peer.say(method="notifications/initialized")
            peer.say(id=1, method="tools/call", params={"name": "ask", "arguments": {}})
            await anyio.wait_all_tasks_blocked()
        peer.call('odd "id" \u00e9\u2028\\', "x")
        peer.say(id=-5, method="no/such", params={"_meta": MODERN})
        await peer.sink.answer(-5)
        await peer.sink.answer('odd "id" \u00e9\u2028\\')
        kinds = set()
        for line in peer.sink.lines:
            message = json.loads(line)
            head = ledger._HEAD.match(line)
            if "id" in message:
                assert head is not None, line
                assert json.loads(head[1]) == message["id"]
                kinds.add(head[2])
            else:
                assert head is None
        assert kinds == ({b"result", b"error", b"method"} if era == "legacy" else {b"result", b"error"})


def test_shim_and_kit_agree_on_what_they_share() -> None:
    assert greeting.ENVIRONMENT == kit_caller.ENVIRONMENT
    assert greeting.LINE_BYTES == LINE_BYTES
    assert "serve_dual_era_loop" in __import__("mcp.server.runner", fromlist=["__all__"]).__all__
    assert kit_connection.EOF_GRACE_S < 0.1
