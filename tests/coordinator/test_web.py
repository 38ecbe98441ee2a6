"""The HTTP listener as a task, and calls under way when it leaves."""

import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from agentstead.coordinator import control
from agentstead.coordinator.web import Web, base_url, bind
from agentstead.kit.http import Exchanges
from agentstead.state import Unavailable
from tests.coordinator.conftest import Host, coordinator_pid, until
from tests.coordinator.test_http import ACCEPT, BEARER, MODERN


def test_a_free_port_is_found_and_told() -> None:
    with bind("127.0.0.1", 0) as bound:
        assert base_url(bound) == f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_an_address_of_version_six_is_written_in_brackets() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        bound = bind("::1", 0)
    except Unavailable:
        pytest.skip("this machine has no IPv6 loopback")
    with bound:
        assert base_url(bound).startswith("http://[::1]:")


def test_a_taken_port_is_an_error_with_a_way_out() -> None:
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        with pytest.raises(Unavailable) as caught:
            bind("127.0.0.1", port)
    assert str(port) in caught.value.message
    assert "--port" in caught.value.remedy


def test_a_port_can_be_taken_again_right_after_its_listener_is_gone() -> None:
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = bound.accept()
            accepted.close()
    bind("127.0.0.1", port).close()


class Served:
    """An app whose answers a test releases, behind a listener."""

    def __init__(self) -> None:
        self.release = anyio.Event()
        self.exchanges = Exchanges()
        self.ended: list[str] = []
        bound = bind("127.0.0.1", 0)
        self.url = base_url(bound)
        self.web = Web(
            Starlette(routes=[Route("/call", self._call), Route("/stream", self._stream)]), bound, self.exchanges
        )

    async def _call(self, _request: Request) -> Response:
        async with self.exchanges.counted(stream=False):
            await self.release.wait()
        return PlainTextResponse("answered" if self.release.is_set() else "ended")

    async def _stream(self, _request: Request) -> Response:
        async def endless() -> AsyncIterator[bytes]:
            async with self.exchanges.counted(stream=True):
                yield b"begun\n"
                await anyio.sleep_forever()
            self.ended.append("stream")

        return StreamingResponse(endless())


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    found = Served()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(found.web.serve)
        yield found
        await found.web.leave(within_s=0)


@pytest.mark.anyio
async def test_a_call_under_way_is_answered_before_it_leaves() -> None:
    async with (
        served() as server,
        httpx2.AsyncClient(base_url=server.url) as client,
        anyio.create_task_group() as tasks,
    ):
        answers: list[str] = []

        async def call() -> None:
            answers.append((await client.get("/call")).text)

        tasks.start_soon(call)
        while not server.exchanges.calls:
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(lambda: server.web.leave(within_s=30))
        await anyio.wait_all_tasks_blocked()
        server.release.set()
        with anyio.fail_after(10):
            while not answers:
                await anyio.lowlevel.checkpoint()
        assert answers == ["answered"]


@pytest.mark.anyio
async def test_a_stream_is_ended_so_that_it_can_leave() -> None:
    async with served() as server, httpx2.AsyncClient(base_url=server.url) as client:
        async with client.stream("GET", "/stream") as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "begun"
            with anyio.fail_after(10):
                await server.web.leave(within_s=30)
                rest = [line async for line in lines]
        assert rest == []
        assert server.ended == ["stream"]


@pytest.mark.anyio
async def test_an_app_that_cannot_start_is_an_error_and_not_only_a_line_in_the_log() -> None:
    async def broken(scope: Any, receive: Any, _send: Any) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        raise OSError("no")

    with bind("127.0.0.1", 0) as bound, pytest.raises(RuntimeError, match="ended by itself"):
        await Web(broken, bound, Exchanges()).serve()


def test_a_call_over_http_is_answered_although_the_coordinator_was_asked_to_end(
    run: Callable[..., Host], place: Path
) -> None:
    url = run().heard[0]["notes"]
    params: dict[str, Any] = {"name": "sleep", "arguments": {"seconds": 1.0}, "_meta": MODERN}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    era = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "sleep"}
    pid = coordinator_pid(place)

    async def called() -> dict[str, Any]:
        async with httpx2.AsyncClient(headers={**BEARER, **ACCEPT, **era}, timeout=30) as client:
            answer: dict[str, Any] = (await client.post(url, json=call)).json()
            return answer

    async def both() -> dict[str, Any]:
        answers: list[dict[str, Any]] = []
        async with anyio.create_task_group() as tasks:

            async def keep() -> None:
                answers.append(await called())

            tasks.start_soon(keep)
            while not control.status(place).live["open_calls"]:
                await anyio.lowlevel.checkpoint()
            os.kill(pid, signal.SIGTERM)
        return answers[0]

    answer = anyio.run(both)
    assert answer["result"]["structuredContent"] == {"slept": 1.0}, json.dumps(answer)
    until(lambda: control.status(place).state == "stopped")
