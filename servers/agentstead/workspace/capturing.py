"""Taking the tree of a place: a walk in a thread, everything durable, then the row, with the collector kept away."""

import errno
import os
from dataclasses import dataclass
from typing import Final

from agentstead.blobs import BlobStore
from agentstead.kit import Home
from agentstead.state import Tx, Unavailable
from agentstead.workspace import labels, snapshots
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.omissions import encode_omissions
from agentstead.workspace.places import Place, StatCaches, stat_caches
from agentstead.workspace.snapshots import Snapshot, Why, record
from agentstead.workspace.statcache import StatCache
from agentstead.workspace.walk import Walked, walk

KEYED_DIGESTS: Final = "workspace-digests"


@dataclass(frozen=True, slots=True)
class Captured:
    """What a place holds now: the walk, the snapshot that says so, and whether that is new."""

    walked: Walked
    snapshot: Snapshot
    created: bool


async def look(home: Home, place: Place, *, full: bool = False) -> Walked:
    """Walk a place and store its content without recording a snapshot; `full` reads every file again."""
    return await home.blobs.run(_walk, place, stat_caches(home), home.key(KEYED_DIGESTS), full)


async def capture(home: Home, place: Place, why: Why, *, full: bool = False) -> Captured:
    """Walk a place and record its snapshot; where nothing changed, the last one of the place is returned."""
    async with home.blobs.holding():
        walked = await look(home, place, full=full)
        return await record_walked(home, place, walked, why)


async def record_walked(home: Home, place: Place, walked: Walked, why: Why) -> Captured:
    """Record a walk as a snapshot; the caller has kept the collector away since before the walk."""
    omissions = await home.blobs.put(encode_omissions(walked.omissions))
    found = await home.state.write(record, place.workspace_id, place.name, walked, omissions, why)
    return Captured(walked, found.snapshot, found.created)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a call that took a snapshot is answered with, also when it is repeated under its key."""

    snapshot_id: str
    created: bool


def keep_taken(tx: Tx, snapshot_id: str, created: bool, *, label: str | None, pin: bool) -> Taken:
    """Label the snapshot that was just taken, if asked to, and keep which one it was for a repeated call."""
    snapshot = snapshots.find(tx, snapshot_id)
    assert snapshot is not None, snapshot_id
    if label is not None or pin:
        name = label or f"pinned/{snapshot_id[4:].lower()}"
        labels.put(tx, snapshot.workspace_id, name, snapshot_id, pinned=pin)
    return Taken(snapshot_id, created)


def _walk(store: BlobStore, place: Place, caches: StatCaches, secret_key: bytes, full: bool) -> Walked:
    cache = StatCache() if full else caches.get(place)
    try:
        with opened_root(place.root) as root:
            walked = walk(store, root, cache=cache, secret_key=secret_key)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            raise
        raise Unavailable(
            "workspace.gone",
            f"{place.root} cannot be read: {os.strerror(error.errno)}",
            remedy="Make the directory readable, or name another workspace.",
        ) from None
    caches.keep(place, walked.cache)
    return walked
