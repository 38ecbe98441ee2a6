"""Coming to a coordinator: who starts it, how often, and what is said when none can be had."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from agentstead.coordinator import greeting, places, reach
from agentstead.coordinator.reach import Reach, Unreachable
from agentstead.coordinator.spawn import REPORT_FD, Start, command
from tests.coordinator.conftest import DEADLINE_S, PlayedCoordinator, until

HELLO = greeting.say("hello", server="notes")
Begin = Callable[..., Reach]


@pytest.fixture
def begin(place: Path) -> Iterator[Begin]:
    made: list[Reach] = []

    def start(*argv: str, version: str = "0.1.0", wanted: bool = True) -> Reach:
        made.append(Reach(str(place), HELLO, version, command=list(argv) or ["/bin/false"], wanted=wanted))
        return made[-1]

    yield start
    for each in made:
        each.close()


def stepped(each: Reach) -> None:
    """Step until it gives up; fails where it does not."""
    until_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < until_s:
        each.step()
        time.sleep(0.002)
    raise AssertionError("it never gave up")


def connected(each: Reach) -> None:
    """Step until it has a connection, and close that."""
    until_s = time.monotonic() + DEADLINE_S
    while (link := each.step()) is None:
        assert time.monotonic() < until_s, "it never connected"
    link.close()


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def test_nothing_is_started_while_nobody_wants_it(begin: Begin, place: Path) -> None:
    parked = begin(*shell(f"touch {place}/started"), wanted=False)
    for _ in range(20):
        assert parked.step() is None
    assert not (place / "started").exists()
    assert not Path(places.start_lock(str(place))).exists()


def test_of_many_that_find_none_one_starts_it(begin: Begin, place: Path) -> None:
    script = shell(f"echo started >> {place}/starts; sleep 0.6")
    many = [begin(*script) for _ in range(10)]
    began = time.monotonic()
    while time.monotonic() - began < 0.4:
        for each in many:
            assert each.step() is None
    until(lambda: (place / "starts").exists())
    assert (place / "starts").read_text() == "started\n"


def test_a_start_that_says_why_it_failed_is_quoted(begin: Begin) -> None:
    said = json.dumps({"code": "home.newer", "message": "Too new.", "remedy": "Update."})
    with pytest.raises(Unreachable, match=r"home.newer: Too new. Update.") as caught:
        stepped(begin(*shell(f"echo '{said}' >&{REPORT_FD}")))
    assert caught.value.code == "home.newer"


def test_a_start_that_dies_without_a_word_is_tried_three_times(begin: Begin, place: Path) -> None:
    with pytest.raises(Unreachable, match="ended 3 times") as caught:
        stepped(begin(*shell(f"echo started >> {place}/starts")))
    assert caught.value.code == "runner.start_failed"
    assert str(places.output_file(str(place))) in caught.value.remedy
    until(lambda: (place / "starts").read_text() == "started\n" * 3)


def test_a_program_that_is_not_there_is_named(begin: Begin) -> None:
    with pytest.raises(Unreachable, match="/no/such/python could not be started"):
        stepped(begin("/no/such/python"))


def test_a_start_that_never_serves_is_given_up_in_time(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "PATIENCE_S", 0.2)
    with pytest.raises(Unreachable, match="No coordinator of") as caught:
        stepped(begin(*shell("sleep 2")))
    assert caught.value.code == "coordinator.locked"


def test_a_coordinator_that_hangs_up_each_time_is_given_up_in_time(
    begin: Begin, played: PlayedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "PATIENCE_S", 0.3)
    with ThreadPoolExecutor() as threads:
        threads.submit(hang_up_always, played)
        with pytest.raises(Unreachable, match="No coordinator of"):
            stepped(begin())


def hang_up_always(played: PlayedCoordinator) -> None:
    played._listener.settimeout(0.5)
    with suppress(OSError, ValueError):
        while True:
            played.meet(greet=False).close()


def test_a_home_that_is_a_file_is_told(begin: Begin, place: Path) -> None:
    place.rmdir()
    place.touch()
    with pytest.raises(Unreachable) as caught:
        stepped(begin())
    assert caught.value.code == "home.quarantined"
    place.unlink()


def test_a_coordinator_that_accepts_and_says_nothing_is_given_up(
    begin: Begin, played: PlayedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "GREETING_S", 0.1)
    with pytest.raises(Unreachable, match="does not answer"):
        stepped(begin())


def test_a_coordinator_that_speaks_something_else_is_given_up(begin: Begin, played: PlayedCoordinator) -> None:
    each = begin()
    assert each.step() is None
    played.meet(greet=False).raw(b"HTTP/1.1 400 Bad Request\n")
    with pytest.raises(Unreachable, match="does not answer"):
        stepped(each)


def test_what_comes_right_behind_the_welcome_is_kept(begin: Begin, played: PlayedCoordinator) -> None:
    each = begin()
    assert each.step() is None
    wire = played.meet(greet=False)
    wire.raw(greeting.say("welcome", version="0.1.0") + b'{"jsonrpc":"2.0"}\n')
    connected(each)
    assert each.tail == b'{"jsonrpc":"2.0"}\n'
    assert each.version == "0.1.0"


def test_an_older_coordinator_is_asked_to_leave_once_and_used_if_it_will_not(
    begin: Begin, played: PlayedCoordinator
) -> None:
    each = begin(version="0.2.0")
    assert each.step() is None
    played.meet(version="0.1.0").close()
    until(lambda: each.step() is None and each._replacing and each.fileno() >= 0)
    wire = played.meet(greet=False)
    assert played.hello == {"agentstead": "control", "verb": "handover", "version": "0.2.0"}
    wire.raw(greeting.say("refused", code="tool.invalid_arguments", message="No.", remedy=""))
    until(lambda: each.step() is None and not each._replacing and each.fileno() >= 0)
    played.meet(version="0.1.0")
    connected(each)
    assert each.version == "0.1.0"


def test_the_start_lock_is_free_again_once_connected(begin: Begin, place: Path, played: PlayedCoordinator) -> None:
    first = begin()
    assert first._locked()
    second = begin()
    assert not second._locked()
    assert first.step() is None
    played.meet()
    connected(first)
    assert second._locked()


def test_a_started_program_stands_apart_from_whoever_started_it(place: Path) -> None:
    report = place / "report"
    said = "ps -o sid= -p $$; pwd; umask"
    start = Start(list(shell(f"({said}) > {report}.tmp; mv {report}.tmp {report}")), str(place))
    until(report.exists)
    until(start.ended)
    session, folder, mask = report.read_text().split()
    assert int(session) != os.getsid(0)
    assert folder == "/"
    assert int(mask, 8) == 0o077
    assert start.failure == {}


def test_a_started_program_inherits_nothing_but_its_report(place: Path) -> None:
    report = place / "report"
    leaked = 77
    os.dup2(2, leaked, inheritable=True)
    try:
        start = Start(list(shell(f"ls /proc/$$/fd > {report}.tmp; mv {report}.tmp {report}")), str(place))
    finally:
        os.close(leaked)
    until(report.exists)
    until(start.ended)
    assert {0, 1, 2, REPORT_FD} <= {int(each) for each in report.read_text().split()}
    assert str(leaked) not in report.read_text().split()


def test_what_is_said_of_one_caller_is_not_handed_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = place / "report"
    for name in ("AGENTSTEAD_WORKSPACE", "AGENTSTEAD_SESSION", "AGENTSTEAD_AGENT", "AGENTSTEAD_TOKEN"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("AGENTSTEAD_LOG_LEVEL", "debug")
    start = Start(list(shell(f"env > {report}.tmp; mv {report}.tmp {report}")), str(place))
    until(report.exists)
    until(start.ended)
    text = report.read_text()
    assert "mine" not in text
    assert "AGENTSTEAD_LOG_LEVEL=debug" in text


def test_what_a_start_prints_is_kept_within_bounds(place: Path) -> None:
    output = Path(places.output_file(str(place)))
    output.parent.mkdir()
    output.write_text("x" * 300_000)
    start = Start(list(shell("echo printed; echo complained >&2")), str(place))
    until(start.ended)
    until(lambda: "complained" in output.read_text())
    assert output.read_text() == "printed\ncomplained\n"


def test_the_command_names_the_home_and_the_way_to_report() -> None:
    assert command("/h", ("/bin/x", "y")) == [
        "/bin/x",
        "y",
        "run",
        "--home",
        "/h",
        "--started-by",
        "shim",
        "--report-fd",
        str(REPORT_FD),
    ]
    assert command("/h")[1:4] == ["-P", "-m", "agentstead.coordinator"]
