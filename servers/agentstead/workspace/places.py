"""The directories that this server works on: the live tree of a workspace, and its forks in the home.

One place at a time is changed by one operation: its lock is the system's, so a killed holder holds nothing.
"""

import fcntl
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import anyio

from agentstead.identity import Workspace, WorkspaceFacts, registry
from agentstead.kit import Home
from agentstead.state import Conflict, Reading
from agentstead.workspace.classes import OWN_DIRECTORY
from agentstead.workspace.snapshots import LIVE
from agentstead.workspace.statcache import StatCache, load_cache, save_cache

LOCK_WAIT_S: Final = 10.0
_LOCK_TICK_S: Final = 0.02
_CACHES_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class Place:
    """A directory under versions: `base` beside or inside it holds what an apply prepares and what it displaced."""

    workspace_id: str
    name: str
    root: Path
    base: Path

    @property
    def is_live(self) -> bool:
        """Tell whether this is the tree that the person works in."""
        return self.name == LIVE


def live_place(facts: WorkspaceFacts | Workspace) -> Place:
    """Return the live tree of a workspace."""
    return Place(facts.id, LIVE, facts.root, facts.root / os.fsdecode(OWN_DIRECTORY))


def fork_place(workspace_id: str, fork_id: str, directory: Path) -> Place:
    """Return the tree of a fork; `directory` is the folder that holds it."""
    return Place(workspace_id, fork_id, directory / "tree", directory)


@asynccontextmanager
async def locked(home: Home, place: Place, *, doing: str, wait_s: float = LOCK_WAIT_S) -> AsyncIterator[None]:
    """Hold a place, and every workspace whose root contains it or lies in it, while it is changed.

    Raises Conflict `workspace.busy` naming the holder where it is not free within `wait_s`.
    """
    names = await home.state.read(_overlapping, place) if place.is_live else [place.name]
    folder = home.path / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    files = [folder / f"{name}.lock" for name in sorted(names)]
    deadline = time.monotonic() + wait_s
    while (held := _take_all(files, doing)) is None:
        if time.monotonic() > deadline:
            raise _busy(files)
        await anyio.sleep(_LOCK_TICK_S)
    with held:
        yield


def _take_all(files: list[Path], doing: str) -> ExitStack | None:
    """Take every lock, or none."""
    with ExitStack() as stack:
        if all(stack.enter_context(_flock(file, doing)) for file in files):
            return stack.pop_all()
    return None


@contextmanager
def _flock(path: Path, doing: str) -> Iterator[bool]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "doing": doing}).encode(), 0)
        yield True
    finally:
        os.close(descriptor)


def _overlapping(reading: Reading, place: Place) -> list[str]:
    roots = registry.listed(reading)
    return [each.id for each in roots if _overlap(each.root, place.root)] or [place.workspace_id]


def _overlap(first: Path, second: Path) -> bool:
    return first.is_relative_to(second) or second.is_relative_to(first)


def _busy(files: list[Path]) -> Conflict:
    holders = [text for file in files if (text := _read(file))]
    return Conflict(
        "workspace.busy",
        f"another operation is changing this tree ({'; '.join(holders) or 'it has just ended'})",
        remedy="Wait for it to end, then call again.",
        retryable=True,
        details={"places": [file.stem for file in files]},
    )


def _read(path: Path) -> str:
    try:
        found = json.loads(path.read_text("utf-8"))
        return f"{found['doing']} of process {found['pid']}"
    except (OSError, ValueError, KeyError):
        return ""


class StatCaches:
    """The stat caches of one home: in memory for the places used last, and as files for the next start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[tuple[str, str], StatCache] = {}

    def get(self, place: Place) -> StatCache:
        """Return what is known of a place; an empty cache where nothing is."""
        found = self._kept.get((place.workspace_id, place.name))
        return load_cache(self._file(place)) if found is None else found

    def keep(self, place: Place, cache: StatCache) -> None:
        """Remember what the last walk saw, and write it down where it differs."""
        key = (place.workspace_id, place.name)
        known = self._kept.pop(key, None)
        self._kept[key] = cache
        while len(self._kept) > _CACHES_KEPT:
            self._kept.pop(next(iter(self._kept)))
        if known != cache:
            save_cache(cache, self._file(place))

    def drop(self, place: Place) -> None:
        """Forget a place that is gone."""
        self._kept.pop((place.workspace_id, place.name), None)
        self._file(place).unlink(missing_ok=True)

    def _file(self, place: Place) -> Path:
        return self._folder / f"{place.workspace_id}.{place.name}"


_CACHES: WeakKeyDictionary[Home, StatCaches] = WeakKeyDictionary()


def stat_caches(home: Home) -> StatCaches:
    """Return the stat caches of a home in this process."""
    return _CACHES.setdefault(home, StatCaches(home.path / "cache" / "stat"))
