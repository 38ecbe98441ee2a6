"""Making, closing and sweeping forks: real copies in the home, verified by reading them back.

A fork shares nothing with the tree it came from: no name, no inode, no block that a write could reach.
"""

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from agentstead.blobs import BlobStore, sync_path
from agentstead.kit import Home
from agentstead.state import CRASH_POINTS, AgentsteadError, Conflict, Unavailable, crash_point
from agentstead.workspace import forks
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.capturing import Captured, capture
from agentstead.workspace.contents import Trees
from agentstead.workspace.finishing import recover_place
from agentstead.workspace.forks import Fork
from agentstead.workspace.materialise import materialise
from agentstead.workspace.places import locked, stat_caches
from agentstead.workspace.removing import put_away
from agentstead.workspace.snapshots import Snapshot, Why

_BEFORE_FORK, _AFTER_FORK = CRASH_POINTS.declare("workspace.fork")
TRASH: Final = "trash"


@dataclass(frozen=True, slots=True)
class Opened:
    """A fork that is open, and the tree that it holds."""

    fork: Fork
    tree: str


async def fork_many(home: Home, base: Snapshot, ids: Sequence[str]) -> list[Opened]:
    """Make the forks of some rows from one snapshot, all or none; those that are open already stay as they are.

    Raises `fork.failed` with the number of the one that failed and the cause; those made before it are removed.
    """
    opened: list[Opened] = []
    async with AsyncExitStack() as stack:
        try:
            for fork_id in ids:
                fork = await home.state.read(forks.the_fork, fork_id)
                if fork.state == "making":
                    await stack.enter_async_context(locked(home, fork.place, doing="fork_open"))
                    opened.append(await _make(home, fork, base))
                else:
                    opened.append(Opened(fork, base.tree))
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                for fork_id in ids:
                    await _abandon(home, fork_id)
            if isinstance(error, OSError | AgentsteadError):
                raise _failed(len(opened) + 1, len(ids), error) from error
            raise
    return opened


async def close_fork(home: Home, fork_id: str) -> Fork:
    """Close a fork after a last snapshot of it, and remove its directory; doing it again changes nothing."""
    fork = await home.state.read(forks.the_fork, fork_id)
    async with locked(home, fork.place, doing="fork_close"):
        await recover_place(home, fork.place)
        fork = await home.state.read(forks.the_fork, fork_id)
        if fork.state in ("open", "settled", "conflicted"):
            await capture_fork(home, fork)
            fork = await home.state.write(forks.move, fork.id, "close")
        return await _sweep(home, fork)


async def sweep_closed(home: Home, ref: str) -> None:
    """Remove the directory of a fork that was closed, where the reference names one."""
    fork = await home.state.read(forks.find, ref)
    if fork is not None and fork.state == "closed":
        await close_fork(home, fork.id)


async def capture_fork(home: Home, fork: Fork) -> Captured:
    """Record what a fork holds now; edits that other programs made in it are part of that."""
    found = await capture(home, fork.place, Why("asked"))
    if found.created:
        await home.state.write(forks.advance, fork.id, found.snapshot.id, found.walked.size_bytes)
    return found


async def sweep_forks(home: Home) -> list[str]:
    """End the forks that a dead process left half-made, close those that have expired, and remove closed ones."""
    swept: list[str] = []
    for fork in await home.state.read(forks.stale, home.clock.now_us()):
        try:
            async with locked(home, fork.place, doing="sweep", wait_s=0):
                await recover_place(home, fork.place)
                fork = await home.state.read(forks.the_fork, fork.id)
                if fork.state == "making":
                    fork = await home.state.write(forks.move, fork.id, "error")
                    await _remove(home, fork)
                elif fork.state in ("open", "settled", "conflicted"):
                    await capture_fork(home, fork)
                    fork = await home.state.write(forks.move, fork.id, "close")
                if fork.state == "closed":
                    await _sweep(home, fork)
        except Conflict:
            continue
        swept.append(fork.id)
    return swept


async def _make(home: Home, fork: Fork, base: Snapshot) -> Opened:
    crash_point(_BEFORE_FORK)
    await home.blobs.run(_write, fork, base.tree)
    crash_point(_AFTER_FORK)
    found = await capture(home, fork.place, Why("asked", "fork", also_from=(base.id,)))
    if found.snapshot.tree != base.tree:
        raise Unavailable(
            "fork.failed",
            f"the copy reads back as another tree ({found.snapshot.tree[:12]}) than it was made from",
            remedy="Another program writes into Agentstead's home, or its disk is failing: run `agentstead doctor`.",
        )
    await home.state.write(forks.advance, fork.id, found.snapshot.id, found.walked.size_bytes)
    return Opened(await home.state.write(forks.move, fork.id, "verified"), base.tree)


async def _abandon(home: Home, fork_id: str) -> None:
    fork = await home.state.read(forks.the_fork, fork_id)
    if fork.state not in ("making", "open"):
        return
    event = "error" if fork.state == "making" else "close"
    await _remove(home, await home.state.write(forks.move, fork_id, event))


async def _sweep(home: Home, fork: Fork) -> Fork:
    await _remove(home, fork)
    return await home.state.write(forks.move, fork.id, "sweep") if fork.state == "closed" else fork


async def _remove(home: Home, fork: Fork) -> None:
    stat_caches(home).drop(fork.place)
    await home.blobs.run(put_away, Path(fork.dir), home.path / TRASH)


def _write(store: BlobStore, fork: Fork, tree: str) -> None:
    directory = Path(fork.dir)
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700)
    facts = {"schema": "agentstead.fork/1", "fork_id": fork.id, "workspace_id": fork.workspace_id}
    (directory / "fork.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
    root = fork.place.root
    root.mkdir(mode=0o700)
    with opened_root(root) as descriptor:
        materialise(Trees(store), tree, descriptor)
    sync_path(directory.parent)


def _failed(number: int, of: int, cause: Exception) -> Unavailable:
    why = cause.message if isinstance(cause, AgentsteadError) else str(cause)
    return Unavailable(
        "fork.failed",
        f"fork {number} of {of} could not be made: {why}",
        remedy="Nothing of it is left; correct the cause and call again.",
        retryable=True,
        details={"failed": number, "count": of, "cause": why},
    )
