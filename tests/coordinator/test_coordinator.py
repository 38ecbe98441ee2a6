"""Coordinators as processes: started by many at once, killed, drained, idle, replaced, and in each other's way."""

import json
import os
import random
import signal
import socket
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentstead.coordinator import control, greeting, ledger, places
from agentstead.coordinator.statefile import read_record
from agentstead.coordinator.version import installed_version
from agentstead.state import HomeLock, Unavailable
from tests.coordinator.conftest import DEADLINE_S, Host, coordinator_pid, kill, processes_of, until

Start = Callable[..., Host]

# The acceptance run takes 1,000: AGENTSTEAD_TEST_MIXED_CALLS=1000.
MIXED_CALLS = int(os.environ.get("AGENTSTEAD_TEST_MIXED_CALLS", "300"))
KILLS = 3 if MIXED_CALLS < 1000 else 8
SHIMS_AT_ONCE = 20


def test_twenty_shims_at_once_on_an_empty_home_start_one_coordinator(serve: Start, place: Path) -> None:
    began = time.monotonic()
    hosts = [serve() for _ in range(SHIMS_AT_ONCE)]
    with ThreadPoolExecutor(SHIMS_AT_ONCE) as threads:
        answers = list(threads.map(lambda host: host.initialize(), hosts))
    took = time.monotonic() - began
    assert len(answers) == SHIMS_AT_ONCE
    for host in hosts:
        host.call(1, "where")
    pids = {host.result(1)["pid"] for host in hosts}
    assert pids == {coordinator_pid(place)}
    assert processes_of(place) == list(pids)
    assert control.status(place).live["links"] == {"notes": SHIMS_AT_ONCE}
    print(f"{SHIMS_AT_ONCE} shims on an empty home were all initialized after {took:.2f} s")


def test_shims_that_lose_their_coordinator_together_come_back_with_one_start(serve: Start, place: Path) -> None:
    hosts = [serve() for _ in range(8)]
    for host in hosts:
        host.initialize()
    first = coordinator_pid(place)
    began = time.monotonic()
    kill(first)
    pids = {persisted(host, "where")["pid"] for host in hosts}
    assert pids == {coordinator_pid(place)}
    assert pids != {first}
    print(f"8 shims were served again {time.monotonic() - began:.2f} s after a SIGKILL")


def persisted(host: Host, name: str, **arguments: Any) -> Any:
    """Make a call that may be made again, as often as its coordinator is lost under it."""
    for attempt in range(10):
        host.call(f"{name}.{attempt}", name, **arguments)
        result = host.answer(f"{name}.{attempt}")["result"]
        if not result.get("isError"):
            return result["structuredContent"]
        assert result["_meta"][ledger.ERROR_META]["code"] == ledger.LOST
    raise AssertionError("the call was lost ten times")


def applied(place: Path) -> list[str]:
    with sqlite3.connect(place / "fake.db") as database:
        found = [name for (name,) in database.execute("SELECT name FROM applied")]
    database.close()
    return found


def mixed(host: Host, who: int, calls: int, acknowledged: set[str]) -> int:
    """Make mixed calls one after the other; a keyed one that was lost is made again, an unkeyed one never."""
    lost = 0
    for number in range(calls):
        name = f"{who}-{number}"
        key = name if number % 2 else None
        attempt = 0
        while True:
            identity = f"{name}.{attempt}"
            if number % 3 == 2:
                host.call(identity, "echo", text=name)
            else:
                host.call(identity, "apply", row=name, key=key)
            result = host.answer(identity)["result"]
            if not result.get("isError"):
                if number % 3 != 2:
                    acknowledged.add(name)
                break
            assert result["_meta"][ledger.ERROR_META]["code"] == ledger.LOST
            lost += 1
            if key is None:
                break
            attempt += 1
    return lost


