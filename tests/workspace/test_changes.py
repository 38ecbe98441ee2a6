"""Differences of trees and edits of trees: every path that differs, and none that does not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.blobs import EMPTY_TREE, BlobStore, TreeEntry, object_id
from agentstead.workspace.changes import Change, changes, with_renames
from agentstead.workspace.contents import Trees, edited
from tests.workspace.conftest import Walk
from tests.workspace.directories import FOLDERS, File, Folder, Link, Node, empty, make

REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
TreeOf = Callable[[Folder], str]


@pytest.fixture
def tree_of(tmp_path: Path, walk_at: Walk) -> TreeOf:
    def run(folder: Folder) -> str:
        root = empty(tmp_path / "made")
        make(folder, root)
        return walk_at(root).tree

    return run


def file(data: bytes, mode: int = 0o644) -> TreeEntry:
    return TreeEntry(b"", "f", mode, len(data), object_id(data))


@REUSED
@given(old=FOLDERS, new=FOLDERS)
def test_applying_every_change_to_the_old_tree_gives_the_new_one(
    old: Folder, new: Folder, tree_of: TreeOf, store: BlobStore
) -> None:
    before, after = tree_of(old), tree_of(new)
    trees = Trees(store)
    found = list(changes(trees, before, after))

    with store.batch() as batch:
        edits = {change.path: change.new for change in found}
        assert edited(trees, batch, before, edits) == after
    assert (found == []) == (before == after)


@REUSED
@given(old=FOLDERS, new=FOLDERS)
def test_the_changes_are_exactly_the_paths_whose_entries_differ(
    old: Folder, new: Folder, tree_of: TreeOf, store: BlobStore
) -> None:
    trees = Trees(store)
    before, after = tree_of(old), tree_of(new)
    flat = [
        {path: (e.type, e.mode, e.id if e.type != "d" else "") for path, e in trees.paths(t)} for t in (before, after)
    ]

    differing = {path for path in flat[0].keys() | flat[1].keys() if flat[0].get(path) != flat[1].get(path)}

    assert {change.path for change in changes(trees, before, after)} == differing


def test_each_change_says_what_kind_it_is(tree_of: TreeOf, store: BlobStore) -> None:
    old: dict[bytes, Node] = {
        b"gone": File(b"1"),
        b"edit": File(b"2"),
        b"mode": File(b"3"),
        b"type": File(b"4"),
        b"d": Folder(),
    }
    new: dict[bytes, Node] = {
        b"come": File(b"5"),
        b"edit": File(b"6"),
        b"mode": File(b"3", 0o755),
        b"type": Link(),
        b"d": Folder({}, 0o700),
    }

    found = changes(Trees(store), tree_of(Folder(old)), tree_of(Folder(new)))

    assert {change.path: change.status for change in found} == {
        b"come": "added",
        b"d": "mode",
        b"edit": "modified",
        b"gone": "deleted",
        b"mode": "mode",
        b"type": "retyped",
    }


def test_a_file_of_the_same_bytes_elsewhere_is_renamed_and_the_same_name_goes_first() -> None:
    found = with_renames(
        [
            Change(b"a/one", file(b"same"), None),
            Change(b"a/two", file(b"same"), None),
            Change(b"b/other", None, file(b"same")),
            Change(b"b/two", None, file(b"same", 0o755)),
            Change(b"c", None, file(b"same")),
            Change(b"empty", file(b""), None),
            Change(b"void", None, file(b"")),
        ]
    )

    assert [(change.path, change.old_path, change.status) for change in found] == [
        (b"b/other", b"a/one", "renamed"),
        (b"b/two", b"a/two", "renamed"),
        (b"c", None, "added"),
        (b"empty", None, "deleted"),
        (b"void", None, "added"),
    ]


def test_editing_makes_the_directories_on_the_way_and_leaves_the_rest_alone(store: BlobStore) -> None:
    trees = Trees(store)
    with store.batch() as batch:
        first = edited(trees, batch, EMPTY_TREE, {b"a/b/c": file(b"1"), b"a/x": file(b"22")})
        second = edited(trees, batch, first, {b"a/b/c": None, b"a/x/y": file(b"333"), b"none/of/it": None})
        batch.commit()

    assert [(path, entry.type, entry.size) for path, entry in Trees(store).paths(first)] == [
        (b"a", "d", 3),
        (b"a/b", "d", 1),
        (b"a/b/c", "f", 1),
        (b"a/x", "f", 2),
    ]
    assert [(path, entry.type, entry.size) for path, entry in Trees(store).paths(second)] == [
        (b"a", "d", 3),
        (b"a/b", "d", 0),
        (b"a/x", "d", 3),
        (b"a/x/y", "f", 3),
    ]


@REUSED
@given(folder=FOLDERS, data=st.data())
def test_looking_a_path_up_finds_what_listing_finds(
    folder: Folder, data: st.DataObject, tree_of: TreeOf, store: BlobStore
) -> None:
    trees = Trees(store)
    tree = tree_of(folder)
    for path, entry in trees.paths(tree):
        assert trees.entry(tree, path) == entry
        assert entry.type == "d" or trees.entry(tree, path + b"/below") is None
    assert trees.entry(tree, b"no such name") is None
