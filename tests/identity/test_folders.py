"""What folders say of themselves: ids, repositories, worktrees, and where a project begins."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from agentstead.identity import folders
from agentstead.identity.ancestry import parent_of
from agentstead.state import Invalid, SimulatedClock, new_id

WORKSPACE = new_id("wsp_", SimulatedClock())
OTHER = new_id("wsp_", SimulatedClock())


def _git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True, timeout=30)


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "lone"
    folder.mkdir()
    return folder


def test_an_id_that_was_written_is_read_back(lone: Path) -> None:
    assert folders.read_id(lone) == ""
    assert folders.write_id(lone, WORKSPACE) == WORKSPACE
    assert folders.look(lone) == folders.Folder(lone, WORKSPACE, "")


def test_the_first_writer_wins_unless_replacing_is_asked_for(lone: Path) -> None:
    folders.write_id(lone, WORKSPACE)
    assert folders.write_id(lone, OTHER) == WORKSPACE
    assert folders.write_id(lone, OTHER, replace=True) == OTHER


def test_no_draft_of_the_id_file_is_left(lone: Path) -> None:
    folders.write_id(lone, WORKSPACE)
    folders.write_id(lone, OTHER, replace=True)
    assert sorted(path.name for path in (lone / ".agentstead").iterdir()) == [".gitignore", "workspace.json"]


def test_a_file_system_without_hard_links_is_served(lone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert folders.write_id(lone, WORKSPACE) == WORKSPACE
    assert folders.write_id(lone, OTHER) == WORKSPACE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"id": 3}',
        '{"id": "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"}',
        '{"id": "wsp_short"}',
        json.dumps({"pad": "x" * 5000, "id": WORKSPACE}),
    ],
)
def test_what_is_no_id_file_carries_no_id_and_is_replaced(lone: Path, text: str) -> None:
    own = lone / ".agentstead"
    own.mkdir()
    (own / "workspace.json").write_text(text)
    assert folders.read_id(lone) == ""
    assert folders.write_id(lone, WORKSPACE) == WORKSPACE


def test_an_id_file_that_is_a_link_is_replaced_and_its_target_is_left_alone(lone: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.json"
    target.write_text("mine")
    (lone / ".agentstead").mkdir()
    (lone / ".agentstead" / "workspace.json").symlink_to(target)
    assert folders.write_id(lone, WORKSPACE) == WORKSPACE
    assert target.read_text() == "mine"
    assert not (lone / ".agentstead" / "workspace.json").is_symlink()


def test_a_linked_own_folder_is_refused(lone: Path, tmp_path: Path) -> None:
    (lone / ".agentstead").symlink_to(tmp_path)
    with pytest.raises(Invalid, match=r"path\.symlink"):
        folders.write_id(lone, WORKSPACE)


@pytest.mark.parametrize("before", ["", "*.log\n", "*.log", "/workspace.json\n"])
def test_lines_of_the_persons_own_stay_and_ours_are_added_once(lone: Path, before: str) -> None:
    own = lone / ".agentstead"
    own.mkdir()
    (own / ".gitignore").write_text(before)
    folders.write_id(lone, WORKSPACE)
    folders.write_id(lone, OTHER, replace=True)
    lines = (own / ".gitignore").read_text().splitlines()
    assert sorted(lines) == sorted({*before.split(), *folders.OWN_PATHS})


def test_all_worktrees_name_one_repository_and_a_clone_another(project: Path, tmp_path: Path) -> None:
    _git(project, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "topic")
    _git(tmp_path, "clone", "-q", str(project), "clone")
    main = folders.repository_of(project)
    assert main == str(project / ".git")
    assert folders.repository_of(tmp_path / "tree") == main
    assert folders.repository_of(tmp_path / "clone") == str(tmp_path / "clone" / ".git")
    assert folders.is_linked_worktree(tmp_path / "tree")
    assert not folders.is_linked_worktree(project)


def test_a_submodule_is_no_worktree(project: Path, tmp_path: Path) -> None:
    _git(tmp_path, "clone", "-q", str(project), "outer")
    outer = tmp_path / "outer"
    _git(outer, "submodule", "add", "-q", str(project), "lib")
    assert (outer / "lib" / ".git").is_file()
    assert not folders.is_linked_worktree(outer / "lib")
    assert folders.repository_of(outer / "lib") == str(outer / ".git" / "modules" / "lib")


@pytest.mark.parametrize("text", ["", "nonsense", "gitdir", "gitdir:"])
def test_a_git_file_that_says_nothing_is_no_worktree(lone: Path, text: str) -> None:
    (lone / ".git").write_text(text)
    assert not folders.is_linked_worktree(lone)


def test_a_project_is_looked_for_upwards_and_never_at_or_above_a_stop(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (tmp_path / "a" / ".git").mkdir()
    assert folders.project_of(deep, stop=frozenset()) == tmp_path / "a"
    assert folders.project_of(deep, stop=frozenset({tmp_path / "a"})) is None
    assert folders.project_of(deep, stop=frozenset({tmp_path / "a" / "b"})) is None
    (deep / ".agentstead").mkdir()
    assert folders.project_of(deep, stop=frozenset()) == deep
    assert folders.project_of(Path("/"), stop=frozenset()) is None


def test_a_file_named_like_our_folder_makes_no_project(lone: Path) -> None:
    (lone / ".agentstead").write_text("x")
    assert not folders.is_project(lone)


def test_the_parent_of_a_process_is_what_the_system_says() -> None:
    assert parent_of(os.getpid()) == os.getppid()
    assert parent_of(2**22 + 1) is None


def test_a_program_with_brackets_in_its_name_hides_no_parent(tmp_path: Path) -> None:
    script = tmp_path / "odd) S (name"
    script.write_text("#!/bin/sh\nread line\n")
    script.chmod(0o700)
    with subprocess.Popen([script], stdin=subprocess.PIPE) as child:
        assert parent_of(child.pid) == os.getpid()
        child.communicate(b"\n", timeout=20)
