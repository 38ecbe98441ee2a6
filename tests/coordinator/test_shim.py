"""The shim against a coordinator that the test plays: what reaches the host, and what reaches the next coordinator."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentstead.coordinator import control, greeting, ledger
from agentstead.coordinator.version import installed_version
from tests.coordinator.conftest import DEADLINE_S, Host, PlayedCoordinator, coordinator_pid, until

Serve = Callable[..., Host]

HEAVY = (
    "mcp",
    "mcp_types",
    "pydantic",
    "asyncio",
    "anyio",
    "subprocess",
    "threading",
    "logging",
    "dataclasses",
    "typing",
)


def test_the_hello_says_what_the_coordinator_must_know(serve: Serve, played: PlayedCoordinator, tmp_path: Path) -> None:
    serve("--toolset", "full", cwd=tmp_path, AGENTSTEAD_WORKSPACE="w", AGENTSTEAD_TOKEN="t", PRIVATE="p")
    wire = played.meet()
    assert played.hello == {
        "agentstead": "hello",
        "server": "notes",
        "toolset": "full",
        "version": installed_version(),
        "cwd": str(tmp_path),
        "pid": os.getpid(),
        "environ": {"AGENTSTEAD_WORKSPACE": "w"},
        "token": "t",
    }
    wire.close()


def test_lines_pass_in_both_directions_in_their_order(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    for key in range(20):
        host.say(id=key, method="ping")
    assert [wire.hear()["id"] for _ in range(20)] == list(range(20))
    for key in range(20):
        wire.say(id=key, result={"n": key})
    assert [host.hear()["id"] for _ in range(20)] == list(range(20))
    wire.close()


def test_a_host_never_sees_half_a_line(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.call(1, "x")
    wire.hear()
    wire.raw(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"te')
    wire.close()
    answer = host.hear()
    assert answer["id"] == 1
    assert answer["result"]["_meta"][ledger.ERROR_META]["code"] == ledger.LOST
    wire = played.meet()
    host.call(2, "x")
    assert wire.hear()["id"] == 2
    wire.say(id=2, result={})
    assert host.hear() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    wire.close()


def test_a_half_sent_call_is_sent_whole_to_the_next_coordinator_and_not_answered_twice(
    serve: Serve, played: PlayedCoordinator
) -> None:
    host = serve()
    wire = played.meet()
    host.call(1, "x", text="y" * 3_000_000)
    assert wire.link.recv(1000)
    wire.close()
    wire = played.meet()
    assert len(wire.hear()["params"]["arguments"]["text"]) == 3_000_000
    wire.say(id=1, result={})
    assert host.hear()["result"] == {}
    wire.close()


def test_what_makes_a_legacy_connection_comes_before_what_waited(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.say(id=0, method="initialize", params={})
    wire.hear()
    wire.say(id=0, result={})
    host.hear()
    host.say(method="notifications/initialized")
    host.say(id=1, method="resources/subscribe", params={"uri": "a://1"})
    wire.hear()
    wire.hear()
    wire.say(id=1, result={})
    host.hear()
    host.call(2, "lost")
    wire.hear()
    wire.close()
    assert host.hear()["id"] == 2
    host.call(3, "later")
    wire = played.meet()
    said = [wire.hear() for _ in range(4)]
    assert [each["method"] for each in said] == [
        "initialize",
        "notifications/initialized",
        "resources/subscribe",
        "tools/call",
    ]
    for each in said:
        if "id" in each:
            wire.say(id=each["id"], result={})
    assert host.hear()["id"] == 3
    wire.close()


def test_a_connection_that_breaks_before_the_greeting_is_tried_again(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    for _ in range(3):
        played.meet(greet=False).close()
    wire = played.meet()
    host.call(1, "x")
    assert wire.hear()["id"] == 1
    wire.close()


def test_a_refused_server_is_answered_with_the_reason(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve(server="nots")
    host.say(id=0, method="initialize", params={})
    wire = played.meet(greet=False)
    wire.raw(greeting.say("refused", code="ref.not_found", message="No server is named 'nots'.", remedy="Try notes."))
    answer = host.hear()
    assert answer["id"] == 0
    assert answer["error"]["message"] == "ref.not_found: No server is named 'nots'. Try notes."
    assert host.process.wait(10) == 7
    assert "No server is named" in host.errors()
    wire.close()


def test_a_host_that_spoke_late_still_hears_the_reason(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet(greet=False)
    wire.raw(greeting.say("refused", code="ref.not_found", message="No.", remedy=""))
    assert wire.at_end()
    host.say(id=0, method="initialize", params={})
    assert host.hear()["error"]["data"]["code"] == "ref.not_found"
    wire.close()


def test_a_coordinator_that_leaves_answers_first_and_gets_nothing_new(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.call(1, "slow")
    wire.hear()
    wire.raw(greeting.say("leaving", reason="handover"))
    assert wire.at_end()
    host.call(2, "new")
    wire.say(id=1, result={"n": 1})
    assert host.hear()["result"] == {"n": 1}
    wire.close()
    wire = played.meet()
    assert wire.hear()["id"] == 2
    wire.say(id=2, result={"n": 2})
    assert host.hear()["result"] == {"n": 2}
    wire.close()


def test_a_coordinator_that_was_stopped_is_not_started_again_before_it_is_needed(
    serve: Serve, played: PlayedCoordinator, place: Path
) -> None:
    host = serve()
    wire = played.meet()
    wire.raw(greeting.say("leaving", reason="stop"))
    assert wire.at_end()
    wire.close()
    played.close()
    with pytest.raises(AssertionError, match="nothing was said"):
        host.hear(timeout_s=1.0)
    assert control.status(place).state == "stopped"
    host.initialize()
    assert control.status(place).state == "serving"


def test_hosts_are_told_that_lists_may_have_changed_with_the_version(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet(version="8.0")
    host.say(id=0, method="initialize", params={})
    wire.hear()
    wire.say(id=0, result={})
    host.hear()
    wire.close()
    wire = played.meet(version="8.1")
    told = {host.hear()["method"] for _ in range(3)}
    assert told == {f"notifications/{what}/list_changed" for what in ("tools", "resources", "prompts")}
    wire.close()


def test_large_messages_can_cross_without_blocking_each_other(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    size = 8_000_000
    event = json.dumps({"jsonrpc": "2.0", "method": "n", "params": {"t": "z" * size}}).encode() + b"\n"
    with ThreadPoolExecutor() as threads:
        sent = threads.submit(wire.raw, event)
        called = threads.submit(host.call, 1, "big", text="y" * size)
        assert len(host.hear()["params"]["t"]) == size
        assert len(wire.hear()["params"]["arguments"]["text"]) == size
        sent.result(DEADLINE_S)
        called.result(DEADLINE_S)


def test_a_line_over_the_bound_is_refused_and_the_connection_goes_on(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.raw(b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":"')
    for _ in range(33):
        host.raw(b"x" * 1024 * 1024)
    host.raw(b'"}\n')
    answer = host.hear()
    assert answer["id"] == "big"
    assert answer["error"]["code"] == -32600
    host.call(2, "small")
    assert wire.hear()["id"] == 2
    wire.close()


def test_the_end_of_input_ends_the_shim_within_a_tenth_of_a_second(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.call(1, "never answered")
    wire.hear()
    began = time.monotonic()
    host.close_input()
    assert host.process.wait(10) == 0
    assert time.monotonic() - began < 0.2  # 0.08 s of grace; the rest is the end of an interpreter on a busy machine
    assert wire.at_end()
    wire.close()


def test_an_idle_shim_ends_at_once(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.close_input()
    assert host.process.wait(10) == 0
    wire.close()


def test_answers_that_come_within_the_grace_still_arrive(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.call(1, "quick")
    host.close_input()
    wire.hear()
    wire.say(id=1, result={"n": 1})
    assert [each["result"] for each in host.rest()] == [{"n": 1}]
    wire.close()


def test_the_last_line_needs_no_line_break(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    host.close_input()
    assert wire.hear()["method"] == "ping"
    wire.close()


def test_the_end_of_input_ends_a_shim_that_is_still_looking_for_its_coordinator(
    serve: Serve, played: PlayedCoordinator
) -> None:
    host = serve()
    wire = played.meet(greet=False)
    host.call(1, "x")
    host.close_input()
    assert host.process.wait(10) == 0
    wire.close()


def test_a_host_that_stops_reading_does_not_hold_the_shim_when_it_goes(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    wire.raw(json.dumps({"jsonrpc": "2.0", "method": "n", "params": {"t": "z" * 100_000}}).encode() + b"\n")
    host.close_input()
    assert host.process.wait(10) == 0
    wire.close()


def test_sigterm_ends_a_shim(serve: Serve, played: PlayedCoordinator) -> None:
    host = serve()
    wire = played.meet()
    host.process.send_signal(signal.SIGTERM)
    assert host.process.wait(10) == -signal.SIGTERM
    assert wire.at_end()
    wire.close()


def test_a_home_that_cannot_be_used_is_told_to_the_host(serve: Serve, place: Path) -> None:
    (place / "broken").touch()
    host = serve()
    host.say(id=0, method="initialize", params={})
    answer = host.hear()
    assert answer["error"]["message"].startswith("home.newer: This home has schema 9")
    assert host.process.wait(10) == 7
    until(lambda: control.status(place).state == "stopped")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_home_that_cannot_be_written_is_told_to_the_host(serve: Serve, place: Path) -> None:
    place.chmod(0o500)
    host = serve()
    host.say(id=0, method="initialize", params={})
    assert host.hear()["error"]["data"]["code"] == "home.quarantined"
    place.chmod(0o700)


def test_a_folder_that_a_host_stands_in_lends_the_coordinator_no_module(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')\n")
    host = serve(cwd=tmp_path)
    host.initialize()
    host.call(1, "where")
    assert host.result(1)["cwd"] == str(tmp_path)


def test_a_wrong_command_line_is_refused_with_its_usage() -> None:
    for words in ([], ["a", "b"], ["--unknown"], ["notes", "--toolset="]):
        ended = subprocess.run(
            [sys.executable, "-m", "agentstead.coordinator", "serve", *words], capture_output=True, check=False
        )
        assert ended.returncode == 2
        assert b"usage: agentstead serve NAME" in ended.stderr


def test_the_shim_loads_nothing_heavy() -> None:
    code = "import sys, agentstead.coordinator.shim; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, check=True, text=True
    ).stdout.split()
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)
    assert "agentstead.state" not in loaded


def test_a_shim_is_light_and_quick(serve: Serve, place: Path) -> None:
    serve().initialize()
    began = time.monotonic()
    host = serve()
    host.initialize()
    took_ms = (time.monotonic() - began) * 1000
    status = Path(f"/proc/{host.process.pid}/status").read_text()
    rss_mib = int(status.split("VmRSS:")[1].split()[0]) / 1024
    print(f"initialize over a warm coordinator: {took_ms:.0f} ms, shim RSS {rss_mib:.1f} MiB")
    assert rss_mib <= 20
    assert coordinator_pid(place)
