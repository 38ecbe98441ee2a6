"""Resolution of the workspace of a call, over real folders and real git."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentstead.identity import Asked, WorkspaceFacts, register, registry, resolve
from agentstead.state import AgentsteadError, Conflict, Invalid, NotFound, RefFacts, State, Unavailable

pytestmark = pytest.mark.anyio


def _files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if ".git/" not in f"{path.relative_to(root)}/"}


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True, timeout=30)
    return done.stdout


async def _resolve(state: State, **asked: Any) -> WorkspaceFacts:
    return await resolve(state, Asked(home=state.path.parent, **asked))


async def test_a_project_is_registered_on_first_use_and_that_is_announced_once(state: State, project: Path) -> None:
    first = await _resolve(state, cwd=project)
    second = await _resolve(state, cwd=project)
    assert (first.source, first.root, first.name) == ("registered", project, "shop")
    assert str(project) in first.note
    assert first.id in first.note
    assert (second.id, second.source, second.note) == (first.id, "directory", "")


async def test_registering_writes_only_our_own_folder_and_git_sees_nothing(state: State, project: Path) -> None:
    before = _files(project)
    await _resolve(state, cwd=project)
    assert _files(project) - before == {".agentstead", ".agentstead/.gitignore", ".agentstead/workspace.json"}
    assert git(project, "status", "--porcelain", "--untracked-files=all") == ""


async def test_a_file_of_the_persons_own_in_our_folder_is_still_seen_by_git(state: State, project: Path) -> None:
    await _resolve(state, cwd=project)
    (project / ".agentstead" / "policy.toml").write_text("version = 1\n")
    assert git(project, "status", "--porcelain", "--untracked-files=all") == "?? .agentstead/policy.toml\n"


async def test_a_folder_inside_the_project_finds_the_projects_root(state: State, project: Path) -> None:
    found = await _resolve(state, cwd=project / "src")
    assert found.root == project
    assert (await _resolve(state, cwd=project / "src")).source == "directory"


async def test_the_order_is_argument_environment_session_directory(state: State, project: Path, tmp_path: Path) -> None:
    roots = {}
    for name in ("argument", "environment", "session"):
        roots[name] = tmp_path / "work" / name
        (roots[name] / ".git").mkdir(parents=True)
        await _resolve(state, cwd=roots[name])
    session_id = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    in_session = (await _resolve(state, name="session")).id
    state.refs.register("ses_", lambda reading, ref: RefFacts(exists=True, workspace=in_session))

    asked: dict[str, Any] = {"cwd": project}
    assert (await _resolve(state, **asked)).name == "shop"
    asked["session_id"] = session_id
    assert [(f := await _resolve(state, **asked)).name, f.source] == ["session", "session"]
    asked["environ"] = {"AGENTSTEAD_WORKSPACE": "environment"}
    assert [(f := await _resolve(state, **asked)).name, f.source] == ["environment", "environment"]
    asked["name"] = "argument"
    assert [(f := await _resolve(state, **asked)).name, f.source] == ["argument", "argument"]


async def test_a_session_of_the_home_leaves_the_choice_to_the_directory(state: State, project: Path) -> None:
    state.refs.register("ses_", lambda reading, ref: RefFacts(exists=True))
    found = await _resolve(state, session_id="ses_01ARZ3NDEKTSV4RRFFQ69G5FAV", cwd=project)
    assert found.root == project


async def test_an_unknown_session_is_said_and_never_replaced_by_a_guess(state: State, project: Path) -> None:
    state.refs.register("ses_", lambda reading, ref: None)
    with pytest.raises(NotFound, match=r"session\.not_found"):
        await _resolve(state, session_id="ses_01ARZ3NDEKTSV4RRFFQ69G5FAV", cwd=project)
    assert await state.read(registry.listed) == []


async def test_without_a_working_directory_the_answer_says_exactly_how_to_name_one(state: State) -> None:
    with pytest.raises(NotFound, match=r"workspace\.unknown") as caught:
        await _resolve(state)
    assert "no working directory" in caught.value.message
    for way in ("workspace=", "absolute path", "AGENTSTEAD_WORKSPACE", "agentstead registry add"):
        assert way in caught.value.remedy


async def test_an_unknown_name_lists_the_known_ones(state: State, project: Path) -> None:
    await _resolve(state, cwd=project)
    with pytest.raises(NotFound, match=r"workspace\.unknown") as caught:
        await _resolve(state, name="shpo")
    assert "'shpo'" in caught.value.message
    assert "Registered: shop." in caught.value.remedy


async def test_the_way_that_the_remedy_names_works(state: State, project: Path) -> None:
    found = await _resolve(state, name=str(project))
    assert found.root == project
    assert [(await _resolve(state, name=way)).id for way in ("shop", found.id, str(project / "src"))] == [found.id] * 3


@pytest.mark.parametrize("where", ["/", "person", "home", "above"])
async def test_a_home_or_what_holds_one_is_never_registered_from_a_directory(
    state: State, tmp_path: Path, where: str
) -> None:
    places = {"/": Path("/"), "person": tmp_path / "person", "home": state.path.parent, "above": tmp_path}
    place = places[where]
    if where != "/":
        (place / ".git").mkdir(exist_ok=True)
    with pytest.raises(AgentsteadError, match=r"workspace\.unknown"):
        await _resolve(state, cwd=place)
    with pytest.raises(Invalid, match=r"workspace\.unknown"):
        await register(state, place, home=state.path.parent)
    assert await state.read(registry.listed) == []
    assert not (place / ".agentstead" / "workspace.json").exists()


async def test_a_plain_folder_is_no_workspace_until_a_person_registers_it(state: State, tmp_path: Path) -> None:
    plain = tmp_path / "notes"
    plain.mkdir()
    with pytest.raises(NotFound, match="no project"):
        await _resolve(state, cwd=plain)
    assert not (plain / ".agentstead").exists()
    added = await register(state, plain, home=state.path.parent, name="diary")
    assert (await _resolve(state, cwd=plain)).id == added.id
    assert added.name == "diary"


async def test_a_moved_folder_keeps_its_id(state: State, project: Path, tmp_path: Path) -> None:
    first = await _resolve(state, cwd=project)
    moved = project.rename(tmp_path / "work" / "store")
    found = await _resolve(state, cwd=moved)
    assert (found.id, found.root, found.name) == (first.id, moved, "shop")
    assert str(project) in found.note
    assert (await _resolve(state, name="shop")).root == moved


async def test_a_moved_folder_that_was_asked_for_by_name_is_gone_until_its_new_place_is_named(
    state: State, project: Path, tmp_path: Path
) -> None:
    first = await _resolve(state, cwd=project)
    moved = project.rename(tmp_path / "store")
    with pytest.raises(Unavailable, match=r"workspace\.gone") as caught:
        await _resolve(state, name="shop")
    assert "new absolute path" in caught.value.remedy
    lost = await state.read(registry.by_id, first.id)
    assert lost is not None
    assert lost.state == "moved"
    assert (await _resolve(state, name=str(moved))).id == first.id
    again = await state.read(registry.by_id, first.id)
    assert again is not None
    assert (again.state, again.root) == ("present", moved)


async def test_a_folder_that_comes_back_to_its_place_is_present_again(state: State, project: Path) -> None:
    first = await _resolve(state, cwd=project)
    away = project.rename(project.with_name("away"))
    with pytest.raises(Unavailable, match=r"workspace\.gone"):
        await _resolve(state, name="shop")
    away.rename(project)
    assert (await _resolve(state, name="shop")).id == first.id


async def test_a_copied_folder_is_a_duplicate_until_it_gets_a_fresh_id(state: State, project: Path) -> None:
    first = await _resolve(state, cwd=project)
    copy = project.with_name("copy")
    shutil.copytree(project, copy)
    with pytest.raises(Conflict, match=r"workspace\.duplicate") as caught:
        await _resolve(state, cwd=copy)
    assert "fresh_id=true" in caught.value.remedy
    with pytest.raises(Conflict, match=r"workspace\.duplicate"):
        await register(state, copy, home=state.path.parent)
    own = await register(state, copy, home=state.path.parent, fresh_id=True)
    assert own.id != first.id
    assert (await _resolve(state, cwd=copy)).id == own.id
    assert (await _resolve(state, cwd=project)).id == first.id


async def test_a_fresh_id_for_the_folder_that_owns_its_id_changes_nothing(state: State, project: Path) -> None:
    first = await _resolve(state, cwd=project)
    again = await register(state, project, home=state.path.parent, fresh_id=True)
    assert again.id == first.id


async def test_a_lost_id_file_is_put_back(state: State, project: Path) -> None:
    first = await _resolve(state, cwd=project)
    git(project, "clean", "-qfdx")
    assert not (project / ".agentstead").exists()
    assert (await _resolve(state, cwd=project)).id == first.id
    assert json.loads((project / ".agentstead" / "workspace.json").read_text())["id"] == first.id


async def test_another_project_at_an_old_root_takes_the_root_over(state: State, project: Path, tmp_path: Path) -> None:
    first = await _resolve(state, cwd=project)
    other_root = tmp_path / "other"
    (other_root / ".git").mkdir(parents=True)
    other = await _resolve(state, cwd=other_root)
    parked = project.rename(tmp_path / "parked")
    other_root.rename(project)
    assert (await _resolve(state, cwd=project)).id == other.id
    with pytest.raises(Unavailable, match=r"workspace\.gone"):
        await _resolve(state, name=first.id)
    assert (await _resolve(state, cwd=parked)).id == first.id


async def test_a_damaged_id_file_is_replaced_by_the_known_id(state: State, project: Path) -> None:
    first = await _resolve(state, cwd=project)
    (project / ".agentstead" / "workspace.json").write_text('{"id": "wsp_../../etc"}')
    assert (await _resolve(state, cwd=project)).id == first.id
    assert json.loads((project / ".agentstead" / "workspace.json").read_text())["id"] == first.id


async def test_a_linked_worktree_is_a_workspace_of_its_own_even_inside_the_main_one(
    state: State, project: Path
) -> None:
    main = await _resolve(state, cwd=project)
    git(project, "worktree", "add", "-q", ".trees/topic", "-b", "topic")
    tree = await _resolve(state, cwd=project / ".trees" / "topic" / "src")
    assert (tree.source, tree.root) == ("registered", project / ".trees" / "topic")
    assert tree.id != main.id
    assert tree.repository == main.repository == str(project / ".git")


async def test_a_nested_clone_belongs_to_the_registered_root_around_it(state: State, project: Path) -> None:
    main = await _resolve(state, cwd=project)
    nested = project / "vendor" / "lib"
    nested.mkdir(parents=True)
    git(nested, "init", "-q")
    assert (await _resolve(state, cwd=nested)).id == main.id


async def test_two_folders_of_one_name_get_two_names(state: State, project: Path, tmp_path: Path) -> None:
    second = tmp_path / "elsewhere" / "shop"
    (second / ".git").mkdir(parents=True)
    names = [(await _resolve(state, cwd=root)).name for root in (project, second)]
    assert names == ["shop", "shop-2"]


async def test_a_link_to_a_project_is_that_project(state: State, project: Path, tmp_path: Path) -> None:
    first = await _resolve(state, cwd=project)
    link = tmp_path / "link"
    link.symlink_to(project)
    assert (await _resolve(state, cwd=link / "src")).id == first.id


async def test_a_linked_own_folder_is_refused_and_nothing_is_written_behind_it(
    state: State, project: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (project / ".agentstead").symlink_to(target)
    with pytest.raises(Invalid, match=r"path\.symlink"):
        await _resolve(state, cwd=project)
    assert list(target.iterdir()) == []
    assert await state.read(registry.listed) == []


async def test_a_folder_that_cannot_be_written_is_said(state: State, project: Path) -> None:
    (project / ".agentstead").write_text("a file in the way")
    with pytest.raises(Unavailable, match="cannot be written"):
        await _resolve(state, cwd=project)


async def test_twenty_first_uses_at_once_agree_on_one_id(state: State, project: Path) -> None:
    found: list[str] = []

    async def one() -> None:
        found.append((await _resolve(state, cwd=project)).id)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    assert len(set(found)) == 1
    assert len(await state.read(registry.listed)) == 1


async def test_every_change_of_a_workspace_is_in_the_journal(state: State, project: Path, tmp_path: Path) -> None:
    await _resolve(state, cwd=project)
    await _resolve(state, cwd=project.rename(tmp_path / "store"))
    await state.write(registry.forget, "shop")
    kinds = [entry.kind for entry in await state.read(lambda r: r.entries(0))]
    assert kinds == ["identity.workspace.registered", "identity.workspace.found", "identity.workspace.forgotten"]
