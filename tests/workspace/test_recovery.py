"""Starting: what a crash left is ended or told of, one thing after the other, and no trouble stops the rest."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agentstead.blobs import ObjectKey
from agentstead.identity import Principal, registry
from agentstead.kit import Home
from agentstead.state import Reading, Tx
from agentstead.workspace import applying, finishing, keeping, operations, service
from agentstead.workspace.places import live_place, locked
from agentstead.workspace.server import SERVER
from agentstead.workspace.starting import start, verify
from tests.conftest import Invoke
from tests.workspace.directories import seen

pytestmark = pytest.mark.anyio

IGNORED = (b".git", b".agentstead")
PERSON = Principal.user(at_terminal=True)


class Died(Exception):
    """Stands for the death of the process at this point: what is on disk stays as it is."""


async def broken_restore(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch, *, at: str
) -> tuple[str, str]:
    """Leave a restore unfinished; return the trees before it and of its target."""
    target = await invoke(home, service.snapshot_take, cwd=project)
    (project / "readme.txt").write_text("second\n")
    (project / "new.txt").write_text("new\n")
    before = await invoke(home, service.snapshot_take, cwd=project)
    given: dict[str, Any] = {"to": target.snapshot_id, "cwd": project}
    planned = await invoke(home, service.tree_restore, **given)

    async def die(*_arguments: Any, **_named: Any) -> Any:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(applying if at != "_end" else finishing, at, die)
        with pytest.raises(Died):
            await invoke(
                home,
                service.tree_restore,
                **given,
                dry_run=False,
                plan_digest=planned.plan_digest,
                principal=PERSON,
            )
    return before.tree, target.tree


async def states(home: Home) -> list[str]:
    return [row["state"] for row in await home.state.read(Reading.all, "SELECT state FROM operations ORDER BY id")]


@pytest.mark.parametrize(("at", "expected"), [("stage", "failed"), ("forward", "done"), ("_end", "done")])
async def test_a_start_ends_what_was_left_where_it_can_go_forward_or_had_not_begun(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch, at: str, expected: str
) -> None:
    before, target = await broken_restore(home, invoke, project, monkeypatch, at=at)
    assert await states(home) == ["running"]
    assert any("has not ended" in wrong for wrong in await verify(home))

    await start(home)

    assert await states(home) == [expected]
    assert await verify(home) == []
    taken = await invoke(home, service.snapshot_take, cwd=project)
    assert taken.tree == (target if expected == "done" else before)
    assert list((project / ".agentstead").glob("stage/*")) == []


async def test_the_next_change_of_a_place_ends_what_was_left_there_without_a_restart(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, target = await broken_restore(home, invoke, project, monkeypatch, at="forward")

    planned = await invoke(home, service.tree_restore, to=f"tree:{target}", unknown="remove", cwd=project)
    with pytest.raises(Exception, match=r"workspace\.plan_changed"):
        await invoke(
            home,
            service.tree_restore,
            to=f"tree:{target}",
            unknown="remove",
            dry_run=False,
            plan_digest=planned.plan_digest,
            principal=PERSON,
            cwd=project,
        )

    assert (await states(home))[0] == "done"
    assert (await invoke(home, service.snapshot_take, cwd=project)).tree == target


async def test_an_operation_whose_directory_is_gone_is_given_up(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broken_restore(home, invoke, project, monkeypatch, at="forward")
    shutil.rmtree(project)

    await start(home)

    assert await states(home) == ["failed"]
    assert await home.state.read(Reading.value, "SELECT error FROM operations") == "its directory is gone"


async def test_a_place_that_somebody_holds_is_left_to_them(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broken_restore(home, invoke, project, monkeypatch, at="forward")
    place = live_place((await home.state.read(registry.listed))[0])

    async with locked(home, place, doing="another process"):
        await start(home)
        assert await states(home) == ["running"]

    await start(home)
    assert await states(home) == ["done"]


async def test_trouble_with_one_operation_is_recorded_and_the_rest_is_done(
    home: Home, invoke: Invoke, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broken_restore(home, invoke, project, monkeypatch, at="forward")
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / "readme.txt").write_text("hello\n")
    await broken_restore(home, invoke, other, monkeypatch, at="forward")
    stage = next((project / ".agentstead" / "stage").iterdir())
    shutil.rmtree(stage / "back")
    (stage / "back").symlink_to("/")

    await start(home)

    assert await states(home) == ["recovering", "done"]
    trouble = await home.state.read(Reading.value, "SELECT error FROM operations WHERE state = 'recovering'")
    assert "path.symlink" in trouble

    (stage / "back").unlink()
    await start(home)
    assert await states(home) == ["done", "done"]
    assert seen(project, ignored=IGNORED) == seen(other, ignored=IGNORED)


async def test_a_fork_that_was_being_made_is_removed_and_its_place_free_again(
    home: Home, invoke: Invoke, project: Path
) -> None:
    opened = (await invoke(home, service.fork_open, cwd=project)).forks[0]
    await home.state.write(lambda tx: tx.execute("UPDATE forks SET state = 'making'"))

    await start(home)

    assert not Path(opened["path"]).exists()
    assert await home.state.read(Reading.value, "SELECT state FROM forks") == "failed"
    assert (await invoke(home, keeping.fork_list, cwd=project)).items == []


async def test_directories_that_no_row_names_are_left_alone(home: Home, invoke: Invoke, project: Path) -> None:
    await invoke(home, service.fork_open, cwd=project)
    workspace = next((home.path / "forks").iterdir())
    (workspace / "somebody's notes").mkdir()
    (workspace / "frk_01ARZ3NDEKTSV4RRFFQ69G5FAV").mkdir()

    await start(home)

    assert sorted(path.name for path in workspace.iterdir() if not path.name.startswith("frk_01M")) == [
        "frk_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "somebody's notes",
    ]


async def test_an_object_that_is_missing_is_what_the_check_of_a_home_finds(
    home: Home, invoke: Invoke, project: Path
) -> None:
    await invoke(home, service.snapshot_take, cwd=project)
    assert await verify(home) == []
    tree = await home.state.read(Reading.value, "SELECT tree FROM snapshots")
    key = ObjectKey("tree", tree)
    home.blobs.store.layout.path(key).unlink()

    assert await verify(home) == [f"object {key} is referred to and cannot be read"]
    assert SERVER.verify is verify


async def test_a_call_repeated_after_a_crash_begins_anew_under_its_key(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = await invoke(home, service.snapshot_take, cwd=project)
    (project / "readme.txt").write_text("second\n")
    planned = await invoke(home, service.tree_restore, to=target.snapshot_id, cwd=project)
    arguments: dict[str, Any] = {
        "to": target.snapshot_id,
        "dry_run": False,
        "plan_digest": planned.plan_digest,
        "idempotency_key": "k",
        "principal": PERSON,
        "cwd": project,
    }

    async def die(*_arguments: Any, **_named: Any) -> Any:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(applying, "stage", die)
        with pytest.raises(Died):
            await invoke(home, service.tree_restore, **arguments)
    await start(home)
    assert await states(home) == ["failed"]

    done = await invoke(home, service.tree_restore, **arguments)

    assert done.state == "done"
    assert (project / "readme.txt").read_text() == "hello\n"


async def test_the_machine_refuses_what_is_not_listed(home: Home, invoke: Invoke, project: Path) -> None:
    fork_id = (await invoke(home, service.fork_open, cwd=project)).forks[0]["fork_id"]
    await invoke(home, service.fork_write, fork_id=fork_id, files=[{"path": "a", "text": "1"}])
    operation = (await home.state.read(operations.listed, (await home.state.read(registry.listed))[0].id))[0]

    def again(tx: Tx) -> None:
        operations.move(tx, operation.id, "done")

    with pytest.raises(Exception, match=r"operation\.transition_refused"):
        await home.state.write(again)
