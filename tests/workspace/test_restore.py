"""Restore and undo: the named version comes back exactly, what nobody stored stays, and every step can be undone."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings

from agentstead.identity import Principal, registry
from agentstead.kit import Home
from agentstead.state import Conflict, Invalid, NotFound, PendingAnswer, Reading, Unavailable
from agentstead.workspace import apply, exchange, service
from agentstead.workspace.places import Place, live_place, locked
from tests.conftest import Invoke
from tests.workspace.directories import FOLDERS, File, Folder, Link, make, remove, seen

pytestmark = pytest.mark.anyio

IGNORED = (b".git", b".agentstead")
PERSON = Principal.user(at_terminal=True)
REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)


class Tree:
    """A project, and short ways to snapshot, plan and restore."""

    def __init__(self, home: Home, invoke: Invoke, project: Path) -> None:
        self.home, self.invoke, self.project = home, invoke, project

    async def take(self, **arguments: Any) -> Any:
        return await self.invoke(self.home, service.snapshot_take, cwd=self.project, **arguments)

    async def plan(self, **arguments: Any) -> Any:
        return await self.invoke(self.home, service.tree_restore, **{"cwd": self.project, **arguments})

    async def restore(self, **arguments: Any) -> Any:
        planned = await self.plan(**arguments)
        given_too = {"principal": PERSON, "dry_run": False, "plan_digest": planned.plan_digest}
        return await self.plan(**{**given_too, **arguments})

    def fill(self, folder: Folder) -> None:
        """Replace everything but our own and git's folder."""
        for path in self.project.iterdir():
            if os.fsencode(path.name) not in IGNORED:
                if path.is_dir() and not path.is_symlink():
                    remove(path)
                else:
                    path.unlink()
        make(folder, self.project)

    def live(self) -> Folder:
        return seen(self.project, ignored=IGNORED)


@pytest.fixture
async def tree(home: Home, invoke: Invoke, project: Path) -> Tree:
    return Tree(home, invoke, project)


@REUSED
@given(first=FOLDERS, second=FOLDERS)
async def test_restoring_a_snapshot_gives_its_tree_again_and_undoing_that_the_other(
    first: Folder, second: Folder, tree: Tree
) -> None:
    tree.fill(first)
    wanted = await tree.take()
    tree.fill(second)
    other = await tree.take()

    done = await tree.restore(to=wanted.snapshot_id)
    assert tree.live() == first
    assert (await tree.take()).tree == wanted.tree

    await tree.restore(undo=done.operation_id)
    assert tree.live() == second
    assert (await tree.take()).tree == other.tree


async def test_the_plan_alone_changes_nothing(tree: Tree) -> None:
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("changed\n")
    (tree.project / "new").write_text("x")
    await tree.take()
    before = tree.live()

    planned = await tree.plan(to=wanted.snapshot_id)

    assert planned.state == "planned"
    assert planned.plan["write"] == [{"path": "readme.txt", "status": "modified"}]
    assert planned.plan["delete"] == [{"path": "new"}]
    assert tree.live() == before
    assert await tree.home.state.read(Reading.value, "SELECT count(*) FROM operations") == 0


async def test_a_file_in_no_earlier_snapshot_is_kept_unless_asked_otherwise(tree: Tree) -> None:
    wanted = await tree.take()
    make(Folder({b"d": Folder({b"known": File(b"1")})}), tree.project)
    await tree.take()
    (tree.project / "d" / "unknown").write_text("in no snapshot")

    kept = await tree.restore(to=wanted.snapshot_id)

    assert tree.live() == Folder({b"readme.txt": File(b"hello\n"), b"d": Folder({b"unknown": File(b"in no snapshot")})})
    assert [each["path"] for each in kept.plan["keep"]] == ["d/unknown", "d"]

    removed = await tree.restore(to=wanted.snapshot_id, unknown="remove")
    assert tree.live() == Folder({b"readme.txt": File(b"hello\n")})
    back = await tree.invoke(
        tree.home, service.workspace_view, view="file", ref=removed.safety_snapshot, path="d/unknown", cwd=tree.project
    )
    assert back.text == "in no snapshot"


