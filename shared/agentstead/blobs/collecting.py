"""Collection: what no root reaches is marked dead, and its bytes go only after a grace period.

A collector never removes while a writer is at work, nor when one began since it read the roots.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from agentstead.blobs.objects import ObjectKey
from agentstead.blobs.store import BlobStore
from agentstead.state import CRASH_POINTS, crash_point

MIN_GRACE_US: Final = 3_600 * 10**6
DEFAULT_GRACE_US: Final = 24 * MIN_GRACE_US
_SLICE: Final = 512

_BEFORE_REMOVE, _AFTER_REMOVE = CRASH_POINTS.declare("blobs.remove")


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection found and did; with `dry_run` nothing was removed or marked.

    `interrupted` says that a writer began meanwhile, so that the rest waits for the next collection.
    """

    stored: int
    reached: int
    dead: int
    removed: int
    removed_bytes: int
    missing: tuple[ObjectKey, ...]
    interrupted: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Marked:
    """The outcome of a marking, and the moment of the store that it holds for."""

    sizes: dict[ObjectKey, int]
    reached: frozenset[ObjectKey]
    missing: tuple[ObjectKey, ...]
    last_held_ns: int


def mark(store: BlobStore, roots: Iterable[ObjectKey], *, last_held_ns: int) -> Marked:
    """Walk everything that the roots and the pins reach.

    `last_held_ns` must have been read before the roots were, so that a writer that came between is noticed.
    """
    sizes = dict(store.layout.stored())
    pins = store.index.pinned(now_us=store.clock.now_us())
    reached, missing = store.reach(chain(roots, pins))
    return Marked(sizes, frozenset(reached), tuple(sorted(missing)), last_held_ns)


def sweep(store: BlobStore, marked: Marked, *, grace_us: int, dry_run: bool) -> Collected:
    """Mark what was not reached as dead, and remove what has been dead for longer than the grace period."""
    if grace_us < MIN_GRACE_US:
        raise ValueError(f"a grace of {grace_us} us is below one hour")
    now = store.clock.now_us()
    unreached = marked.sizes.keys() - marked.reached
    if dry_run:
        dead = [death for death in store.index.deaths() if death.key in unreached]
    else:
        reached_again = [death.key for death in store.index.deaths() if death.key not in unreached]
        dead = store.index.bury(unreached, since_us=now, reached=reached_again)
    # Below a directory that cannot be read nothing is known to be unreached.
    blind = any(key.kind == "tree" for key in marked.missing)
    due = [] if blind else sorted(death.key for death in dead if death.since_us < now - grace_us)
    removed = due if dry_run else _remove(store, marked, due)
    return Collected(
        stored=len(marked.sizes),
        reached=len(marked.sizes) - len(unreached),
        dead=len(unreached),
        removed=len(removed),
        removed_bytes=sum(marked.sizes[key] for key in removed),
        missing=marked.missing,
        interrupted=len(removed) < len(due),
        dry_run=dry_run,
    )


def _remove(store: BlobStore, marked: Marked, due: list[ObjectKey]) -> list[ObjectKey]:
    removed: list[ObjectKey] = []
    for start in range(0, len(due), _SLICE):
        keys = due[start : start + _SLICE]
        with store.layout.alone(wait=True):
            if store.layout.last_held_ns() != marked.last_held_ns:
                break
            # The generation moves first: a cache must not name bytes that a killed collector had removed already.
            store.index.forget(keys)
            for key in keys:
                crash_point(_BEFORE_REMOVE)
                store.layout.path(key).unlink(missing_ok=True)
                crash_point(_AFTER_REMOVE)
            removed += keys
    return removed
