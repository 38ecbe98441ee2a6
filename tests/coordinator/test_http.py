"""HTTP: what is refused, in which order and without reading, and what passes."""

import http.client
import json
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.server.lowlevel import Server
from starlette.types import ASGIApp

from agentstead.coordinator import control
from agentstead.kit.http import Exchanges, Standing, TokenKind, hosts_of, http_app
from tests.coordinator.conftest import DEADLINE_S, Host, coordinator_pid, until

BEARER = {"authorization": "Bearer home-token"}
LOCAL = {"host": "127.0.0.1:7433"}
BODY_BYTES = 10_000
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def check_token(token: str) -> TokenKind | None:
    return "home" if token == "home-token" else None


def app(standing: Callable[[], Standing] = lambda: "serving", **options: Any) -> ASGIApp:
    return http_app(
        {"notes": Server("notes")}, check_token=check_token, standing=standing, body_bytes=BODY_BYTES, **options
    )


class Exchange:
    """One request to an ASGI app, counting what is read of its body."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks) or [b""]
        self.read = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    async def receive(self) -> dict[str, Any]:
        self.read += 1
        if not self._chunks:
            return {"type": "http.disconnect"}
        chunk = self._chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks)}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message.get("body", b"")


async def exchanged(
    served: ASGIApp,
    headers: dict[str, str] | list[tuple[str, str]],
    *chunks: bytes,
    method: str = "POST",
    path: str = "/notes/mcp",
) -> Exchange:
    exchange = Exchange(*chunks)
    pairs = headers.items() if isinstance(headers, dict) else headers
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7433),
    }
    await served(scope, exchange.receive, exchange.send)
    return exchange


@asynccontextmanager
async def alive(served: ASGIApp) -> AsyncIterator[None]:
    """Run the app's lifespan."""
    to_app, from_app = anyio.Event(), anyio.Event()
    asked = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Any:
        message = next(asked)
        if message["type"] == "lifespan.shutdown":
            await to_app.wait()
        return message

    async def send(_message: Any) -> None:
        from_app.set()

    async with anyio.create_task_group() as tasks:
        scope: Any = {"type": "lifespan", "asgi": {"version": "3.0"}}

        async def run() -> None:
            await served(scope, receive, send)

        tasks.start_soon(run)
        await from_app.wait()
        yield
        to_app.set()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "evil.example:7433", "", "localhost:abc", "127.0.0.1@evil", "[::2]"],
)
async def test_a_foreign_host_is_refused_before_its_token_is_looked_at(host: str) -> None:
    for headers in ({"host": host}, {"host": host, **BEARER}):
        found = await exchanged(app(), headers, b"{}")
        assert (found.status, found.read) == (421, 0)


@pytest.mark.anyio
@pytest.mark.parametrize("headers", [[], [("host", "127.0.0.1"), ("host", "127.0.0.1")]])
async def test_a_request_has_exactly_one_host(headers: list[tuple[str, str]]) -> None:
    assert (await exchanged(app(), headers)).status == 421


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST:7433", "[::1]:7433"])
async def test_this_machine_may_be_called_by_its_names_on_any_port(host: str) -> None:
    assert (await exchanged(app(), {"host": host})).status == 401


@pytest.mark.anyio
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://127.0.0.1:1.evil",
        "file://",
        "localhost",
        "",
    ],
)
async def test_a_foreign_origin_is_refused_before_its_token_is_looked_at(origin: str) -> None:
    for headers in ({**LOCAL, "origin": origin}, {**LOCAL, "origin": origin, **BEARER}):
        found = await exchanged(app(), headers, b"{}")
        assert (found.status, found.read) == (403, 0)


@pytest.mark.anyio
@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"])
async def test_a_local_page_is_let_as_far_as_the_token(origin: str) -> None:
    assert (await exchanged(app(), {**LOCAL, "origin": origin})).status == 401


