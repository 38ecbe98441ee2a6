"""What turning a place into a tree would do: what is written, deleted, kept, and what may not be touched.

Only what is stored may be overwritten or deleted; what is in no earlier snapshot is kept unless asked otherwise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentstead.blobs import BlobStore, TreeEntry
from agentstead.state import Unavailable, canonical_json, sha256_hex
from agentstead.workspace.changes import Change, changes
from agentstead.workspace.contents import Trees, edited
from agentstead.workspace.finishing import path_json
from agentstead.workspace.omissions import Omission
from agentstead.workspace.paths import is_within, parent, parts, shown
from agentstead.workspace.steps import Step, plan_steps

Unknown = Literal["keep", "remove"]

SHOWN: Final = 200
_UNSAFE: Final = frozenset({"too_large", "budget", "unstable", "unreadable", "placeholder", "limit"})


@dataclass(frozen=True, slots=True)
class Kept:
    """A path that the plan leaves as it is, and why."""

    path: bytes
    why: str

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {**path_json(self.path), "why": self.why}


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done to a place that holds `live_tree`, and the tree that results.

    `protected` are paths that hold what is not stored, `refused` those where that makes the wanted change impossible.
    """

    live_tree: str
    result_tree: str
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    kept: tuple[Kept, ...]
    protected: tuple[Kept, ...]
    refused: tuple[Kept, ...]

    def digest(self, **about: Any) -> str:
        """Return the digest by which exactly this plan is confirmed; `about` is what else the caller was shown."""
        steps = [[step.path.hex(), step.kind, _facts(step.old), _facts(step.new)] for step in self.steps]
        return sha256_hex(canonical_json({"live": self.live_tree, "result": self.result_tree, "steps": steps, **about}))

    def as_json(self) -> dict[str, Any]:
        """Return the published form: each list cut at 200, with the totals beside."""
        write = [
            path_json(change.path) | {"status": change.status} for change in self.changes if change.new is not None
        ]
        delete = [path_json(change.path) for change in self.changes if change.new is None]
        lists: dict[str, Sequence[Any]] = {
            "write": write,
            "delete": delete,
            "keep": [each.as_json() for each in self.kept],
            "protected": [each.as_json() for each in self.protected],
            "refused": [each.as_json() for each in self.refused],
        }
        totals = {name: len(found) for name, found in lists.items()}
        shown_lists = {name: found[:SHOWN] for name, found in lists.items()}
        return {**shown_lists, "totals": totals, "live_tree": self.live_tree, "result_tree": self.result_tree}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tree a place is to become, in which paths (none: all), and what happens to unknown files.

    `known_trees` are what earlier snapshots of the place held.
    """

    tree: str
    paths: tuple[bytes, ...] = ()
    unknown: Unknown = "keep"
    known_trees: tuple[str, ...] = ()


def make_plan(store: BlobStore, live_tree: str, omissions: Sequence[Omission], wanted: Wanted) -> Plan:
    """Return the plan that turns a place into a tree, with the resulting tree stored.

    Raises Unavailable `restore.unsafe_path` where a path of the plan holds something that could not be stored.
    """
    trees = Trees(store)
    found = [change for change in changes(trees, live_tree, wanted.tree) if _is_wanted(change, wanted.paths)]
    _refuse_unsafe(found, omissions)
    sorter = _Sorter(trees, found, omissions, wanted)
    done = sorter.sort()
    with store.batch() as batch:
        result = edited(trees, batch, live_tree, {change.path: change.new for change in done})
        batch.commit()
    steps = plan_steps(done, lambda path: trees.entry(live_tree, path))
    return Plan(
        live_tree,
        result,
        tuple(steps),
        tuple(done),
        tuple(sorter.kept),
        tuple(sorter.protected),
        tuple(sorter.refused),
    )


class _Sorter:
    """Sorts the differences of one plan into those that are done and those that are left."""

    def __init__(self, trees: Trees, found: Sequence[Change], omissions: Sequence[Omission], wanted: Wanted) -> None:
        self.kept: list[Kept] = []
        self.protected: list[Kept] = []
        self.refused: list[Kept] = []
        self._trees = trees
        self._found = found
        self._omitted = {omission.path: omission for omission in omissions}
        self._wanted = wanted
        # Directories that must stay, because something in them does.
        self._held: dict[bytes, str] = {}
        for omission in omissions:
            self._hold(omission.path, f"holds {shown(omission.path)!r}, which is {omission.reason}")

    def sort(self) -> list[Change]:
        """Return the changes that are done; deletions are judged from the leaves up."""
        known = self._known([change.path for change in self._found if change.new is None])
        left: set[bytes] = set()
        for change in reversed(self._found):
            if self._stays(change, known):
                left.add(change.path)
        return self._without_blocked([change for change in self._found if change.path not in left])

    def _stays(self, change: Change, known: set[bytes]) -> bool:
        if barrier := self._barrier(change.path):
            self.protected.append(Kept(change.path, f"is {barrier.path_class} ({barrier.reason}) here"))
            return True
        if change.new is None and self._wanted.unknown == "keep" and change.path not in known:
            self.kept.append(Kept(change.path, "unknown: it is in no earlier snapshot"))
            self._hold(change.path, f"holds {shown(change.path)!r}, which is kept")
            return True
        if why := self._held.get(change.path):
            if change.new is None:
                self.kept.append(Kept(change.path, why))
                return True
            if change.new.type != "d":
                self.refused.append(Kept(change.path, why))
                return True
        return False

    def _barrier(self, path: bytes) -> Omission | None:
        """Return the omission at a path or above it: nothing may be written there."""
        while path:
            if path in self._omitted:
                return self._omitted[path]
            path = parent(path)
        return None

    def _hold(self, path: bytes, why: str) -> None:
        while path := parent(path):
            self._held.setdefault(path, why)

    def _without_blocked(self, done: list[Change]) -> list[Change]:
        """Leave out what would have to lie below a path that stays what it is."""
        blocked = [each.path for each in (*self.refused, *self.protected)]
        for change in done:
            if is_within(change.path, blocked):
                self.refused.append(Kept(change.path, "lies below a path that stays as it is"))
        gone = {each.path for each in self.refused}
        return [change for change in done if change.path not in gone]

    def _known(self, paths: Sequence[bytes]) -> set[bytes]:
        """Return which of some paths occur in earlier snapshots of the place."""
        if self._wanted.unknown == "remove":
            return set(paths)
        return known_paths(self._trees, self._wanted.known_trees, paths)


def known_paths(trees: Trees, known_trees: Iterable[str], paths: Sequence[bytes]) -> set[bytes]:
    """Return which of some paths occur in any of some trees; directories that the trees share are read once."""
    found: set[bytes] = set()
    _descend(trees, set(known_trees), b"", {path: parts(path) for path in paths}, found)
    return found


def _descend(
    trees: Trees, candidates: set[str], directory: bytes, paths: dict[bytes, tuple[bytes, ...]], found: set[bytes]
) -> None:
    by_name: dict[bytes, dict[bytes, tuple[bytes, ...]]] = {}
    for path, names in paths.items():
        by_name.setdefault(names[0], {})[path] = names[1:]
    below: dict[bytes, set[str]] = {name: set() for name in by_name}
    for tree in candidates:
        for entry in trees.entries(tree):
            if entry.name in by_name:
                found.update(path for path, rest in by_name[entry.name].items() if not rest)
                if entry.type == "d":
                    below[entry.name].add(entry.id)
    for name, deeper in by_name.items():
        rest = {path: names for path, names in deeper.items() if names}
        if rest and below[name]:
            _descend(trees, below[name], directory + b"/" + name, rest, found)


def _is_wanted(change: Change, paths: tuple[bytes, ...]) -> bool:
    """Tell whether a change is in the chosen paths, or makes a directory that one of them needs."""
    if not paths or is_within(change.path, paths):
        return True
    is_directory = change.new is not None and change.new.type == "d" and (not change.old or change.old.type != "d")
    return is_directory and any(path.startswith(change.path + b"/") for path in paths)


def _refuse_unsafe(found: Sequence[Change], omissions: Sequence[Omission]) -> None:
    unsafe = [omission for omission in omissions if omission.reason in _UNSAFE]
    roots = [omission.path for omission in unsafe]
    hit = [change.path for change in found if b"" in roots or is_within(change.path, roots)]
    if hit:
        raise Unavailable(
            "restore.unsafe_path",
            f"{len(hit)} paths of the plan hold something that could not be stored, {shown(hit[0])!r} first",
            remedy="Move these files aside, or name other paths; nothing was changed.",
            details={"paths": [shown(path) for path in hit[:20]], "reasons": sorted({each.reason for each in unsafe})},
        )


def _facts(entry: TreeEntry | None) -> list[Any] | None:
    return None if entry is None else [entry.type, entry.mode, entry.id]
