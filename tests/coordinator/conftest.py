"""Real shims and coordinators over the fake home, a coordinator that a test plays, and an end for all of them."""

import importlib.util
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentstead.coordinator import control, greeting, places

PROGRAM = Path(__file__).parents[1] / "fakes" / "coordinated.py"
DEADLINE_S = 30.0

Message = dict[str, Any]


class Host:
    """A shim's or server's process, seen by the host that started it."""

    def __init__(self, argv: list[str], environ: dict[str, str], *, cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, cwd=cwd, bufsize=0
        )
        self._pending = b""
        self.heard: list[Message] = []

    def raw(self, text: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)

    def say(self, **message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def call(self, key: int | str, name: str, /, _meta: Message | None = None, **arguments: Any) -> None:
        params: Message = {"name": name, "arguments": arguments}
        self.say(id=key, method="tools/call", params={**params, "_meta": _meta} if _meta else params)

    def initialize(self, *, capabilities: Message | None = None) -> Message:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}, "clientInfo": client}
        self.say(id="initialize", method="initialize", params=params)
        answer = self.answer("initialize")
        self.say(method="notifications/initialized")
        return answer

    def hear(self, *, timeout_s: float = DEADLINE_S) -> Message:
        """Return the next line; every line that was ever written is checked to be whole."""
        until = time.monotonic() + timeout_s
        assert self.process.stdout is not None
        while b"\n" not in self._pending:
            left = until - time.monotonic()
            assert left > 0, f"nothing was said within {timeout_s} s; so far {self.heard}"
            if select.select([self.process.stdout], [], [], left)[0]:
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                assert chunk, f"the program ended: {self.errors()}"
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        message: Message = json.loads(line)
        self.heard.append(message)
        return message

    def answer(self, key: int | str, *, timeout_s: float = DEADLINE_S) -> Message:
        """Return the answer to a request, reading past everything else."""
        for message in self.heard:
            if message.get("id") == key and "method" not in message:
                return message
        until = time.monotonic() + timeout_s
        while True:
            message = self.hear(timeout_s=max(until - time.monotonic(), 0.001))
            if message.get("id") == key and "method" not in message:
                return message

    def result(self, key: int | str, *, timeout_s: float = DEADLINE_S) -> Message:
        """Return what a tool answered."""
        answer = self.answer(key, timeout_s=timeout_s)
        assert "result" in answer, answer
        assert not answer["result"].get("isError"), answer
        found: Message = answer["result"]["structuredContent"]
        return found

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def rest(self) -> list[Message]:
        """Return everything that is still said until the program ends."""
        assert self.process.stdout is not None
        self._pending += self.process.stdout.read()
        lines = self._pending.splitlines()
        self._pending = b""
        return [json.loads(line) for line in lines]

    def errors(self) -> str:
        assert self.process.stderr is not None
        self.end()
        return self.process.stderr.read().decode()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


class PlayedCoordinator:
    """A coordinator that the test plays line by line on the local socket of a home."""

    def __init__(self, home: Path) -> None:
        places.private_folder(str(home / "run"))
        self._path = Path(places.socket_path(str(home)))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._listener.listen(8)
        self._listener.settimeout(DEADLINE_S)
        self.hello: Message = {}
        self._wires: list[Wire] = []

    def meet(self, *, version: str = "0.1.0", greet: bool = True) -> "Wire":
        link, _ = self._listener.accept()
        link.settimeout(DEADLINE_S)
        wire = Wire(link)
        self._wires.append(wire)
        self.hello = wire.hear()
        if greet:
            link.sendall(greeting.say("welcome", version=version, pid=1))
        return wire

    def close(self) -> None:
        for wire in self._wires:
            wire.close()
        if self._listener.fileno() >= 0:
            self._listener.close()
            self._path.unlink(missing_ok=True)


