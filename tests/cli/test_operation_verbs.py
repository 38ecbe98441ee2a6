"""Operations as verbs: the same path as a tool call, with results as text or JSON and errors by their code."""

from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def test_a_session_is_opened_in_the_workspace_of_this_directory(run: Run, project: Path) -> None:
    opened = run("session", "open", "--name", "first", "-o", "json").json
    assert opened["created"] is True
    assert opened["workspace"]["source"] == "registered"
    again = run("session", "open", "--name", "first", "-o", "json").json
    assert again["session_id"] == opened["session_id"]
    assert again["workspace"]["source"] == "directory"


def test_tasks_are_added_listed_and_shown_as_text(run: Run, project: Path) -> None:
    added = run(
        "task", "add", "Write it", "--priority", "high", "--capabilities", "a", "--capabilities", "b", "-o", "json"
    ).json
    task_id = added["tasks"][0]["task_id"]
    listed = run("task", "list")
    assert task_id in listed.out
    assert "Write it" in listed.out
    shown = run("task", "show", task_id, "-o", "json").json
    assert shown["task"]["priority"] == "high"
    assert shown["capabilities"] == ["a", "b"]


def test_a_repeated_key_gives_the_stored_result(run: Run, project: Path) -> None:
    first = run("task", "add", "Once", "--idempotency-key", "k1", "-o", "json").json
    again = run("task", "add", "Once", "--idempotency-key", "k1", "-o", "json").json
    assert again["replayed"] is True
    assert again["tasks"] == first["tasks"]
    other = run("task", "add", "Twice", "--idempotency-key", "k1")
    assert other.code == 6
    assert other.err.startswith("key.conflict: ")


@pytest.mark.parametrize(
    ("line", "code", "starts"),
    [
        (["task", "show", "tsk_01ARZ3NDEKTSV4RRFFQ69G5FAV"], 1, "task.not_found: "),
        (["task", "add", "T", "--priority", "huge"], 2, "tool.invalid_arguments: task_save cannot be called so: "),
        (["task", "add", "T" * 500], 2, "tool.invalid_arguments: "),
        (["task", "list", "--limit", "many"], 2, "tool.invalid_arguments: "),
        (["session", "open", "--workspace", "nonsense"], 1, "workspace.unknown: "),
    ],
)
def test_what_cannot_be_done_says_why_and_what_to_do(
    run: Run, project: Path, line: list[str], code: int, starts: str
) -> None:
    ran = run(*line)
    assert ran.code == code
    assert ran.out == ""
    assert ran.err.startswith(starts)


def test_the_workspace_that_is_named_before_the_verb_is_the_one_of_the_operation(
    run: Run, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    opened = run("--workspace", str(other), "session", "open", "-o", "json").json
    assert opened["workspace"]["source"] == "registered"
    listed = run("registry", "list", "-o", "json").json["workspaces"]
    assert [each["root"] for each in listed] == [str(other)]


def test_what_needs_a_person_is_listed_under_pending(run: Run, project: Path) -> None:
    assert run("pending", "list", "-o", "json").code == 0


def test_what_would_be_allowed_ends_with_0_and_what_would_be_asked_with_4(run: Run, project: Path) -> None:
    assert run("permissions", "check", "session_find", "-o", "json").json["verdict"] == "allow"
    asked = run(
        "permissions", "check", "skill_switch", "--arguments", '{"selector": "x", "enabled": true}', "-o", "json"
    )
    assert (asked.code, asked.json["verdict"]) == (4, "ask")


def test_a_memory_is_added_recalled_edited_and_forgotten(run: Run, project: Path) -> None:
    added = run("memory", "add", "The build runs with make.", "--type", "fact", "--tags", "build", "-o", "json")
    assert added.code == 0, added.err
    found = run("memory", "recall", "how does the build run", "-o", "json").json
    assert "make" in found["items"][0]["text"]
    memory_id = found["items"][0]["memory_id"]
    assert run("memory", "show", memory_id).code == 0
    assert run("memory", "pin", memory_id).code == 0
