"""`agentstead events`: the last entries, those of a kind, and each further one as it happens."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def lines(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_last_entries_are_shown_in_order_with_their_bodies(run: Run, project: Path) -> None:
    for title in ("one", "two", "three"):
        run("task", "add", title)
    every = lines(run("events", "-n", "1000", "-o", "json").out)
    assert [entry["seq"] for entry in every] == list(range(1, len(every) + 1))
    assert lines(run("events", "-n", "2", "-o", "json").out) == every[-2:]
    assert lines(run("events", "-n", "0", "-o", "json").out) == []
    assert {entry["principal"] for entry in every} <= {"user", "coordinator"}
    text = run("events", "-n", "1").out
    assert str(every[-1]["kind"]) in text


def test_only_entries_of_a_kind_are_counted(run: Run, project: Path) -> None:
    for title in ("one", "two", "three"):
        run("task", "add", title)
    kinds = [str(entry["kind"]) for entry in lines(run("events", "-n", "1000", "-o", "json").out)]
    some = lines(run("events", "identity.*", "-n", "1", "-o", "json").out)
    assert len(some) == 1
    assert str(some[0]["kind"]).startswith("identity.")
    tasks = lines(run("events", "sessions.task.*", "-n", "1000", "-o", "json").out)
    assert len(tasks) == sum(kind.startswith("sessions.task.") for kind in kinds) > 1


def test_entries_behind_a_place_are_shown(run: Run, project: Path) -> None:
    run("task", "add", "one")
    every = lines(run("events", "-n", "1000", "-o", "json").out)
    assert lines(run("events", "--after", "2", "-o", "json").out) == every[2:]


def test_a_change_of_another_process_is_shown_as_it_happens(run: Run, project: Path) -> None:
    run("task", "add", "before")
    command = [sys.executable, "-m", "agentstead.cli", "events", "--follow", "-n", "1", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as following:
        assert following.stdout is not None
        last = json.loads(following.stdout.readline())
        run("task", "add", "after")
        entry = json.loads(following.stdout.readline())
        assert entry["seq"] == last["seq"] + 1
        following.send_signal(signal.SIGINT)
        assert following.wait(timeout=10) == 130


def test_a_reader_that_leaves_ends_it_without_a_complaint(run: Run, project: Path) -> None:
    run("task", "add", "before")
    command = [sys.executable, "-m", "agentstead.cli", "events", "--follow", "-n", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        following.stdout.readline()
        following.stdout.close()
        run("task", "add", "after")
        assert following.wait(timeout=30) == 141
        assert following.stderr.read() == ""