@pytest.mark.anyio
@pytest.mark.parametrize("given", [None, "", "Basic aG9tZS10b2tlbg==", "Bearer", "Bearer ", "Bearer a b", "home-token"])
async def test_without_a_bearer_token_the_challenge_names_no_error(given: str | None) -> None:
    headers = LOCAL if given is None else {**LOCAL, "authorization": given}
    found = await exchanged(app(), headers, b"{}")
    assert (found.status, found.read) == (401, 0)
    assert found.headers["www-authenticate"] == 'Bearer realm="agentstead"'
    assert "agentstead home token" in json.loads(found.body)["remedy"]


@pytest.mark.anyio
async def test_a_wrong_token_is_called_invalid_and_not_repeated() -> None:
    found = await exchanged(app(), {**LOCAL, "authorization": "Bearer wrong-token"}, b"{}")
    assert (found.status, found.read) == (401, 0)
    assert 'error="invalid_token"' in found.headers["www-authenticate"]
    assert b"wrong-token" not in found.body


@pytest.mark.anyio
async def test_two_tokens_are_none() -> None:
    headers = [("host", "localhost"), ("authorization", "Bearer home-token"), ("authorization", "Bearer home-token")]
    assert (await exchanged(app(), headers)).status == 401


@pytest.mark.anyio
async def test_the_scheme_may_be_written_in_any_case() -> None:
    assert (await exchanged(app(), {**LOCAL, "authorization": "bEARER home-token"}, path="/none")).status == 404


@pytest.mark.anyio
async def test_a_body_whose_declared_length_is_too_much_is_not_read() -> None:
    found = await exchanged(app(), {**LOCAL, **BEARER, **ACCEPT, "content-length": str(50 * 1024 * 1024)}, b"x")
    assert (found.status, found.read) == (413, 0)


@pytest.mark.anyio
async def test_a_body_that_grows_too_long_is_not_read_to_its_end() -> None:
    found = await exchanged(app(), {**LOCAL, **BEARER, **ACCEPT}, *[b"x" * 1000] * 5000)
    assert found.status == 413
    assert found.read <= BODY_BYTES // 1000 + 1


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/", "/mcp", "/notes", "/other/mcp", "/notes/mcp/x"])
async def test_only_the_servers_have_addresses(path: str) -> None:
    assert (await exchanged(app(), {**LOCAL, **BEARER}, path=path)).status == 404
    assert (await exchanged(app(), LOCAL, path=path)).status == 401


@pytest.mark.anyio
async def test_health_needs_no_token_and_readiness_follows_the_coordinator() -> None:
    standing: list[Standing] = ["starting"]
    served = app(lambda: standing[0])
    found = {}
    for now in ("starting", "serving", "draining", "stopping"):
        standing[0] = now
        assert (await exchanged(served, LOCAL, method="GET", path="/healthz")).status == 200
        found[now] = (await exchanged(served, LOCAL, method="GET", path="/readyz")).status
    assert found == {"starting": 503, "serving": 200, "draining": 503, "stopping": 503}
    assert (await exchanged(served, {"host": "evil.example"}, method="GET", path="/healthz")).status == 421


@pytest.mark.anyio
async def test_one_that_is_leaving_asks_to_be_tried_later() -> None:
    found = await exchanged(app(lambda: "stopping"), {**LOCAL, **BEARER}, b"{}")
    assert (found.status, found.read) == (503, 0)
    assert int(found.headers["retry-after"]) > 0
    assert json.loads(found.body)["code"] == "coordinator.draining"


@pytest.mark.anyio
async def test_a_session_belongs_to_the_token_that_opened_it() -> None:
    async def two_tokens(token: str) -> TokenKind | None:
        return {"one": "home", "two": "operator"}.get(token)  # type: ignore[return-value]

    served = http_app({"notes": Server("notes")}, check_token=two_tokens, standing=lambda: "serving")
    async with alive(served):
        one = {**LOCAL, **ACCEPT, "authorization": "Bearer one"}
        opened = await exchanged(served, one, json.dumps(INITIALIZE).encode())
        assert opened.status == 200
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        assert (await exchanged(served, {**one, **session}, ping)).status == 200
        other = {**one, **session, "authorization": "Bearer two"}
        assert (await exchanged(served, other, ping)).status == 404