async def test_what_cannot_be_stored_is_never_touched(tree: Tree) -> None:
    (tree.project / "pkg").write_text("a file once")
    wanted = await tree.take()
    (tree.project / "pkg").unlink()
    make(Folder({b"pkg": Folder({b"a": File(b"1"), b"__pycache__": Folder({b"a.pyc": File(b"c")})})}), tree.project)
    os.mkfifo(tree.project / "pipe")
    (tree.project / ".env").write_text("TOKEN")
    await tree.take()

    done = await tree.restore(to=wanted.snapshot_id)

    assert [each["path"] for each in done.plan["refused"]] == ["pkg", "pkg/a"]
    assert (tree.project / "pkg" / "a").read_bytes() == b"1", "half of a replacement is not done either"
    assert (tree.project / "pkg" / "__pycache__" / "a.pyc").read_bytes() == b"c"
    assert (tree.project / ".env").read_text() == "TOKEN"
    assert (tree.project / "pipe").is_fifo()


async def test_a_path_that_became_unstorable_refuses_the_whole_restore(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = await tree.take()
    monkeypatch.setattr("agentstead.workspace.walk.MAX_FILE_BYTES", 3)
    monkeypatch.setattr("agentstead.workspace.walk.Limits.__init__.__defaults__", (3, 2**31, 100_000, 10**6, 200_000))
    (tree.project / "readme.txt").write_text("too large now\n")
    before = tree.live()

    with pytest.raises(Unavailable, match=r"restore\.unsafe_path") as caught:
        await tree.plan(to=wanted.snapshot_id)

    assert caught.value.details["paths"] == ["readme.txt"]
    assert tree.live() == before


async def test_single_paths_can_be_restored_with_the_directories_they_need(tree: Tree) -> None:
    make(Folder({b"a": Folder({b"b": Folder({b"one": File(b"1"), b"two": File(b"2")})})}), tree.project)
    wanted = await tree.take()
    tree.fill(Folder({b"readme.txt": File(b"changed\n")}))
    await tree.take()

    await tree.restore(to=wanted.snapshot_id, paths=["a/b/one"])

    assert tree.live() == Folder(
        {b"a": Folder({b"b": Folder({b"one": File(b"1")})}), b"readme.txt": File(b"changed\n")}
    )
    with pytest.raises(Invalid, match=r"path\.invalid"):
        await tree.plan(to=wanted.snapshot_id, paths=["../outside"])


async def test_unchanged_files_keep_their_inode_and_their_time(tree: Tree) -> None:
    (tree.project / "same").write_text("s")
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("changed\n")
    before = (tree.project / "same").stat()

    await tree.restore(to=wanted.snapshot_id)

    after = (tree.project / "same").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


async def test_an_edit_met_while_restoring_stays_and_the_rest_is_finished(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(Folder({b"a": File(b"a1"), b"b": File(b"b1")}), tree.project)
    wanted = await tree.take()
    make_second = {"a": "a2", "b": "b2"}
    for name, text in make_second.items():
        (tree.project / name).write_text(text)
    place = exchange.place

    def saved_meanwhile(source: Any, target: Any, aside: Any, **given_too: Any) -> None:
        if target.name == b"a" and (tree.project / "a").read_text() == "a2":
            (tree.project / "draft~").write_text("saved by the person")
            (tree.project / "draft~").replace(tree.project / "a")
        place(source, target, aside, **given_too)

    monkeypatch.setattr(apply, "place", saved_meanwhile)
    done = await tree.restore(to=wanted.snapshot_id)

    assert (done.state, [each["path"] for each in done.contested]) == ("done", ["a"])
    assert (tree.project / "a").read_text() == "saved by the person"
    assert (tree.project / "b").read_text() == "b1"


async def test_a_plan_that_changed_is_shown_again(tree: Tree) -> None:
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("changed\n")
    planned = await tree.plan(to=wanted.snapshot_id)
    (tree.project / "readme.txt").write_text("changed once more\n")

    for digest in (planned.plan_digest, None):
        with pytest.raises(Conflict, match=r"workspace\.plan_changed") as caught:
            await tree.plan(to=wanted.snapshot_id, dry_run=False, plan_digest=digest, principal=PERSON)
    assert (tree.project / "readme.txt").read_text() == "changed once more\n"
    assert caught.value.details["plan_digest"] == (await tree.plan(to=wanted.snapshot_id)).plan_digest


async def test_a_host_must_be_allowed_to_restore_but_not_to_look_at_the_plan(tree: Tree) -> None:
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("changed\n")
    planned = await tree.plan(to=wanted.snapshot_id, principal="host:claude")

    with pytest.raises(PendingAnswer):
        await tree.plan(to=wanted.snapshot_id, dry_run=False, plan_digest=planned.plan_digest, principal="host:claude")
    assert (tree.project / "readme.txt").read_text() == "changed\n"


async def test_a_promotion_can_be_undone_and_the_undo_undone(tree: Tree) -> None:
    opened = await tree.invoke(tree.home, service.fork_open, cwd=tree.project)
    fork_id = opened.forks[0]["fork_id"]
    files = [{"path": "readme.txt", "text": "promoted\n"}, {"path": "new/x", "text": "y"}]
    await tree.invoke(tree.home, service.fork_write, fork_id=fork_id, files=files)
    plan: dict[str, Any] = {"from": fork_id, "cwd": tree.project}
    digest = (await tree.invoke(tree.home, service.tree_promote, **plan)).plan_digest
    done = await tree.invoke(
        tree.home, service.tree_promote, **plan, dry_run=False, plan_digest=digest, principal=PERSON
    )
    promoted = tree.live()
    (tree.project / "unrelated").write_text("made since")

    undone = await tree.restore(undo=done.operation_id)
    assert tree.live() == Folder({b"readme.txt": File(b"hello\n"), b"unrelated": File(b"made since")})

    await tree.restore(undo=undone.operation_id)
    assert tree.live() == Folder({**promoted.names, b"unrelated": File(b"made since")})
    listed = await tree.invoke(tree.home, service.workspace_view, view="operation", cwd=tree.project)
    assert [(each["kind"], each["undoes"]) for each in listed.items][:2] == [
        ("undo", undone.operation_id),
        ("undo", done.operation_id),
    ]


async def test_an_undo_never_overwrites_what_was_changed_since(tree: Tree) -> None:
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("second\n")
    done = await tree.restore(to=wanted.snapshot_id)
    (tree.project / "readme.txt").write_text("third\n")

    with pytest.raises(Conflict, match=r"workspace\.conflict") as caught:
        await tree.plan(undo=done.operation_id)

    assert caught.value.details["paths"] == ["readme.txt"]
    assert (tree.project / "readme.txt").read_text() == "third\n"


async def test_an_undo_leaves_alone_what_was_contested_and_refuses_what_was_edited_right_after(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(Folder({b"a": File(b"a1"), b"b": File(b"b1")}), tree.project)
    wanted = await tree.take()
    for name in ("a", "b"):
        (tree.project / name).write_text(f"{name}2")
    place = exchange.place

    def saved_meanwhile(source: Any, target: Any, aside: Any, **given_too: Any) -> None:
        if target.name == b"a" and (tree.project / "a").read_text() == "a2":
            (tree.project / "draft~").write_text("the person's")
            (tree.project / "draft~").replace(tree.project / "a")
        place(source, target, aside, **given_too)

    monkeypatch.setattr(apply, "place", saved_meanwhile)
    done = await tree.restore(to=wanted.snapshot_id)
    monkeypatch.undo()

    await tree.restore(undo=done.operation_id)

    assert (tree.project / "a").read_text() == "the person's"
    assert (tree.project / "b").read_text() == "b2"


async def test_those_who_follow_the_journal_learn_which_paths_changed(tree: Tree) -> None:
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("second\n")
    (tree.project / "new").write_text("x")
    await tree.take()
    head = await tree.home.state.head()

    await tree.restore(to=wanted.snapshot_id)

    entries = await tree.home.state.wait(head.seq, kinds=("workspace.paths.changed",), timeout_s=5)
    assert [entry.body for entry in entries] == [{"paths": ["readme.txt", "new"], "more": 0}]


async def test_a_fork_is_restored_like_a_live_tree(tree: Tree) -> None:
    opened = await tree.invoke(tree.home, service.fork_open, cwd=tree.project)
    fork_id, root = opened.forks[0]["fork_id"], Path(opened.forks[0]["path"])
    await tree.take(place=fork_id)
    (root / "readme.txt").write_text("experiment\n")
    live = tree.live()

    await tree.restore(to=opened.forks[0]["base_snapshot"], place=fork_id)

    assert (root / "readme.txt").read_text() == "hello\n"
    assert tree.live() == live


async def test_the_same_key_restores_once(tree: Tree) -> None:
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("second\n")
    planned = await tree.plan(to=wanted.snapshot_id)
    arguments: dict[str, Any] = {
        "to": wanted.snapshot_id,
        "dry_run": False,
        "plan_digest": planned.plan_digest,
        "principal": PERSON,
        "idempotency_key": "k",
    }

    first = await tree.plan(**arguments)
    (tree.project / "readme.txt").write_text("third\n")
    second = await tree.plan(**arguments)

    assert second == first
    assert (tree.project / "readme.txt").read_text() == "third\n"


async def test_what_is_asked_for_must_be_one_thing_that_exists(tree: Tree) -> None:
    await tree.take()
    both: list[dict[str, Any]] = [{}, {"to": "live~1", "undo": "opr_x"}]
    for arguments in both:
        with pytest.raises(Invalid, match="either to or undo"):
            await tree.plan(**arguments)
    with pytest.raises(NotFound, match=r"operation\.not_found"):
        await tree.plan(undo="opr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(NotFound, match=r"ref\.not_found"):
        await tree.plan(to="@none")


async def test_a_tree_that_another_operation_holds_is_busy_and_names_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = await tree.take()
    (tree.project / "readme.txt").write_text("second\n")
    monkeypatch.setattr("agentstead.workspace.places.LOCK_WAIT_S", 0.1)
    monkeypatch.setattr(locked.__wrapped__, "__kwdefaults__", {"wait_s": 0.1})  # type: ignore[attr-defined]
    place = await place_of(tree)

    async with locked(tree.home, place, doing="a long promotion"):
        with pytest.raises(Conflict, match=r"workspace\.busy.*a long promotion") as caught:
            await tree.restore(to=wanted.snapshot_id)

    assert caught.value.retryable
    assert (await tree.restore(to=wanted.snapshot_id)).state == "done"


async def place_of(tree: Tree) -> Place:
    return live_place((await tree.home.state.read(registry.listed))[0])


async def test_a_workspace_inside_another_is_held_with_it(tree: Tree) -> None:
    inner = tree.project / "inner"
    (inner / ".git").mkdir(parents=True)
    await tree.invoke(tree.home, service.snapshot_take, cwd=inner)
    await tree.take()
    workspaces = {each.root: live_place(each) for each in await tree.home.state.read(registry.listed)}
    async with locked(tree.home, workspaces[tree.project], doing="outer"):
        with pytest.raises(Conflict, match=r"workspace\.busy"):
            async with locked(tree.home, workspaces[inner], doing="inner", wait_s=0):
                pass


async def test_a_call_that_is_cancelled_while_files_are_swapped_finishes_first(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(Folder({b"d": Folder({b"%d" % n: File(b"1") for n in range(80)}), b"ln": Link(b"d")}), tree.project)
    wanted = await tree.take()
    tree.fill(Folder({b"d": Folder({b"%d" % n: File(b"2") for n in range(80)})}))
    place = exchange.place
    scope = anyio.CancelScope()

    def cancel_then_place(*arguments: Any, **given_too: Any) -> None:
        anyio.from_thread.run_sync(scope.cancel)
        place(*arguments, **given_too)

    monkeypatch.setattr(apply, "place", cancel_then_place)
    planned = await tree.plan(to=wanted.snapshot_id)
    with scope:
        await tree.plan(to=wanted.snapshot_id, dry_run=False, plan_digest=planned.plan_digest, principal=PERSON)
    assert scope.cancelled_caught
    monkeypatch.undo()

    assert (await tree.take()).tree == wanted.tree
    states = await tree.home.state.read(Reading.all, "SELECT state FROM operations")
    assert [row["state"] for row in states] == ["done"]
