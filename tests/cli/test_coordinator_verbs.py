"""`agentstead up`, `status`, `logs`, `drain`, `stop` over a real coordinator, and what a connected host may not do."""

import json
import os
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentstead.coordinator import control
from agentstead.identity import TOKEN_FILE

from .conftest import Run

DEADLINE_S = 60
COMMAND = [sys.executable, "-m", "agentstead.cli"]


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the block ends; it gets the chance to end well."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def first_line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        assert process.stderr is not None
        pytest.fail(process.stderr.read())
    return json.loads(line)


def test_up_serves_tells_its_addresses_and_is_seen_and_stopped(run: Run, home_path: Path) -> None:
    with started("up", "--port", "0", "-o", "json") as up:
        told = first_line(up)
        assert told["state"] == "serving"
        assert {name: address.split("/")[3] for name, address in told["addresses"].items()} == {
            name: name for name in told["addresses"]
        }
        assert "memory" in told["addresses"]
        status = run("status", "-o", "json").json
        assert (status["state"], status["pid"]) == ("serving", told["pid"])
        assert status["addresses"] == told["addresses"]
        shown = run("status").out
        assert "serving" in shown
        assert str(home_path / TOKEN_FILE) in shown
        assert any("serving" in line for line in run("logs").out.splitlines())
        address = told["addresses"]["memory"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(address, data=b"{}"), timeout=DEADLINE_S)
        assert refused.value.code == 401
        again = run("up", "--port", "0", "-o", "json")
        assert again.code == 0
        assert again.json["running"] is True
        assert run("stop", "-o", "json").json == {"state": "stopped", "note": ""}
        assert up.wait(timeout=DEADLINE_S) == 0
    assert run("status", "-o", "json").json == {"home": str(home_path), "state": "stopped"}


def test_up_says_in_words_how_to_connect(home_path: Path) -> None:
    with started("up", "--port", "0") as up:
        assert up.stdout is not None
        shown = ""
        while "Ctrl-C" not in shown:
            line = up.stdout.readline()
            assert line, shown
            shown += line
        assert f"serves {home_path}" in shown
        assert "/memory/mcp" in shown
        assert "Connect a host: agentstead install HOST" in shown
        up.send_signal(signal.SIGINT)
        assert up.wait(timeout=DEADLINE_S) == 0


def test_one_server_alone_is_served_over_http(home_path: Path) -> None:
    with started("up", "--only", "memory", "--port", "0", "-o", "json") as up:
        assert list(first_line(up)["addresses"]) == ["memory"]
        assert control.status(home_path).record is None


def test_a_drain_is_done_when_nothing_is_under_way_and_can_be_taken_back(run: Run, home_path: Path) -> None:
    with started("up", "--port", "0", "-o", "json") as up:
        first_line(up)
        assert run("drain", "-o", "json").json == {"state": "draining", "left": 0}
        assert run("status", "-o", "json").json["state"] == "draining"
        assert run("drain", "--undo", "-o", "json").json == {"state": "serving"}


def test_without_a_coordinator_each_verb_says_so(run: Run, home_path: Path) -> None:
    drained = run("drain")
    assert drained.code == 7
    assert drained.err.startswith("coordinator.lost: ")
    assert run("stop", "-o", "json").json == {"state": "stopped", "note": "None was running."}
    assert run("status").code == 0
    logs = run("logs")
    assert logs.out == ""
    assert "There is no log yet" in logs.err
    assert run("logs", "--path", "-o", "json").json == {"path": str(home_path / "logs" / "coordinator.log")}


def test_a_fault_in_the_settings_is_told_and_does_not_stop_up(home_path: Path) -> None:
    home_path.mkdir(mode=0o700)
    (home_path / "config.toml").write_text("[log]\nlevl = 1\n")
    with started("up", "--port", "0", "-o", "json") as up:
        assert first_line(up)["state"] == "serving"
        up.send_signal(signal.SIGINT)
        _, said = up.communicate(timeout=DEADLINE_S)
    assert "config.unknown_key: 'log.levl'" in said


def test_what_a_connected_host_starts_is_refused_a_persons_verbs(home_path: Path, tmp_path: Path) -> None:
    """This process plays the host: it starts the shim, and then a command."""
    environ = {**os.environ, "HOME": str(tmp_path / "person")}
    line = [*COMMAND, "install", "cursor", "-o", "json"]
    with started("serve", "memory") as shim:
        assert shim.stdin is not None
        assert shim.stdout is not None
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        shim.stdin.write(json.dumps(request) + "\n")
        shim.stdin.flush()
        assert json.loads(shim.stdout.readline())["id"] == 1
        refused = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert refused.returncode == 3
        assert "started by a host that is connected" in json.loads(refused.stdout)["error"]["message"]
    allowed = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert allowed.returncode == 0
    control.stop(home_path)


def test_the_log_is_followed_as_it_grows(run: Run, home_path: Path) -> None:
    path = home_path / "logs" / "coordinator.log"
    path.parent.mkdir(parents=True)
    path.write_text("2026-11-30T12:00:00.000Z INFO agentstead: first\n2026-11-30T12:00:01.000Z ERROR agentstead: bad\n")
    assert run("logs", "--level", "error", "-o", "json").json == {
        "entry": "2026-11-30T12:00:01.000Z ERROR agentstead: bad"
    }
    with started("logs", "--follow", "-n", "1") as following:
        assert following.stdout is not None
        assert "bad" in following.stdout.readline()
        # The follower opens the file after it has shown its end: lines come until one of them is seen.
        with path.open("a") as log:
            while not select.select([following.stdout], [], [], 0.05)[0]:
                log.write("2026-11-30T12:00:02.000Z INFO agentstead: \x1b[31mnew\n")
                log.flush()
        shown = following.stdout.readline()
        assert "\\x1b[31mnew" in shown
