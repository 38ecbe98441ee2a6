"""The order in which differences are applied to a directory: one journaled step a path.

Directories that cannot be written are opened first and closed last; what must make room goes before what comes, and
other deletions come after everything else.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentstead.blobs import TreeEntry
from agentstead.workspace.changes import Change
from agentstead.workspace.paths import parent, parts

StepKind = Literal["add", "replace", "delete", "mode", "mkdir", "rmdir", "retype"]

_FULL_ACCESS = 0o700
_STAGED: frozenset[StepKind] = frozenset({"add", "replace", "mkdir", "retype"})


@dataclass(frozen=True, slots=True)
class Step:
    """One act on one path: what must stand there before, and what stands there afterwards."""

    ordinal: int
    path: bytes
    kind: StepKind
    old: TreeEntry | None
    new: TreeEntry | None

    @property
    def is_staged(self) -> bool:
        """Tell whether its new content is prepared beside the tree first."""
        return self.kind in _STAGED


def plan_steps(found: Iterable[Change], old_entry: Callable[[bytes], TreeEntry | None]) -> list[Step]:
    """Return the steps that apply some changes; `old_entry` gives what stands at a path before them.

    The changes must be whole: what a removed directory holds is among them.
    """
    listed = sorted(found, key=lambda change: parts(change.path))
    opened = _to_open(listed, old_entry)
    early, middle, late, modes = _Plan(), _Plan(), _Plan(), _Plan()
    making_room = [change.path + b"/" for change in listed if _type(change.old) == "d" and _type(change.new) in "fl"]
    for path, entry in sorted(opened.items(), key=lambda item: parts(item[0])):
        early.add(path, "mode", entry, _with_access(entry))
    for change in reversed(listed):
        if change.new is None:
            room = any(change.path.startswith(prefix) for prefix in making_room)
            (early if room else late).add(change.path, _removal(change), _current(change, opened), None)
    for change in listed:
        if change.new is not None:
            _bring(change, opened, middle, modes)
    for path, entry in opened.items():
        if all(change.path != path for change in listed):
            modes.add(path, "mode", _with_access(entry), entry)
    modes.acts.sort(key=lambda act: parts(act.path), reverse=True)
    acts = [*early.acts, *middle.acts, *late.acts, *modes.acts]
    return [replace(act, ordinal=ordinal) for ordinal, act in enumerate(acts)]


class _Plan:
    """Acts of one phase, in order."""

    def __init__(self) -> None:
        self.acts: list[Step] = []

    def add(self, path: bytes, kind: StepKind, old: TreeEntry | None, new: TreeEntry | None) -> None:
        self.acts.append(Step(0, path, kind, old, new))


def _bring(change: Change, opened: dict[bytes, TreeEntry], middle: _Plan, modes: _Plan) -> None:
    """Add the steps of a path at which something stands afterwards."""
    new = change.new
    assert new is not None
    old = _current(change, opened)
    first = _with_access(new) if new.type == "d" else new
    if old is None:
        middle.add(change.path, "mkdir" if new.type == "d" else "add", None, first)
    elif old.type != new.type:
        middle.add(change.path, "retype", old, first)
    elif old.type == "d" or old.id == new.id:
        (modes if old.type == "d" else middle).add(change.path, "mode", old, new)
        return
    else:
        middle.add(change.path, "replace", old, new)
    if first != new:
        modes.add(change.path, "mode", first, new)


def _to_open(listed: Sequence[Change], old_entry: Callable[[bytes], TreeEntry | None]) -> dict[bytes, TreeEntry]:
    """Return the existing directories that a step acts in, or moves, and whose mode does not let their owner do so.

    Moving a directory to another parent takes the right to write in the directory itself.
    """
    moved = {change.path: change.old for change in listed if _type(change.old) == "d" and _type(change.new) in "fl"}
    acted_in = {path: old_entry(path) for path in {parent(change.path) for change in listed} - {b""}}
    return {
        path: entry
        for path, entry in {**acted_in, **moved}.items()
        if entry is not None and entry.type == "d" and entry.mode & _FULL_ACCESS != _FULL_ACCESS
    }


def _current(change: Change, opened: dict[bytes, TreeEntry]) -> TreeEntry | None:
    """Return what stands at the path once the directories are opened."""
    return _with_access(change.old) if change.old is not None and change.path in opened else change.old


def _with_access(entry: TreeEntry) -> TreeEntry:
    return replace(entry, mode=entry.mode | _FULL_ACCESS)


def _removal(change: Change) -> StepKind:
    return "rmdir" if _type(change.old) == "d" else "delete"


def _type(entry: TreeEntry | None) -> str:
    return "-" if entry is None else entry.type
