"""The three doors of a home as a host sees them, opened by real processes: shim, standalone server, HTTP."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from agentstead.kit import Home
from agentstead.policy import trust_host

Door = Literal["shim", "standalone", "http"]
DOORS: tuple[Door, ...] = ("shim", "standalone", "http")
ERAS = ("legacy", "2026-07-28")
SERVERS = ("sessions", "memory", "skills", "permissions", "workspace", "network")

CLIENT = "acceptance"
PROGRAM = [sys.executable, "-m", "agentstead.cli"]
DEADLINE_S = 60.0


class Person:
    """Says yes to every form, and counts them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow_once"})


def environ(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a program on this home, without anything of ours from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTSTEAD_", "OTEL_"))}
    return kept | {"AGENTSTEAD_HOME": str(home)} | more


async def trusting(home: Path, *names: str) -> None:
    """Make a home in which the forms of these hosts count."""
    opened = await Home.open(home)
    for name in names or (CLIENT,):
        await opened.state.write(trust_host, name, forms_only=True)
    await opened.close()


@contextmanager
def serving(home: Path, **more: str) -> Iterator[str]:
    """Run `agentstead up` on a free port; yield the base address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = home.parent / "up.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*PROGRAM, "up", "--port", str(port)], env=environ(home, **more), stdout=out, stderr=out
        )
    base = f"http://127.0.0.1:{port}"
    try:
        wait_ready(base, process, log)
        yield base
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=DEADLINE_S)


def wait_ready(base: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once `/readyz` answers; fail with the log where the process ends first."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{base}/readyz", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"{base} is not ready: {log.read_text()}")


def stop(home: Path) -> None:
    """Stop the coordinator of a home, if one runs."""
    subprocess.run([*PROGRAM, "stop"], env=environ(home), capture_output=True, timeout=DEADLINE_S, check=False)


@asynccontextmanager
async def connected(
    door: Door,
    era: str,
    server: str,
    home: Path,
    *,
    base: str = "",
    cwd: Path | None = None,
    person: Person | None = None,
) -> AsyncIterator[Client]:
    """Connect the SDK's own client through a door."""
    options: dict[str, Any] = {
        "mode": era,
        "client_info": types.Implementation(name=CLIENT, version="1"),
        "elicitation_callback": person.answer if person else None,
        "read_timeout_seconds": DEADLINE_S,
    }
    if door == "http":
        token = (home / "keys" / "http.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"} | ({"Agentstead-Workspace": str(cwd)} if cwd else {})
        async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE_S) as http:
            transport = streamable_http_client(f"{base}/{server}/mcp", http_client=http)
            async with Client(transport, **options) as client:
                yield client
        return
    arguments = [*PROGRAM[1:], "serve", server, *(["--standalone"] if door == "standalone" else [])]
    parameters = StdioServerParameters(command=PROGRAM[0], args=arguments, env=environ(home), cwd=cwd)
    async with Client(parameters, **options) as client:
        yield client


def innermost(error: BaseException) -> BaseException:
    """Return the first error inside nested groups: the clients' task groups wrap what a test met."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