def test_a_coordinator_killed_again_and_again_loses_no_acknowledged_write_and_repeats_none(
    serve: Start, place: Path
) -> None:
    hosts = [serve() for _ in range(4)]
    for host in hosts:
        host.initialize()
    acknowledged: set[str] = set()
    kills = 0
    pause = random.Random(7)
    with ThreadPoolExecutor(4) as threads:
        work = [threads.submit(mixed, host, who, MIXED_CALLS // 4, acknowledged) for who, host in enumerate(hosts)]
        while not all(each.done() for each in work):
            time.sleep(pause.uniform(0.05, 0.3))
            status = control.status(place)
            if status.answers and kills < KILLS and status.record is not None and not all(each.done() for each in work):
                kill(status.record.pid)
                kills += 1
        lost = sum(each.result() for each in work)
    rows = applied(place)
    assert acknowledged <= set(rows)
    assert len(rows) == len(set(rows)), "a call was carried out twice"
    assert kills
    print(f"{MIXED_CALLS} mixed calls, {kills} kills: {len(acknowledged)} writes acknowledged, {lost} calls lost")


def test_subscriptions_of_both_eras_are_alive_after_a_kill(serve: Start, place: Path) -> None:
    modern = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    old, new, other = serve(), serve(), serve(server="other")
    old.initialize()
    old.say(id=1, method="resources/subscribe", params={"uri": "note://1"})
    assert "result" in old.answer(1)
    wanted = {"notifications": {"resourceSubscriptions": ["note://1"]}, "_meta": modern}
    new.say(id="ear", method="subscriptions/listen", params=wanted)
    assert new.hear()["method"] == "notifications/subscriptions/acknowledged"
    other.initialize()
    kill(coordinator_pid(place))
    assert new.hear()["method"] == "notifications/subscriptions/acknowledged"
    other.call(2, "where")
    other.answer(2)
    old.call(3, "where")
    assert old.result(3)["pid"] == coordinator_pid(place)
    other.call(4, "touch", uri="note://1")
    other.answer(4)
    assert old.hear()["method"] == "notifications/resources/updated"
    assert new.hear()["method"] == "notifications/resources/updated"


def test_sigterm_lets_calls_under_way_finish(run: Start, serve: Start, place: Path) -> None:
    server = run()
    host = serve()
    host.initialize()
    host.call(1, "sleep", seconds=1.0)
    until(lambda: control.status(place).live["open_calls"] == 1)
    server.process.send_signal(signal.SIGTERM)
    assert host.result(1) == {"slept": 1.0}
    assert server.process.wait(10) == 0
    assert not Path(places.socket_path(str(place))).exists()
    assert read_record(Path(places.state_file(str(place)))) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_idle_ends_it_at_once_and_cleanly(run: Start, number: signal.Signals) -> None:
    server = run()
    began = time.monotonic()
    server.process.send_signal(number)
    assert server.process.wait(10) == 0
    print(f"{number.name} to exit, idle: {(time.monotonic() - began) * 1000:.0f} ms")
    assert time.monotonic() - began < 5


def test_a_call_that_outlasts_the_bound_gets_the_shims_answer_and_not_a_shutdowns(
    run: Start, serve: Start, place: Path
) -> None:
    server = run()
    host = serve()
    host.initialize()
    host.call(1, "sleep", seconds=60)
    until(lambda: control.status(place).live["open_calls"] == 1)
    assert control.stop(place, timeout_s=0.3)
    answer = host.answer(1)
    assert answer["result"]["_meta"][ledger.ERROR_META]["code"] == ledger.LOST
    assert server.process.wait(10) == 0


def test_two_signals_end_it_without_waiting(run: Start, serve: Start, place: Path) -> None:
    server = run()
    host = serve()
    host.initialize()
    host.call(1, "sleep", seconds=60)
    until(lambda: control.status(place).live["open_calls"] == 1)
    server.process.send_signal(signal.SIGTERM)
    until(lambda: (record := read_record(Path(places.state_file(str(place))))) is None or record.state == "stopping")
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(5) == 1


def test_a_coordinator_that_a_shim_started_ends_when_nobody_needs_it(serve: Start, place: Path) -> None:
    host = serve(AGENTSTEAD_COORDINATOR_IDLE_EXIT_S="1")
    host.initialize()
    host.call(1, "sleep", seconds=1.5)
    assert host.result(1)
    assert control.status(place).state == "serving"
    host.close_input()
    until(lambda: control.status(place).state == "stopped", timeout_s=15)


def test_work_under_way_keeps_it_from_being_idle(serve: Start, place: Path) -> None:
    host = serve(AGENTSTEAD_COORDINATOR_IDLE_EXIT_S="1")
    host.initialize()
    host.call(1, "busy_with", work=1)
    host.answer(1)
    host.close_input()
    host.process.wait(10)
    began = time.monotonic()
    until(lambda: time.monotonic() - began > 2)
    assert control.status(place).state == "serving"


def test_a_second_up_tells_where_the_first_listens_and_keeps_it(run: Start, serve: Start, place: Path) -> None:
    serve(AGENTSTEAD_COORDINATOR_IDLE_EXIT_S="1").initialize()
    record = control.status(place).record
    assert record is not None
    second = run(wait=False)
    said = second.hear()
    assert said["pid"] == record.pid
    assert said["notes"] == f"{record.http}/notes/mcp"
    assert second.process.wait(10) == 0
    assert control.status(place).live["kept"] is True


def test_two_starts_at_once_give_one_coordinator(run: Start, place: Path) -> None:
    both = [run(wait=False), run(wait=False)]
    pids = {host.hear()["pid"] for host in both}
    assert pids == {coordinator_pid(place)}
    until(lambda: sorted(host.process.poll() is None for host in both) == [False, True])


def test_a_port_that_is_taken_is_an_error_for_up_and_none_for_a_shim(
    run: Start, serve: Start, place: Path, environ: dict[str, str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = run("--port", str(port), wait=False)
        assert refused.process.wait(15) == 7
        assert f"cannot be served on 127.0.0.1:{port}" in refused.errors()
        serve(AGENTSTEAD_COORDINATOR_PORT=str(port)).initialize()
        record = control.status(place).record
        assert record is not None
        assert record.http == ""
        assert str(port) in record.no_http


def test_drain_waits_for_work_and_undrain_takes_it_on_again(run: Start, serve: Start, place: Path) -> None:
    run()
    host = serve()
    host.initialize()
    host.call(1, "busy_with", work=2)
    host.answer(1)
    assert control.drain(place, timeout_s=0.2).left == 2
    assert control.status(place).state == "draining"
    host.call(2, "busy_with", work=0)
    assert host.result(2)["draining"] is True
    assert control.drain(place, timeout_s=5).done
    assert control.undrain(place) == "serving"
    host.call(3, "busy_with", work=0)
    assert host.result(3)["draining"] is False


def test_status_says_who_serves_where_and_for_how_many(visit: Start, standing: Path) -> None:
    visit().initialize()
    visit(server="other").initialize()
    status = control.status(standing)
    assert status.state == "serving"
    found = status.as_dict()
    assert found["links"] == {"notes": 1, "other": 1}
    assert found["started_by"] == "user"
    assert found["socket"] == places.socket_path(str(standing))
    assert found["addresses"]["other"].endswith("/other/mcp")
    assert found["warnings"] == ["fake"]
    assert found["rss_bytes"] > 1_000_000
    json.dumps(found)


def test_without_a_coordinator_commands_say_so(place: Path) -> None:
    assert control.status(place).as_dict() == {"state": "stopped"}
    assert control.stop(place) is False
    for command in (control.drain, control.undrain, control.keep):
        with pytest.raises(Unavailable, match="No coordinator of"):
            command(place)


def test_a_home_that_is_not_there_has_no_coordinator(tmp_path: Path) -> None:
    assert control.status(tmp_path / "missing").state == "stopped"
    assert control.stop(tmp_path / "missing") is False


def test_ensure_starts_a_coordinator_once(
    place: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from tests.coordinator.conftest import PROGRAM

    monkeypatch.setenv("AGENTSTEAD_COORDINATOR_PORT", environ["AGENTSTEAD_COORDINATOR_PORT"])
    program = (sys.executable, str(PROGRAM))
    first = control.ensure(place, program=program)
    assert first.state == "serving"
    second = control.ensure(place, program=program)
    assert first.record is not None
    assert second.record is not None
    assert first.record.pid == second.record.pid


def test_ensure_says_why_nothing_can_be_started(place: Path) -> None:
    import sys

    from tests.coordinator.conftest import PROGRAM

    (place / "broken").touch()
    with pytest.raises(Unavailable, match="schema 9") as caught:
        control.ensure(place, program=(sys.executable, str(PROGRAM)))
    assert caught.value.code == "home.newer"


def test_a_newer_installation_takes_over_and_no_call_is_lost(serve: Start, place: Path) -> None:
    old = serve(AGENTSTEAD_INTERNAL_VERSION="0.1.0")
    old.initialize()
    old.call(1, "where")
    before = old.result(1)
    assert before["version"] == "0.1.0"
    old.call(2, "sleep", seconds=1.0)
    until(lambda: control.status(place).live["open_calls"] == 1)
    began = time.monotonic()
    new = serve(AGENTSTEAD_INTERNAL_VERSION="0.2.0")
    new.initialize()
    print(f"the newer installation served its own host {time.monotonic() - began:.2f} s after its start")
    assert old.result(2) == {"slept": 1.0}
    new.call(1, "where")
    after = new.result(1)
    assert after["version"] == "0.2.0"
    old.call(3, "where")
    assert old.result(3)["pid"] == after["pid"] != before["pid"]
    assert processes_of(place) == [after["pid"]]


def test_an_older_shim_is_served_by_a_newer_coordinator(serve: Start, place: Path) -> None:
    serve(AGENTSTEAD_INTERNAL_VERSION="0.2.0").initialize()
    pid = coordinator_pid(place)
    old = serve(AGENTSTEAD_INTERNAL_VERSION="0.1.0")
    old.initialize()
    old.call(1, "where")
    assert old.result(1)["pid"] == pid


def test_a_coordinator_hands_over_to_newer_ones_only(standing: Path) -> None:
    for version in ("0.0.9", installed_version(), "nonsense"):
        assert said(standing, greeting.say("control", verb="handover", version=version))["agentstead"] == "refused"
    assert control.status(standing).state == "serving"


def test_an_unknown_command_is_refused_with_those_that_are_known(standing: Path) -> None:
    answer = said(standing, greeting.say("control", verb="dance"))
    assert answer["code"] == "tool.invalid_arguments"
    assert "drain" in answer["remedy"]


@pytest.mark.parametrize("line", [b"\n", b"nonsense\n", b"[]\n", b'{"agentstead":7}\n', b"x" * 100_000])
def test_a_connection_that_says_no_hello_is_dropped_and_harms_nobody(standing: Path, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(DEADLINE_S)
        link.connect(places.socket_path(str(standing)))
        link.sendall(line)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(100) == b""
    assert control.status(standing).state == "serving"


def test_an_unknown_server_and_an_unknown_toolset_are_refused_by_name(visit: Start) -> None:
    lost = visit(server="nots")
    lost.say(id=0, method="initialize", params={})
    assert "No server is named 'nots'" in lost.hear()["error"]["message"]
    odd = visit("--toolset", "odd")
    odd.say(id=0, method="initialize", params={})
    assert "toolset 'odd'" in odd.hear()["error"]["message"]


def test_a_token_in_the_environment_is_told_to_the_tools_and_an_ended_one_refused(visit: Start) -> None:
    operator = visit(AGENTSTEAD_TOKEN="operator-token")
    operator.initialize()
    operator.call(1, "where")
    assert operator.result(1)["token"] == "operator"
    ended = visit(AGENTSTEAD_TOKEN="ended-token")
    ended.say(id=0, method="initialize", params={})
    answer = ended.hear()
    assert answer["error"]["data"]["code"] == "permission.denied"
    assert "ended-token" not in json.dumps(answer)


def test_the_host_of_a_shim_is_seen_by_the_system_and_not_believed(visit: Start) -> None:
    host = visit()
    host.initialize()
    host.call(1, "where")
    assert host.result(1)["host"] == os.getpid()


def test_what_a_started_coordinator_knows_of_its_first_host_is_nothing(serve: Start) -> None:
    first = serve(AGENTSTEAD_WORKSPACE="mine", AGENTSTEAD_SESSION="ses_1")
    first.initialize()
    second = serve()
    second.initialize()
    second.call(1, "where")
    assert second.result(1)["environ"] == {}


def test_the_socket_is_its_owners_alone(standing: Path) -> None:
    path = Path(places.socket_path(str(standing)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_is_not_let_in(standing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(places.socket_path(str(standing)))
    path.parent.chmod(0o711)
    path.chmod(0o777)
    monkeypatch.chdir(path.parent)
    child = os.fork()
    if child == 0:
        answered = True
        try:
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(5)
                link.connect(path.name)
                link.sendall(greeting.say("control", verb="status"))
                answered = link.recv(100) != b""
        except ConnectionError:
            answered = False
        finally:
            os._exit(int(answered))
    ended = os.waitpid(child, 0)[1]
    path.chmod(0o600)
    path.parent.chmod(0o700)
    assert ended == 0


def test_the_socket_of_a_dead_coordinator_is_taken_over(run: Start, place: Path) -> None:
    first = run()
    kill(first.process.pid)
    first.process.wait()
    assert Path(places.socket_path(str(place))).exists()
    assert control.status(place).state == "stopped"
    run()
    assert control.status(place).state == "serving"


def test_a_socket_that_was_cleared_away_is_made_anew(run: Start, place: Path) -> None:
    run("--probe-s", "0.1")
    Path(places.socket_path(str(place))).unlink()
    until(lambda: control.status(place).answers)


def test_a_coordinator_whose_home_is_gone_ends(run: Start, place: Path) -> None:
    server = run("--probe-s", "0.1")
    (place / "coordinator.lock").unlink()
    assert server.process.wait(15) == 0


def test_a_home_too_deep_for_a_socket_is_served_from_a_short_folder(tmp_path: Path, run: Start, serve: Start) -> None:
    deep = tmp_path / ("d" * 100) / "h"
    deep.mkdir(parents=True)
    server = run("--home", str(deep))
    path = Path(places.socket_path(str(deep)))
    assert not str(path).startswith(str(tmp_path))
    assert path.exists()
    host = serve("--home", str(deep))
    host.initialize()
    host.close_input()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == 0
    path.parent.rmdir()


def test_a_holder_that_does_not_answer_is_named_with_a_way_out(
    place: Path, monkeypatch: pytest.MonkeyPatch, run: Start
) -> None:
    server = run()
    server.process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(control, "ANSWER_S", 0.2)
    status = control.status(place)
    assert status.state == "unresponsive"
    with pytest.raises(Unavailable) as caught:
        control.drain(place, timeout_s=0)
    assert caught.value.code == "coordinator.locked"
    assert str(server.process.pid) in str(caught.value)
    assert sorted(caught.value.details) == ["executable", "pid", "version"]
    with pytest.raises(Unavailable, match="did not end"):
        control.stop(place, timeout_s=0)
    server.process.send_signal(signal.SIGCONT)


def test_a_start_waits_for_a_holder_that_is_about_to_leave(run: Start, place: Path) -> None:
    lock = HomeLock(place)
    assert lock.acquire()
    server = run(wait=False)
    until(lambda: server.process.poll() is None and bool(processes_of(place)))
    lock.release()
    assert server.hear()["state"] == "serving"


def test_a_reader_that_stalls_holds_up_nobody_else(visit: Start) -> None:
    slow, quick = visit(), visit()
    slow.initialize()
    quick.initialize()
    for key in range(10):
        slow.call(key, "big", size=2_000_000)
    took = []
    for key in range(50):
        began = time.monotonic()
        quick.call(key, "echo", text="x")
        quick.answer(key)
        took.append(time.monotonic() - began)
    print(f"20 MB queued for one host; a call of another took {sorted(took)[25] * 1000:.2f} ms (median)")
    assert sorted(took)[25] < 0.5
    assert all(len(slow.result(key)["text"]) == 2_000_000 for key in range(10))


def test_a_question_reaches_the_person_and_one_of_a_dead_coordinator_is_withdrawn(serve: Start, place: Path) -> None:
    host = serve()
    host.initialize(capabilities={"elicitation": {"form": {}}})
    host.call(1, "ask")
    question = host.hear()
    assert question["method"] == "elicitation/create"
    kill(coordinator_pid(place))
    told = [host.hear(), host.hear()]
    withdrawn = next(each for each in told if each.get("method") == "notifications/cancelled")
    assert withdrawn["params"]["requestId"] == question["id"]
    host.call(2, "ask")
    again = host.hear()
    assert again["method"] == "elicitation/create"
    assert again["id"] != question["id"]
    host.say(id=question["id"], result={"action": "accept", "content": {}})
    host.say(id=again["id"], result={"action": "decline"})
    assert host.result(2) == {"action": "decline"}


def test_what_a_coordinator_logs_is_redacted_and_private(serve: Start, place: Path) -> None:
    serve().initialize()
    control.stop(place, timeout_s=1)
    log = Path(places.log_file(str(place)))
    assert "leaving (stop)" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def said(place: Path, line: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(DEADLINE_S)
        link.connect(places.socket_path(str(place)))
        link.sendall(line)
        return greeting.hear(link.makefile("rb").readline())
