"""Edges of the file system: large files, links in our own folder, pipes, deep trees, and a loop that keeps turning."""

import os
import stat
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentstead.identity import Principal
from agentstead.kit import Home
from agentstead.state import AgentsteadError, Invalid
from agentstead.workspace import boundaries, reading, service
from agentstead.workspace.beneath import entry_at, opened_directory, opened_root
from agentstead.workspace.displaced import discard_stage, find_displaced
from agentstead.workspace.exchange import Name
from agentstead.workspace.removing import empty_trash, put_away, remove_tree
from agentstead.workspace.staging import opened_area
from agentstead.workspace.standing import is_plain, remove, remove_empty
from agentstead.workspace.steps import Step
from agentstead.workspace.writing import set_mode
from tests.conftest import Invoke
from tests.workspace.directories import File, Folder, Link, make, seen

PERSON = Principal.user(at_terminal=True)
BIG = os.urandom(9 * 2**20) + b"end"


@pytest.mark.anyio
async def test_a_large_file_goes_through_every_operation_in_chunks(home: Home, invoke: Invoke, project: Path) -> None:
    (project / "big.bin").write_bytes(BIG)
    first = await invoke(home, service.snapshot_take, cwd=project)
    fork = (await invoke(home, service.fork_open, cwd=project)).forks[0]
    (project / "big.bin").write_bytes(b"small now")
    await invoke(home, service.snapshot_take, cwd=project)

    planned = await invoke(home, service.tree_restore, to=first.snapshot_id, cwd=project)
    await invoke(
        home,
        service.tree_restore,
        to=first.snapshot_id,
        dry_run=False,
        plan_digest=planned.plan_digest,
        principal=PERSON,
        cwd=project,
    )

    assert (Path(fork["path"]) / "big.bin").read_bytes() == BIG
    assert (project / "big.bin").read_bytes() == BIG
    tail = await invoke(home, service.workspace_view, view="file", path="big.bin", offset=len(BIG) - 3, cwd=project)
    assert tail.text == "end"


@pytest.mark.anyio
async def test_the_loop_keeps_turning_while_a_tree_is_read(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(Folder({b"f%d" % number: File(b"%d" % number) for number in range(20)}), project)
    store_file = reading.store_file
    in_loop = threading.get_ident()
    threads: set[int] = set()

    def noted(batch: Any, name: bytes, *, at: int) -> Any:
        threads.add(threading.get_ident())
        return store_file(batch, name, at=at)

    monkeypatch.setattr("agentstead.workspace.walk.store_file", noted)
    await invoke(home, service.snapshot_take, cwd=project)

    assert threads
    assert in_loop not in threads


@pytest.mark.anyio
async def test_our_own_folder_as_a_link_is_refused_and_nothing_is_written_through_it(
    home: Home, invoke: Invoke, project: Path, tmp_path: Path
) -> None:
    first = await invoke(home, service.snapshot_take, cwd=project)
    (project / "readme.txt").write_text("second\n")
    planned = await invoke(home, service.tree_restore, to=first.snapshot_id, cwd=project)
    outside = tmp_path / "outside"
    (project / ".agentstead").rename(outside)
    (project / ".agentstead").symlink_to(outside)
    before = seen(outside)

    with pytest.raises(AgentsteadError) as caught:
        await invoke(
            home,
            service.tree_restore,
            to=first.snapshot_id,
            dry_run=False,
            plan_digest=planned.plan_digest,
            principal=PERSON,
            cwd=project,
        )

    assert caught.value.code in {"path.symlink", "workspace.plan_changed", "workspace.gone"}
    assert (project / "readme.txt").read_text() == "second\n"
    kept = {name: node for name, node in seen(outside).names.items() if name not in {b"probe", b"stage"}}
    assert kept == before.names


@pytest.mark.anyio
async def test_many_calls_at_once_on_one_workspace_agree(home: Home, invoke: Invoke, project: Path) -> None:
    ids: list[str] = []

    async def take() -> None:
        ids.append((await invoke(home, service.snapshot_take, cwd=project)).snapshot_id)

    await take()
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(take)

    assert len(set(ids)) == 1


@pytest.mark.parametrize("root", ["/", "/usr", "/usr/share", "/etc", "/home", "/var", "/proc/1"])
def test_directories_of_the_system_are_no_workspace(root: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"workspace\.refused"):
        boundaries.refuse_unfit(Path(root), tmp_path / "home")


def test_a_home_directory_and_what_holds_our_home_are_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, ours = tmp_path / "person", tmp_path / "elsewhere" / "home"
    (person / "project").mkdir(parents=True)
    (ours / "forks").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(person))

    for unfit in (person, tmp_path, ours, ours / "forks", ours.parent):
        with pytest.raises(Invalid, match=r"workspace\.refused"):
            boundaries.refuse_unfit(unfit, ours)
    boundaries.refuse_unfit(person / "project", ours)


