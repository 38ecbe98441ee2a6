"""Plans: they end in the tree they name, touch only what is stored, and keep what no earlier snapshot holds."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.blobs import EMPTY_TREE, BlobStore, TreeEntry, object_id
from agentstead.state import Unavailable
from agentstead.workspace.apply import Applier
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.changes import Change
from agentstead.workspace.contents import Trees
from agentstead.workspace.omissions import Omission
from agentstead.workspace.paths import is_within
from agentstead.workspace.planning import Plan, Wanted, known_paths, make_plan
from agentstead.workspace.staging import opened_area
from agentstead.workspace.steps import plan_steps
from tests.workspace.conftest import Walk
from tests.workspace.directories import FOLDERS, NAMES, File, Folder, Link, Node, empty, make, seen

REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
TreeOf = Callable[[Folder], str]


@pytest.fixture
def tree_of(tmp_path: Path, walk_at: Walk) -> TreeOf:
    def run(folder: Folder) -> str:
        root = empty(tmp_path / "made")
        make(folder, root)
        return walk_at(root).tree

    return run


def applied(store: BlobStore, plan: Plan, root: Path, base: Path) -> set[str]:
    """Apply a plan to a directory; return the phases that its steps ended in."""
    with opened_root(root) as descriptor, opened_area(base, "opr_plan") as area:
        applier = Applier(store, descriptor, area, cas="exchange")
        inodes = [applier.stage(step) for step in plan.steps]
        return {applier.forward(step, inode).phase for step, inode in zip(plan.steps, inodes, strict=True)}


@REUSED
@given(live=FOLDERS, wanted=FOLDERS, earlier=FOLDERS)
def test_a_plan_ends_in_the_tree_that_it_names_and_keeps_the_unknown(
    live: Folder,
    wanted: Folder,
    earlier: Folder,
    tree_of: TreeOf,
    store: BlobStore,
    tmp_path: Path,
    walk_at: Walk,
) -> None:
    live_tree, wanted_tree, known = tree_of(live), tree_of(wanted), tree_of(earlier)
    plan = make_plan(store, live_tree, (), Wanted(wanted_tree, known_trees=(known,)))
    root, base = empty(tmp_path / "root"), empty(tmp_path / "base")
    make(live, root)

    phases = applied(store, plan, root, base)

    assert phases <= {"verified"}
    assert walk_at(root).tree == plan.result_tree
    trees = Trees(store)
    before = dict(trees.paths(live_tree))
    known_before = {path for path, _ in trees.paths(known)}
    for path in before:
        gone = trees.entry(plan.result_tree, path) is None
        assert not gone or path in known_before or _is_in(wanted, path), path


def _is_in(wanted: Folder, path: bytes) -> bool:
    """Tell whether the wanted tree has something else at the path or above it, so that it had to make room."""
    node: Node = wanted
    for name in path.split(b"/"):
        if not isinstance(node, Folder):
            return True
        if name not in node.names:
            return False
        node = node.names[name]
    return True


@REUSED
@given(live=FOLDERS, wanted=FOLDERS)
def test_removing_the_unknown_gives_exactly_the_wanted_tree(
    live: Folder, wanted: Folder, tree_of: TreeOf, store: BlobStore
) -> None:
    wanted_tree = tree_of(wanted)

    plan = make_plan(store, tree_of(live), (), Wanted(wanted_tree, unknown="remove"))

    assert plan.result_tree == wanted_tree
    assert (plan.kept, plan.protected, plan.refused) == ((), (), ())


@REUSED
@given(live=FOLDERS, wanted=FOLDERS, data=st.data())
def test_nothing_at_or_below_what_is_not_stored_is_ever_a_step(
    live: Folder, wanted: Folder, data: st.DataObject, tree_of: TreeOf, store: BlobStore
) -> None:
    names = data.draw(st.lists(NAMES, max_size=3))
    omissions = [Omission(name, "derived", "derived") for name in names if name not in live.names]
    deep = [
        Omission(name + b"/inside", "secret", "secret") for name, node in live.names.items() if isinstance(node, Folder)
    ]
    left_out = [*omissions, *deep]

    plan = make_plan(store, tree_of(live), left_out, Wanted(tree_of(wanted), unknown="remove"))

    roots = [omission.path for omission in left_out]
    for step in plan.steps:
        assert not is_within(step.path, roots)
        if step.kind in ("rmdir", "retype") and step.old is not None and step.old.type == "d":
            assert not any(root.startswith(step.path + b"/") for root in roots), (
                "a directory that holds something stays"
            )


@REUSED
@given(live=FOLDERS, wanted=FOLDERS, data=st.data())
def test_chosen_paths_leave_everything_else_as_it_is(
    live: Folder, wanted: Folder, data: st.DataObject, tree_of: TreeOf, store: BlobStore
) -> None:
    live_tree, wanted_tree = tree_of(live), tree_of(wanted)
    everything = sorted({*dict(Trees(store).paths(live_tree)), *dict(Trees(store).paths(wanted_tree))})
    chosen = tuple(data.draw(st.lists(st.sampled_from(everything), max_size=3))) if everything else ()

    plan = make_plan(store, live_tree, (), Wanted(wanted_tree, chosen or (b"nothing here",), "remove"))

    trees = Trees(store)
    for path in chosen:
        if not any(is_within(other, [path]) and other != path for other in chosen):
            assert trees.entry(plan.result_tree, path) == trees.entry(wanted_tree, path)
    for path, entry in trees.paths(live_tree):
        touched = is_within(path, chosen) or any(is_within(each, [path]) for each in chosen)
        assert touched or trees.entry(plan.result_tree, path) == entry


@REUSED
@given(trees=st.lists(FOLDERS, min_size=1, max_size=3), asked=FOLDERS)
def test_known_paths_are_those_that_any_of_the_trees_holds(
    trees: list[Folder], asked: Folder, tree_of: TreeOf, store: BlobStore
) -> None:
    ids = [tree_of(folder) for folder in trees]
    paths = [path for path, _ in Trees(store).paths(tree_of(asked))]
    held = {path for tree in ids for path, _ in Trees(store).paths(tree)}

    assert known_paths(Trees(store), ids, paths) == held & set(paths)


@pytest.mark.parametrize("reason", ["too_large", "budget", "unstable", "unreadable", "limit"])
def test_a_path_that_could_not_be_stored_refuses_the_plan(reason: str, tree_of: TreeOf, store: BlobStore) -> None:
    live, wanted = tree_of(Folder({b"other": File(b"1")})), tree_of(Folder({b"big": File(b"small once")}))
    omission = Omission(b"big", reason, "content")  # type: ignore[arg-type]

    with pytest.raises(Unavailable, match=r"restore\.unsafe_path") as caught:
        make_plan(store, live, [omission], Wanted(wanted, unknown="remove"))

    assert caught.value.details == {"paths": ["big"], "reasons": [reason]}


def test_a_directory_that_was_too_large_to_list_is_touched_nowhere(tree_of: TreeOf, store: BlobStore) -> None:
    live, wanted = tree_of(Folder({b"d": Folder()})), tree_of(Folder({b"d": Folder({b"x": File(b"1")})}))

    with pytest.raises(Unavailable, match=r"restore\.unsafe_path"):
        make_plan(store, live, [Omission(b"d", "limit", "content")], Wanted(wanted))
    with pytest.raises(Unavailable, match=r"restore\.unsafe_path"):
        make_plan(store, live, [Omission(b"", "limit", "content")], Wanted(wanted))


def test_the_digest_of_a_plan_covers_every_step_and_what_else_was_shown(tree_of: TreeOf, store: BlobStore) -> None:
    live = tree_of(Folder({b"a": File(b"1"), b"b": File(b"1")}))
    plans = [
        make_plan(store, live, (), Wanted(tree_of(folder), unknown="remove"))
        for folder in (
            Folder({b"a": File(b"2"), b"b": File(b"1")}),
            Folder({b"a": File(b"2", 0o755), b"b": File(b"1")}),
            Folder({b"a": Link(b"2"), b"b": File(b"1")}),
            Folder({b"a": File(b"1"), b"b": File(b"2")}),
            Folder({b"b": File(b"1")}),
        )
    ]
    digests = {plan.digest(place="live") for plan in plans}

    assert len(digests) == 5
    assert plans[0].digest(place="live") == plans[0].digest(place="live")
    assert plans[0].digest(place="live") != plans[0].digest(place="fork")


def test_a_long_plan_is_cut_in_answers_and_says_how_much_there_is(tree_of: TreeOf, store: BlobStore) -> None:
    many = Folder({b"%03d" % number: File(b"x") for number in range(250)})

    shown = make_plan(store, EMPTY_TREE, (), Wanted(tree_of(many))).as_json()

    assert len(shown["write"]) == 200
    assert shown["totals"]["write"] == 250


def test_steps_make_room_first_and_delete_last_and_close_what_they_opened() -> None:
    def entry(kind: str, mode: int, data: bytes = b"") -> TreeEntry:
        return TreeEntry(b"", kind, mode, 0, EMPTY_TREE if kind == "d" else object_id(data))  # type: ignore[arg-type]

    closed = entry("d", 0o555)
    found = [
        Change(b"was-dir", entry("d", 0o755), entry("f", 0o644, b"now a file")),
        Change(b"was-dir/inside", entry("f", 0o644, b"x"), None),
        Change(b"closed/new", None, entry("f", 0o644, b"y")),
        Change(b"gone", entry("f", 0o644, b"z"), None),
        Change(b"made", None, entry("d", 0o500)),
        Change(b"made/below", None, entry("l", 0, b"w")),
    ]

    steps = plan_steps(found, lambda path: closed if path == b"closed" else None)

    assert [(step.path, step.kind) for step in steps] == [
        (b"closed", "mode"),
        (b"was-dir/inside", "delete"),
        (b"closed/new", "add"),
        (b"made", "mkdir"),
        (b"made/below", "add"),
        (b"was-dir", "retype"),
        (b"gone", "delete"),
        (b"made", "mode"),
        (b"closed", "mode"),
    ]
    modes = [(step.old.mode, step.new.mode) for step in steps if step.kind == "mode" and step.old and step.new]
    assert modes == [(0o555, 0o755), (0o700, 0o500), (0o755, 0o555)]
    assert [step.ordinal for step in steps] == list(range(len(steps)))


def test_a_read_only_directory_that_a_file_replaces_is_opened_so_that_it_can_be_moved(
    tree_of: TreeOf, store: BlobStore, tmp_path: Path
) -> None:
    old, new = Folder({b"b": Folder({}, 0o555)}), Folder({b"b": File(b"now a file")})
    plan = make_plan(store, tree_of(old), (), Wanted(tree_of(new), unknown="remove"))
    root, base = empty(tmp_path / "root"), empty(tmp_path / "base")
    make(old, root)

    assert [(step.kind, step.path) for step in plan.steps] == [("mode", b"b"), ("retype", b"b")]
    assert applied(store, plan, root, base) <= {"verified"}
    assert seen(root) == new


def test_a_read_only_directory_is_opened_for_the_steps_in_it_and_closed_again(
    tree_of: TreeOf, store: BlobStore, tmp_path: Path
) -> None:
    old = Folder({b"d": Folder({b"a": File(b"1"), b"b": File(b"2")}, 0o555), b"e": Folder({b"x": File(b"3")}, 0o500)})
    new = Folder({b"d": Folder({b"a": File(b"changed"), b"c": File(b"4")}, 0o555)})
    plan = make_plan(store, tree_of(old), (), Wanted(tree_of(new), unknown="remove"))
    root, base = empty(tmp_path / "root"), empty(tmp_path / "base")
    make(old, root)

    assert applied(store, plan, root, base) <= {"verified"}
    assert seen(root) == new
    assert os.stat(root / "d").st_mode & 0o777 == 0o555  # noqa: PTH116