class Wire:
    """One connection of a shim, from the other side."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._lines = link.makefile("rb")

    def hear(self) -> Message:
        line = self._lines.readline()
        assert line.endswith(b"\n"), line
        message: Message = json.loads(line)
        return message

    def say(self, **message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")

    def raw(self, text: bytes) -> None:
        self.link.sendall(text)

    def at_end(self) -> bool:
        try:
            return self._lines.readline() == b""
        except ConnectionResetError:  # it ended with lines of ours unread
            return True

    def close(self) -> None:
        self._lines.close()
        self.link.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A home's path; whatever coordinator serves it is gone afterwards."""
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    yield home
    # A shim that was ended may have begun a start that is still under way.
    until(lambda: not control.stop(home, timeout_s=0) and not processes_of(home))


@pytest.fixture
def environ() -> dict[str, str]:
    """An environment without anything of ours, and with a port of its own for each test's coordinator."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTSTEAD_")}
    return {**kept, "AGENTSTEAD_COORDINATOR_PORT": str(free_port())}


@pytest.fixture
def serve(place: Path, environ: dict[str, str]) -> Iterator[Callable[..., Host]]:
    """Start `serve notes` (a shim, or with `--standalone` a server) as a host does."""
    hosts: list[Host] = []

    def start(*options: str, server: str = "notes", cwd: Path | None = None, **variables: str) -> Host:
        argv = [sys.executable, str(PROGRAM), "serve", server, "--home", str(place), *options]
        hosts.append(Host(argv, {**environ, **variables}, cwd=cwd))
        return hosts[-1]

    yield start
    for host in hosts:
        host.end()
        assert host.process.stderr is not None
        host.process.stderr.close()


@pytest.fixture
def run(place: Path, environ: dict[str, str]) -> Iterator[Callable[..., Host]]:
    """Start `run`, as `agentstead up` would in the foreground, and wait until it says where it listens."""
    hosts: list[Host] = []

    def start(*options: str, wait: bool = True, **variables: str) -> Host:
        argv = [sys.executable, str(PROGRAM), "run", "--home", str(place), "--port", "0", *options]
        host = Host(argv, {**environ, **variables})
        hosts.append(host)
        if wait:
            host.hear()
        return host

    yield start
    for host in hosts:
        host.end()
        assert host.process.stderr is not None
        host.process.stderr.close()


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose coordinator runs for all tests of a module: for those that do it no harm."""
    home = tmp_path_factory.mktemp("standing")
    home.chmod(0o700)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTSTEAD_")}
    host = Host([sys.executable, str(PROGRAM), "run", "--home", str(home), "--port", "0"], kept)
    host.hear()
    yield home
    host.end()
    assert host.process.stderr is not None
    host.process.stderr.close()


@pytest.fixture
def visit(standing: Path, serve: Callable[..., Host]) -> Callable[..., Host]:
    """Start a shim at the standing coordinator."""
    return partial(serve, "--home", str(standing))


@pytest.fixture
def played(place: Path) -> Iterator[PlayedCoordinator]:
    """A coordinator that the test plays."""
    coordinator = PlayedCoordinator(place)
    yield coordinator
    coordinator.close()


def fake_home(path: Path) -> Any:
    """Return the fake home itself, for tests that need no process of their own."""
    spec = importlib.util.spec_from_file_location("fake_home", PROGRAM.with_name("fake_home.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FakeHome(path, "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def coordinator_pid(home: Path) -> int:
    """Return the process that serves a home now."""
    status = control.status(home)
    assert status.record is not None, status
    return status.record.pid


def processes_of(home: Path) -> list[int]:
    """Return the coordinators of a home that have not ended, however they stand."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            argv = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
            if str(home) in argv and "run" in argv:
                found.append(int(entry.name))
    return found


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], bool], *, timeout_s: float = DEADLINE_S) -> None:
    """Wait until a condition holds; fails at the deadline."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "the condition did not come to hold"
        select.select([], [], [], 0.01)
