"""skill_validate: the author's check, and what it refuses to look at."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.skills.service import skill_validate
from agentstead.state import AgentsteadError

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
WriteSkill = Callable[..., Path]
HOST = "host:editor"


async def code_of(call: Awaitable[Any]) -> str:
    with pytest.raises(AgentsteadError) as caught:
        await call
    assert caught.value.remedy
    return caught.value.code


async def test_a_good_folder_is_valid_and_has_its_tree_id(
    home: Home, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(project, "tides")
    found = await invoke(home, skill_validate, principal=HOST, cwd=project, path="tides")
    assert (found.valid, found.diagnostics, found.refused) == (True, [], None)
    assert len(found.tree_id) == 64


async def test_each_fault_comes_with_its_place_and_remedy(
    home: Home, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(project, "Tides", fields="harbour: Hamburg\n")
    found = await invoke(home, skill_validate, principal=HOST, cwd=project, path=str(project / "Tides"))
    assert not found.valid
    assert [(each.code, each.line) for each in found.diagnostics] == [("fm.unknown_field", 4), ("name.case", 2)]
    assert all(each.remedy and each.message for each in found.diagnostics)
    found = await invoke(home, skill_validate, principal=HOST, cwd=project, path="Tides", mode="lenient")
    assert (found.valid, [each.severity for each in found.diagnostics]) == (True, ["warning", "warning"])


async def test_a_folder_that_cannot_be_used_says_why(
    home: Home, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    folder = write_skill(project, "tides")
    (folder / "out").symlink_to("/etc/passwd")
    found = await invoke(home, skill_validate, principal=HOST, cwd=project, path="tides")
    assert (found.valid, found.tree_id) == (False, None)
    assert "does not end at a file of the skill" in found.refused
    hidden = write_skill(project, "hidden", body="a\u200bb\n")
    found = await invoke(home, skill_validate, principal=HOST, cwd=project, path=hidden.name)
    assert found.refused == "SKILL.md holds characters that nobody sees: U+200B (zero_width) in line 5."


def make_pipe(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "SKILL.md")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: None, "file.missing"),
        (lambda path: path.write_text("x"), "file.not_directory"),
        (lambda path: path.mkdir(), "file.missing"),
        (lambda path: (path / "SKILL.md").mkdir(parents=True), "file.missing"),
        (make_pipe, "file.missing"),
    ],
)
async def test_what_is_no_skill_folder_is_said(
    home: Home, project: Path, invoke: Invoke, make: Callable[[Path], object], code: str
) -> None:
    make(project / "tides")
    found = await invoke(home, skill_validate, principal=HOST, cwd=project, path="tides")
    assert (found.valid, [each.code for each in found.diagnostics]) == (False, [code])


async def test_a_text_is_checked_as_if_it_stood_in_its_folder(home: Home, invoke: Invoke) -> None:
    text = "---\nname: tides\ndescription: d\n---\nBody\n"
    assert (await invoke(home, skill_validate, principal=HOST, text=text)).valid
    found = await invoke(home, skill_validate, principal=HOST, text=text, folder="moon")
    assert [each.code for each in found.diagnostics] == ["name.folder"]
    found = await invoke(home, skill_validate, principal=HOST, text="---\nname: [\n---\n")
    assert [each.code for each in found.diagnostics] == ["fm.yaml"]
    found = await invoke(home, skill_validate, principal=HOST, text="---\nname: tides\ndescription: a\u202eb\n---\n")
    assert (found.valid, found.refused) == (
        False,
        "SKILL.md holds characters that nobody sees: U+202E (direction) in line 3.",
    )


async def test_a_host_cannot_look_at_folders_elsewhere_and_a_person_can(
    home: Home, project: Path, tmp_path: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    elsewhere = write_skill(tmp_path / "elsewhere", "tides")
    for path in (str(elsewhere), "../elsewhere/tides", f"{project}/../elsewhere/tides"):
        validate = {"principal": HOST, "cwd": project, "path": path}
        assert await code_of(invoke(home, skill_validate, **validate)) == "skill.path_escape"
    (project / "link").symlink_to(tmp_path / "elsewhere")
    found = await invoke(home, skill_validate, principal=HOST, cwd=project, path="link/tides")
    assert (found.valid, found.refused) == (False, "It cannot be read: Not a directory.")
    assert (await invoke(home, skill_validate, principal="user", cwd=project, path=str(elsewhere))).valid


@pytest.mark.parametrize("arguments", [{}, {"path": "a", "text": "b"}])
async def test_path_or_text_is_given_and_not_both(home: Home, invoke: Invoke, arguments: dict[str, str]) -> None:
    assert await code_of(invoke(home, skill_validate, principal=HOST, **arguments)) == "tool.invalid_arguments"
