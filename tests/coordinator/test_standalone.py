"""One server in a process of its own, without the home's lock."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentstead.coordinator import control
from tests.coordinator.conftest import PROGRAM, Host

Start = Callable[..., Host]
ALONE = "--standalone"


def test_it_serves_without_a_coordinator_and_without_the_lock(serve: Start, place: Path) -> None:
    host = serve(ALONE, AGENTSTEAD_WORKSPACE="w")
    host.initialize()
    host.call(1, "where")
    found = host.result(1)
    assert found["pid"] == host.process.pid
    assert found["door"] == "stdio"
    assert found["environ"] == {"AGENTSTEAD_WORKSPACE": "w"}
    assert control.status(place).state == "stopped"


def test_it_works_beside_a_coordinator(serve: Start, run: Start) -> None:
    run()
    for host in (serve(ALONE), serve()):
        host.initialize()
        host.call(1, "apply", row="r")
        assert host.result(1) == {"applied": "r"}


def test_stray_prints_do_not_reach_the_protocol(serve: Start) -> None:
    host = serve(ALONE)
    host.initialize()
    host.call(1, "where")
    host.answer(1)
    host.close_input()
    assert host.process.wait(10) == 0
    assert host.rest() == []
    assert "this print must not reach the protocol" in host.errors()


def test_calls_that_come_with_the_end_of_input_are_answered(serve: Start) -> None:
    host = serve(ALONE)
    host.initialize()
    for key in range(20):
        host.call(key, "echo", text=str(key))
    host.close_input()
    assert sorted(each["id"] for each in host.rest()) == list(range(20))
    assert host.process.wait(10) == 0


def test_sigterm_runs_its_teardown_and_ends_it_cleanly(serve: Start) -> None:
    host = serve(ALONE)
    host.initialize()
    host.call(1, "sleep", seconds=60)
    host.process.send_signal(signal.SIGTERM)
    assert host.process.wait(10) == 0


def test_a_file_can_be_its_input_and_its_output(place: Path, environ: dict[str, str], tmp_path: Path) -> None:
    client = {"name": "t", "version": "1"}
    lines: list[dict[str, Any]] = [
        {
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client},
        },
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "filed"}}},
    ]
    (tmp_path / "in").write_text("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines))
    with (tmp_path / "in").open() as source, (tmp_path / "out").open("w") as sink:
        argv = [sys.executable, str(PROGRAM), "serve", "notes", "--home", str(place), ALONE]
        subprocess.run(argv, stdin=source, stdout=sink, env=environ, check=True, timeout=30)
    answers = {line["id"]: line for line in map(json.loads, (tmp_path / "out").read_text().splitlines())}
    assert answers[1]["result"]["structuredContent"] == {"text": "filed"}


def test_a_home_that_cannot_be_used_is_told_on_standard_error(serve: Start, place: Path) -> None:
    (place / "broken").touch()
    host = serve(ALONE)
    assert host.process.wait(10) == 7
    assert "home.newer: This home has schema 9" in host.errors()


def test_an_unknown_server_is_told_on_standard_error(serve: Start) -> None:
    host = serve(ALONE, server="nots")
    assert host.process.wait(10) == 7


def test_one_server_alone_can_be_served_over_http(run: Start, place: Path) -> None:
    alone = run("--only", "other")
    assert list(alone.heard[0]) == ["state", "pid", "other"]
    assert control.status(place).state == "stopped"
    alone.process.send_signal(signal.SIGTERM)
    assert alone.process.wait(10) == 0


def test_beside_a_coordinator_at_its_address_one_server_alone_tells_that_address(run: Start) -> None:
    whole = run()
    port = whole.heard[0]["notes"].split(":")[2].split("/")[0]
    alone = run("--only", "notes", "--port", port)
    assert alone.heard[0]["pid"] == whole.process.pid
    assert alone.process.wait(10) == 0
