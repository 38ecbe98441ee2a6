"""The coordinator's process around the coordinator: checks, lock, log, and how a start is reported."""

import gc
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentstead.coordinator import control, launch, places, process, suitability
from agentstead.coordinator.launch import Report
from agentstead.coordinator.logs import tail
from agentstead.coordinator.statefile import Record, read_record, write_record
from agentstead.coordinator.terms import Terms
from agentstead.state import HomeLock, Unavailable
from tests.coordinator.conftest import PlayedCoordinator

RECORD = Record("serving", 4242, "0.0.9", "/opt/other/bin/python", 7, "user", "/s", servers=("notes",))


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give this process back what a coordinator changes in its own."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    mask = os.umask(0o022)
    yield
    os.umask(mask)
    gc.enable()
    gc.unfreeze()


def terms(home: Path) -> Terms:
    return Terms(home=home, version="0.1.0", started_by="user", http=None)


def ignore(_record: Record, _running: bool) -> None:
    return None


def failing(error: Exception) -> Any:
    @asynccontextmanager
    async def opener(_path: Path, *, lock: HomeLock | None, only: str) -> AsyncIterator[Any]:
        async with anyio.create_task_group():
            assert only == ""
            assert lock is not None
            raise error
        yield

    return opener


def run(home: Path, opener: Any) -> int:
    return process.run(terms(home), announce=ignore, opener=opener, redact=lambda text: text.replace("s3cret", "***"))


def test_a_home_that_cannot_be_one_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suitability, "file_system", lambda *_args, **_options: "nfs4")
    with pytest.raises(Unavailable, match="network file system"):
        run(tmp_path / "home", failing(AssertionError()))
    assert not (tmp_path / "home").exists()


def test_a_run_folder_that_is_not_ours_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("/tmp")
    with pytest.raises(Unavailable) as caught:
        run(tmp_path, failing(AssertionError()))
    assert caught.value.code == "home.quarantined"


def test_a_start_that_is_refused_is_raised_as_itself_and_logged(tmp_path: Path) -> None:
    refusal = Unavailable("home.newer", "Too new, s3cret.", remedy="Update.")
    with pytest.raises(Unavailable) as caught:
        run(tmp_path, failing(refusal))
    assert caught.value is refusal
    (entry,) = tail(Path(places.log_file(str(tmp_path))))
    assert "home.newer: Too new, ***. Update." in entry


def test_a_fault_of_ours_is_raised_and_its_traceback_logged_without_secrets(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="s3cret"):
        run(tmp_path, failing(RuntimeError("broken by s3cret")))
    (entry,) = tail(Path(places.log_file(str(tmp_path))))
    assert "RuntimeError: broken by ***" in entry
    assert "s3cret" not in entry


def test_whatever_ends_it_the_lock_is_free_and_no_record_is_left(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        run(tmp_path, failing(RuntimeError("broken")))
    assert read_record(Path(places.state_file(str(tmp_path)))) is None
    lock = HomeLock(tmp_path)
    assert lock.acquire()
    lock.release()


def test_while_it_starts_it_is_seen_to_start(tmp_path: Path) -> None:
    seen: list[control.Status] = []

    @asynccontextmanager
    async def opener(path: Path, *, lock: HomeLock | None, only: str) -> AsyncIterator[Any]:
        async with anyio.create_task_group():
            seen.append(control.status(path))
            raise Unavailable("home.newer", "Too new.")
        yield

    with pytest.raises(Unavailable):
        run(tmp_path, opener)
    assert seen[0].state == "starting"
    assert seen[0].record is not None
    assert (seen[0].record.pid, seen[0].record.executable) == (os.getpid(), sys.executable)


def test_a_holder_that_stays_silent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LOCK_S", 0.1)
    lock = HomeLock(tmp_path)
    assert lock.acquire()
    (tmp_path / "run").mkdir(mode=0o700)
    write_record(Path(places.state_file(str(tmp_path))), RECORD)
    with pytest.raises(Unavailable) as caught:
        run(tmp_path, failing(AssertionError()))
    lock.release()
    assert caught.value.code == "coordinator.locked"
    assert caught.value.details == {"pid": 4242, "version": "0.0.9", "executable": "/opt/other/bin/python"}
    assert "end process 4242" in caught.value.remedy


def test_a_holder_of_which_nothing_is_known_is_told_too(tmp_path: Path) -> None:
    error = control.locked(tmp_path, "does not answer")
    assert "an unknown process" in error.message
    assert error.remedy == "Run `agentstead stop`."


def test_an_error_alone_in_its_groups_is_raised_as_itself() -> None:
    async def alone() -> None:
        async with anyio.create_task_group(), anyio.create_task_group():
            raise Unavailable("home.newer", "Too new.")

    with pytest.raises(Unavailable):
        process.run_async(alone)


def test_several_errors_stay_together() -> None:
    async def fail() -> None:
        raise ValueError("one of two")

    async def several() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            tasks.start_soon(fail)

    with pytest.raises(BaseExceptionGroup):
        process.run_async(several)


def test_a_start_is_reported_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    Report(-1).ready(Record("serving", 1, "", "", 0, "user", "", "http://h:1", servers=["notes"]), False)
    assert json.loads(capsys.readouterr().out) == {"state": "serving", "pid": 1, "notes": "http://h:1/notes/mcp"}


def test_a_failure_goes_to_the_pipe_of_a_shim_and_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    report = Report(writing)
    report.failed(Unavailable("home.newer", "Too new.", remedy="Update.").as_dict())
    report.close()
    report.close()
    assert json.loads(os.read(reading, 4096))["code"] == "home.newer"
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert "home.newer: Too new. Update." in capsys.readouterr().err


def test_a_start_tells_a_shim_by_closing_its_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    Report(writing).ready(RECORD, False)
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("words", [["dance"], ["run", "--started-by", "nobody"], ["run", "--port", "x"]])
def test_a_wrong_command_line_ends_with_its_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        launch.main(words)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_home_that_is_refused_ends_with_seven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suitability, "file_system", lambda *_args, **_options: "cifs")
    assert launch.main(["run", "--home", str(tmp_path / "h"), "--port", "0"], opener=failing(AssertionError())) == 7
    assert launch.main(["serve", "notes", "--standalone", "--home", str(tmp_path / "h")]) == 7


@pytest.mark.parametrize("line", [b"nonsense\n", b"[]\n", b"", b'{"agentstead":"status"'])
def test_a_coordinator_that_answers_nonsense_is_none(place: Path, played: PlayedCoordinator, line: bytes) -> None:
    answering = threading.Thread(target=lambda: answer(played, line))
    answering.start()
    assert control.status(place).state == "stopped"
    answering.join()


def answer(played: PlayedCoordinator, line: bytes) -> None:
    wire = played.meet(greet=False)
    wire.raw(line)
    wire.close()
