"""What differs between two trees, path by path; the cost follows the directories that differ."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from agentstead.blobs import EMPTY_TREE, TreeEntry
from agentstead.workspace.contents import Trees
from agentstead.workspace.paths import join, parts

ChangeStatus = Literal["added", "deleted", "modified", "mode", "retyped", "renamed"]


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs: its entry before and after; None where it is not there.

    A directory is a change of its own where it appears, vanishes, or has another mode; what it holds follows.
    `old_path` names where the same bytes lay before, for a file that was moved.
    """

    path: bytes
    old: TreeEntry | None
    new: TreeEntry | None
    old_path: bytes | None = None

    @property
    def status(self) -> ChangeStatus:
        """Return what kind of change it is."""
        if self.old_path is not None:
            return "renamed"
        if self.old is None:
            return "added"
        if self.new is None:
            return "deleted"
        if self.old.type != self.new.type:
            return "retyped"
        same_content = self.old.type == "d" or self.old.id == self.new.id
        return "mode" if same_content else "modified"


def changes(trees: Trees, old: str, new: str, directory: bytes = b"") -> Iterator[Change]:
    """Yield what differs between two trees, a directory before what it holds."""
    if old == new:
        return
    before = {entry.name: entry for entry in trees.entries(old)}
    after = {entry.name: entry for entry in trees.entries(new)}
    for name in sorted(before.keys() | after.keys()):
        yield from _changes_of(trees, join(directory, name), before.get(name), after.get(name))


def _changes_of(trees: Trees, path: bytes, old: TreeEntry | None, new: TreeEntry | None) -> Iterator[Change]:
    if old == new:
        return
    both_directories = old is not None and new is not None and old.type == new.type == "d"
    if not both_directories or (old and new and old.mode != new.mode):
        yield Change(path, old, new)
    yield from changes(trees, _inside(old), _inside(new), path)


def with_renames(found: Iterable[Change]) -> list[Change]:
    """Join a deleted and an added file of the same bytes into one renamed file; ties go by path.

    Empty files are left alone: that two of them are equal says nothing.
    """
    listed = list(found)
    gone: dict[str, list[Change]] = defaultdict(list)
    for change in listed:
        if change.new is None and change.old is not None and change.old.type == "f" and change.old.size:
            gone[change.old.id].append(change)
    moved: dict[bytes, Change] = {}
    for change in listed:
        new = change.new
        if change.old is None and new is not None and new.type == "f" and gone.get(new.id):
            source = _best(gone[new.id], change.path)
            gone[new.id].remove(source)
            moved[source.path] = moved[change.path] = Change(change.path, source.old, new, source.path)
    kept = [moved.get(change.path, change) for change in listed]
    return [change for change, before in zip(kept, listed, strict=True) if change.path == before.path]


def _best(candidates: list[Change], path: bytes) -> Change:
    """Prefer the same name, then the first path."""
    name = parts(path)[-1]
    return min(candidates, key=lambda change: (parts(change.path)[-1] != name, change.path))


def _inside(entry: TreeEntry | None) -> str:
    return entry.id if entry is not None and entry.type == "d" else EMPTY_TREE
