"""The main job from a terminal: snapshot, fork, check, promote with a person's yes, restore and undo."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentstead.cli import running
from agentstead.cli.outcomes import is_under_way
from agentstead.kit import Result

from .conftest import Run
from .test_answer_verb import at_terminal


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "answer.txt").write_text("41\n")
    monkeypatch.chdir(root)
    return root


def test_a_fork_is_checked_promoted_by_a_person_and_taken_back(run: Run, project: Path) -> None:
    before = run("snapshot", "take", "--label", "start", "-o", "json").json
    fork = run("fork", "open", "-o", "json").json["forks"][0]
    (Path(fork["path"]) / "answer.txt").write_text("42\n")
    fork_id = fork["fork_id"]
    assert "answer.txt" in run("diff", "@start", fork_id).out
    assert run("check", "save", "right", "grep", "42", "answer.txt").code == 0
    assert run("check", "run", "live", "--checks", "right").code == 1
    checked = run("check", "run", fork_id, "--checks", "right", "-o", "json")
    assert (checked.code, checked.json["outcome"]) == (0, "pass")
    receipt_id = checked.json["receipts"][0]["receipt_id"]
    assert run("receipt", "show", receipt_id).code == 0
    plan = run("promotion", "plan", fork_id, "-o", "json").json
    apply = ["promotion", "apply", fork_id, "--plan-digest", plan["plan_digest"]]
    waiting = run(*apply)
    assert waiting.code == 4
    assert (project / "answer.txt").read_text() == "41\n"
    code, shown = at_terminal(apply)
    assert code == 0, shown
    assert (project / "answer.txt").read_text() == "42\n"
    back = run("restore", before["snapshot_id"], "-o", "json").json
    assert back["state"] == "planned"
    digest = back["plan_digest"]
    done = run("restore", before["snapshot_id"], "--no-dry-run", "--plan-digest", digest, "-o", "json")
    assert done.json["state"] == "done"
    assert (project / "answer.txt").read_text() == "41\n"
    assert len(run("operation", "list", "-o", "json").json["items"]) >= 2
    assert run("workspace", "status").code == 0
    assert run("store", "verify").code == 0
    assert run("verify").code == 0


class Checked(Result):
    outcome: str


def test_a_check_is_waited_for_under_one_key_and_reported_once(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = iter(["running", "running", "pass"])
    keys: list[object] = []

    async def answered(
        _home: object, _operation: object, raw: Mapping[str, Any], _context: object
    ) -> tuple[Result, bool]:
        await asyncio.sleep(0)
        keys.append(raw["idempotency_key"])
        return Checked(outcome=next(outcomes)), len(keys) > 1

    monkeypatch.setattr(running, "invoke", answered)
    ran = run("check", "run", "live", "--checks", "right", "-o", "json")
    assert (ran.code, ran.json) == (0, {"outcome": "pass"})
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_only_what_can_go_on_is_waited_for() -> None:
    assert is_under_way("check_run", {"outcome": "running"})
    assert not is_under_way("check_run", {"outcome": "pass"})
    assert not is_under_way("task_get", {"outcome": "running"})