def test_a_link_on_the_way_is_never_followed(tmp_path: Path) -> None:
    make(Folder({b"real": Folder({b"x": File(b"1")}), b"ln": Link(b"real"), b"file": File(b"2")}), tmp_path)
    with opened_root(tmp_path) as root:
        with opened_directory(root, b"real") as directory:
            assert entry_at(directory, b"x") is not None
        for path in (b"ln", b"ln/deeper", b"file", b"file/below"):
            with pytest.raises(Invalid, match=r"path\.symlink"), opened_directory(root, path):
                pass
        with pytest.raises(FileNotFoundError), opened_directory(root, b"none"):
            pass


def test_what_is_neither_file_link_nor_directory_has_an_id_that_no_content_has(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with opened_root(tmp_path) as root:
        found = entry_at(root, b"pipe")
        assert entry_at(root, b"none") is None

    assert found is not None
    assert found.id == "0" * 64


def test_a_mode_is_never_set_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (tmp_path / "target").chmod(0o600)
    (tmp_path / "ln").symlink_to("target")
    with opened_root(tmp_path) as root:
        set_mode(root, b"target", 0o640)
        with pytest.raises(OSError, match="symbolic links"):
            set_mode(root, b"ln", 0o777)

    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o640


def test_a_file_that_nobody_may_read_can_have_its_mode_set(tmp_path: Path) -> None:
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    with opened_root(tmp_path) as root:
        set_mode(root, b"closed", 0o600)

    assert (tmp_path / "closed").read_text() == "x"


def test_only_what_is_empty_or_ours_is_removed(tmp_path: Path) -> None:
    make(Folder({b"full": Folder({b"x": File(b"1")}), b"bare": Folder(), b"file": File(b"2")}), tmp_path)
    with opened_root(tmp_path) as root:
        assert not remove_empty(Name(root, b"full"))
        assert remove_empty(Name(root, b"bare"))
        assert remove_empty(Name(root, b"bare")), "gone already is fine"
        assert is_plain(Name(root, b"file"))
        assert not is_plain(Name(root, b"full"))
        remove(Name(root, b"file"))
        with pytest.raises(OSError, match="not empty"):
            remove(Name(root, b"full"))

    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_directory_of_ours_is_removed_whatever_modes_it_holds(tmp_path: Path, store: Any) -> None:
    make(Folder({b"closed": Folder({b"x": File(b"1", 0o400), b"in": Folder({b"y": File()}, 0o500)}, 0o500)}), tmp_path)
    (tmp_path / "ln").symlink_to("closed")
    trash = tmp_path / "trash"

    put_away(store, tmp_path / "closed", trash)
    put_away(store, tmp_path / "closed", trash)
    assert list(trash.iterdir()) == []
    (trash / "left").mkdir()
    empty_trash(store, trash)
    empty_trash(store, tmp_path / "no trash here")
    remove_tree(trash)

    assert [path.name for path in tmp_path.iterdir() if path.name not in {"ln", "store"}] == []


def test_displaced_pipes_and_directories_are_passed_over_and_files_are_stored(tmp_path: Path, store: Any) -> None:
    base = tmp_path / "base"
    folder = base / "trash" / "opr_x"
    for name in ("old", "back", "new"):
        (folder / name).mkdir(parents=True)
    os.mkfifo(folder / "old" / "0")
    (folder / "old" / "1").mkdir()
    (folder / "old" / "2").write_bytes(b"an edit that nobody stored")
    (folder / "back" / "2.0").symlink_to("somewhere")
    (folder / "new" / "2").write_bytes(b"prepared")
    (folder / "new" / "1").mkdir()
    steps = [Step(number, b"path%d" % number, "replace", None, None) for number in range(3)]

    found = find_displaced(store, base, "opr_x", steps)

    assert [(each.path, each.file.name) for each in found] == [(b"path0", "0"), (b"path2", "2"), (b"path2", "2.0")]
    assert found[0].id == "", "a pipe holds nothing that could be stored"
    assert store.get("blob", found[1].id) == b"an edit that nobody stored"
    assert store.get("blob", found[2].id) == b"somewhere"
    assert list((folder / "new").iterdir()) == []
    assert find_displaced(store, base, "opr_none", steps) == []


def test_prepared_content_is_dropped_but_never_with_displaced_files_in_it(tmp_path: Path) -> None:
    with opened_area(tmp_path, "opr_x"):
        (tmp_path / "stage" / "opr_x" / "new" / "0").write_text("prepared")
    discard_stage(tmp_path, "opr_x")
    assert not (tmp_path / "stage" / "opr_x").exists()
    discard_stage(tmp_path, "opr_x")

    with opened_area(tmp_path, "opr_y"):
        (tmp_path / "stage" / "opr_y" / "old" / "0").write_text("somebody's")
    with pytest.raises(RuntimeError, match="displaced files"):
        discard_stage(tmp_path, "opr_y")
    assert (tmp_path / "stage" / "opr_y" / "old" / "0").read_text() == "somebody's"


@pytest.mark.parametrize("link", ["base", "stage", "stage/opr_x", "stage/opr_x/old"])
def test_a_link_in_place_of_a_folder_of_ours_is_refused(tmp_path: Path, link: str) -> None:
    base, outside = tmp_path / "base", tmp_path / "outside"
    outside.mkdir()
    target = base if link == "base" else base / link
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(outside)

    with pytest.raises(Invalid, match=r"path\.symlink"), opened_area(base, "opr_x"):
        pass
    assert list(outside.iterdir()) == []