@pytest.mark.anyio
async def test_calls_and_streams_are_counted_apart_and_can_be_ended() -> None:
    exchanges = Exchanges()
    async with anyio.create_task_group() as tasks:

        async def hold(*, stream: bool) -> None:
            async with exchanges.counted(stream=stream):
                await anyio.sleep_forever()

        tasks.start_soon(lambda: hold(stream=True))
        tasks.start_soon(lambda: hold(stream=False))
        await anyio.wait_all_tasks_blocked()
        assert (exchanges.calls, exchanges.streams) == (1, 1)
        with anyio.move_on_after(0.01) as waited:
            await exchanges.settled()
        assert waited.cancelled_caught
        exchanges.end()
        await exchanges.settled()
    assert (exchanges.calls, exchanges.streams) == (0, 0)


def test_a_listener_on_another_address_may_be_called_by_it() -> None:
    assert "192.0.2.7" in hosts_of("192.0.2.7")
    assert hosts_of("127.0.0.1") == ("127.0.0.1", "localhost", "::1")


@pytest.fixture
def address(standing: Path) -> str:
    record = control.status(standing).record
    assert record is not None
    return record.http.removeprefix("http://")


def asked(address: str, headers: dict[str, str], body: Any = b"{}", *, path: str = "/notes/mcp") -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=DEADLINE_S)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_over_the_network_everything_unasked_is_refused_and_nothing_written(address: str, standing: Path) -> None:
    before = rows(standing)
    params = {"name": "apply", "arguments": {"row": "x"}, "_meta": MODERN}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(call).encode()
    era = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "apply"}
    whole = {**BEARER, **ACCEPT, **era}
    assert asked(address, {**ACCEPT}, body)[0] == 401
    assert asked(address, {**whole, "Host": "evil.example"}, body)[0] == 421
    assert asked(address, {**whole, "Origin": "https://evil.example"}, body)[0] == 403
    assert rows(standing) == before
    assert asked(address, whole, body)[0] == 200
    assert rows(standing) == [*before, "x"]


def rows(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "fake.db")) as database:
        return [name for (name,) in database.execute("SELECT name FROM applied")]


@pytest.mark.parametrize("chunked", [False, True])
def test_fifty_megabytes_are_refused_and_never_held(address: str, standing: Path, chunked: bool) -> None:
    before = control.status(standing).live["rss_bytes"]
    size = 50 * 1024 * 1024
    headers = {**BEARER, **ACCEPT, **({} if chunked else {"Content-Length": str(size)})}
    connection = http.client.HTTPConnection(address, timeout=DEADLINE_S)
    try:
        connection.request(
            "POST", "/notes/mcp", iter([b"x" * 65536] * (size // 65536)), headers, encode_chunked=chunked
        )
        assert connection.getresponse().status == 413
    finally:
        connection.close()
    grown = control.status(standing).live["rss_bytes"] - before
    print(f"50 MiB refused; the coordinator's memory grew by {grown / 1024 / 1024:.1f} MiB")
    assert grown < 16 * 1024 * 1024


@pytest.mark.anyio
async def test_the_coordinator_leaves_although_a_stream_is_open(run: Callable[..., Host], place: Path) -> None:
    address = run().heard[0]["notes"].removeprefix("http://").removesuffix("/notes/mcp")
    async with httpx2.AsyncClient(base_url=f"http://{address}", headers={**BEARER, **ACCEPT}) as client:
        opened = await client.post("/notes/mcp", json=INITIALIZE)
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await client.post("/notes/mcp", json=initialized, headers=session)
        async with client.stream("GET", "/notes/mcp", headers=session) as stream:
            assert stream.status_code == 200
            os.kill(coordinator_pid(place), signal.SIGTERM)
            with anyio.fail_after(10), suppress(httpx2.HTTPError):
                async for _ in stream.aiter_lines():
                    pass
    until(lambda: control.status(place).state == "stopped")
