"""The two ends that programs share with their host: pipes, sockets, files and terminals."""

import fcntl
import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.coordinator.conftest import DEADLINE_S, PROGRAM, Host, PlayedCoordinator

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT}).encode() + b"\n"
LINE = json.dumps({"jsonrpc": "2.0", "method": "n", "params": {"t": "z" * 5000}}).encode() + b"\n"
ALONE = ("--standalone",)
BY_COORDINATOR: tuple[str, ...] = ()

Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(standing: Path, environ: dict[str, str]) -> Iterator[Begin]:
    """Start `serve notes` at the standing coordinator with ends of the test's choosing."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str, **ends: Any) -> "subprocess.Popen[bytes]":
        argv = [sys.executable, str(PROGRAM), "serve", "notes", "--home", str(standing), *options]
        started.append(subprocess.Popen(argv, env=environ, stderr=subprocess.DEVNULL, **ends))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()


def read_line(fd: int) -> bytes:
    found = b""
    until_s = time.monotonic() + DEADLINE_S
    while not found.endswith(b"\n"):
        assert time.monotonic() < until_s
        found += os.read(fd, 65536)
    return found


def is_blocking(fd: int) -> bool:
    return not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK


@pytest.mark.parametrize("options", [BY_COORDINATOR, ALONE])
def test_a_socket_as_both_ends_serves_and_stays_blocking(begin: Begin, options: tuple[str, ...]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(DEADLINE_S)
        program = begin(*options, stdin=theirs, stdout=theirs)
        ours.sendall(INITIALIZE)
        assert json.loads(ours.makefile("rb").readline())["id"] == 0
        ours.shutdown(socket.SHUT_WR)
        assert program.wait(DEADLINE_S) == 0
        assert is_blocking(theirs.fileno())


@pytest.mark.parametrize("options", [BY_COORDINATOR, ALONE])
def test_a_terminal_as_both_ends_serves_and_stays_blocking(begin: Begin, options: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    plain = termios.tcgetattr(theirs)
    plain[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(theirs, termios.TCSANOW, plain)
    program = begin(*options, stdin=theirs, stdout=theirs)
    try:
        os.write(ours, INITIALIZE)
        assert json.loads(read_line(ours))["id"] == 0
        program.terminate()
        program.wait(DEADLINE_S)
        assert options == BY_COORDINATOR or is_blocking(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_shim_never_changes_the_ends_it_was_given(begin: Begin) -> None:
    read, write = os.pipe()
    program = begin(stdin=subprocess.PIPE, stdout=write)
    try:
        assert program.stdin is not None
        program.stdin.write(INITIALIZE)
        program.stdin.flush()
        assert json.loads(read_line(read))["id"] == 0
        assert is_blocking(write)
    finally:
        os.close(read)
        os.close(write)
        assert program.stdin is not None
        program.stdin.close()


@pytest.mark.parametrize("options", [BY_COORDINATOR, ALONE])
def test_a_file_as_input_is_served_to_its_end(begin: Begin, options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(INITIALIZE)
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
        program = begin(*options, stdin=source, stdout=sink)
        assert program.wait(DEADLINE_S) == 0
    if options == ALONE:  # a shim gives a coordinator 0.08 s, which a busy machine may not keep
        assert json.loads((tmp_path / "out").read_bytes())["id"] == 0


@pytest.mark.parametrize("options", [BY_COORDINATOR, ALONE])
def test_no_input_at_all_is_the_end_of_input(begin: Begin, options: tuple[str, ...]) -> None:
    assert begin(*options, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).wait(DEADLINE_S) == 0


def test_a_shim_whose_host_reads_no_more_ends(serve: Callable[..., Host], played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    assert host.process.stdout is not None
    host.process.stdout.close()
    wire.say(method="notifications/message", params={})
    assert host.process.wait(DEADLINE_S) == 0


def flooded(send: Callable[[bytes], int]) -> tuple[int, bytes]:
    """Send lines until none is taken for half a second; return how many were, and what is left of the last."""
    sent, pending = 0, b""
    stuck_since = time.monotonic()
    while time.monotonic() - stuck_since < 0.5:
        pending = pending or LINE
        try:
            taken = send(pending)
        except BlockingIOError:
            select.select([], [], [], 0.01)
            continue
        stuck_since = time.monotonic()
        pending = pending[taken:]
        sent += not pending
        assert sent * len(LINE) < 8_000_000, "the shim takes without bound"
    return sent, pending


def test_a_host_that_reads_slowly_slows_the_coordinator_and_loses_nothing(
    serve: Callable[..., Host], played: PlayedCoordinator
) -> None:
    host = serve()
    wire = played.meet()
    wire.link.setblocking(False)
    sent, pending = flooded(wire.link.send)
    with ThreadPoolExecutor() as threads:
        wire.link.settimeout(DEADLINE_S)
        rest = threads.submit(wire.raw, pending)
        assert all(len(host.hear()["params"]["t"]) == 5000 for _ in range(sent + bool(pending)))
        rest.result(DEADLINE_S)


def test_a_coordinator_that_reads_slowly_slows_the_host_and_loses_nothing(
    serve: Callable[..., Host], played: PlayedCoordinator
) -> None:
    host = serve()
    wire = played.meet()
    assert host.process.stdin is not None
    fd = host.process.stdin.fileno()
    os.set_blocking(fd, False)
    sent, pending = flooded(lambda data: os.write(fd, data))
    os.set_blocking(fd, True)
    with ThreadPoolExecutor() as threads:
        rest = threads.submit(host.raw, pending)
        assert all(len(wire.hear()["params"]["t"]) == 5000 for _ in range(sent + bool(pending)))
        rest.result(DEADLINE_S)
