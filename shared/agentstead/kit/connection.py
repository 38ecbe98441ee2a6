"""One MCP connection over a pair of byte streams: whole lines of JSON-RPC in, whole lines out, in either era."""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from agentstead.kit.caller import CALLER, Caller

LINE_BYTES = 32 * 1024 * 1024
OPEN_CALLS = 1024
# Calls that were sent together with the end of input may still be answered.
EOF_GRACE_S = 0.05

_LISTEN = "subscriptions/listen"
_ID = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')


class LineSource(Protocol):
    """What lines are read from: an `asyncio.StreamReader` with a limit of a line's length."""

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        """Return the bytes up to and with `separator`."""
        ...

    async def readexactly(self, n: int) -> bytes:
        """Return `n` bytes."""
        ...


class LineSink(Protocol):
    """What lines are written to: an `asyncio.StreamWriter`, or what stands in for one."""

    def write(self, data: bytes) -> None:
        """Take a whole line."""
        ...

    async def drain(self) -> None:
        """Wait until the other side has taken enough of it."""
        ...

    def close(self) -> None:
        """Write what is left and close."""
        ...


class Connection:
    """A client at one server; made for one `serve`.

    `settled` waits until no call is open; after `abort` nothing more is written, so that a client which lost its server
    never takes a shutdown's answer for the call's own.
    """

    def __init__(
        self, server: Server[Any], reader: LineSource, writer: LineSink, *, caller: Caller, line_bytes: int = LINE_BYTES
    ) -> None:
        self._server = server
        self._leaving_s: float | None = None
        self._caller = caller
        self._calls: dict[str | int, str] = {}
        self._idle = anyio.Event()
        self._idle.set()
        self._write = _Writing(self, writer)
        self._read = _Reading(self, reader, self._write, line_bytes)

    @property
    def open_calls(self) -> int:
        """Return how many requests are being answered; listening is none."""
        return len(self._calls)

    async def serve(self) -> None:
        """Serve until the client's end of input, or until cancelled."""
        CALLER.set(self._caller)
        await serve_dual_era_loop(self._server, self._read, self._write, lifespan_state={})

    async def settled(self) -> None:
        """Wait until no call is open."""
        await self._idle.wait()

    def leave(self, within_s: float) -> None:
        """Answer what is open once the client's input ends, up to a bound; what is open then stays unanswered."""
        self._leaving_s = within_s

    def abort(self) -> None:
        """Write nothing more."""
        self._write.closed = True

    async def input_ended(self) -> None:
        """Give the calls that are open the time that is theirs."""
        with anyio.move_on_after(EOF_GRACE_S if self._leaving_s is None else self._leaving_s) as patience:
            await self.settled()
        if patience.cancelled_caught and self._leaving_s is not None:
            self.abort()

    def opened(self, message: JSONRPCRequest) -> None:
        """Note a request on its way to the server."""
        if message.method != _LISTEN:
            if not self._calls:
                self._idle = anyio.Event()
            self._calls[message.id] = message.method

    def ended(self, key: object) -> None:
        """Note that a request was answered or taken back."""
        if isinstance(key, str | int) and self._calls.pop(key, None) is not None and not self._calls:
            self._idle.set()


class _Reading:
    """The stream of messages that the SDK reads."""

    def __init__(self, connection: Connection, reader: LineSource, write: "_Writing", line_bytes: int) -> None:
        self._connection = connection
        self._reader = reader
        self._write = write
        self._line_bytes = line_bytes

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message; raises EndOfStream behind the last."""
        while (line := await self._line()) is not None:
            message = _parsed(line)
            if isinstance(message, _Refusal):
                await self._write.send(SessionMessage(message.error))
            elif isinstance(message, JSONRPCRequest) and self._connection.open_calls >= OPEN_CALLS:
                await self._write.send(SessionMessage(_error(message.id, INTERNAL_ERROR, "too many requests are open")))
            else:
                self._note(message)
                return SessionMessage(message)
        await self._connection.input_ended()
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Leave the stream to its owner."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()

    def _note(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._connection.opened(message)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._connection.ended((message.params or {}).get("requestId"))

    async def _line(self) -> bytes | None:
        """Return the next line that is not empty; half a line at the end of input is none."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._skip(error.consumed)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            else:
                if line.strip():
                    return line

    async def _skip(self, begun: int) -> None:
        """Refuse a line that is too long and read on behind its end."""
        head = await self._reader.readexactly(begun)
        match = _ID.search(head[:512])
        key = json.loads(match[1]) if match else None
        await self._write.send(
            SessionMessage(_error(key, INVALID_REQUEST, f"a message may have {self._line_bytes} bytes"))
        )
        while True:
            try:
                await self._reader.readuntil(b"\n")
                return
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)


class _Writing:
    """The stream of messages that the SDK writes."""

    def __init__(self, connection: Connection, writer: LineSink) -> None:
        self.closed = False
        self._connection = connection
        self._writer = writer

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message as one line; raises BrokenResourceError once nobody reads."""
        if self.closed:
            raise anyio.BrokenResourceError
        message = item.message
        try:
            self._writer.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                self._connection.ended(message.id)
            await self._writer.drain()
        except (ConnectionError, RuntimeError):
            self.closed = True
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """Write what is left and close."""
        self.closed = True
        with suppress(OSError):
            self._writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The answer to a line that is no message: the SDK itself would drop it without a word."""

    error: JSONRPCError


def _parsed(line: bytes) -> "JSONRPCMessage | _Refusal":
    with suppress(ValueError):
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return _Refusal(_error(None, PARSE_ERROR, "this line is no JSON"))
    key = raw.get("id") if isinstance(raw, Mapping) else None
    known = key if isinstance(key, str | int) and not isinstance(key, bool) else None
    return _Refusal(_error(known, INVALID_REQUEST, "this is no JSON-RPC message"))


def _error(key: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError.model_validate({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}})
