"""Restoring a place to a tree, and undoing an operation: a safety snapshot first, then a journaled apply.

A file that is in no snapshot is neither deleted nor overwritten; an edit made meanwhile stays and is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio

from agentstead.blobs import TreeEntry
from agentstead.kit import Home
from agentstead.state import Conflict, NotFound
from agentstead.workspace import operations, snapshots
from agentstead.workspace.acting import cas_of, keep_plan, plan_changed
from agentstead.workspace.capturing import Captured, capture, look
from agentstead.workspace.contents import Trees
from agentstead.workspace.finishing import carry_out
from agentstead.workspace.omissions import Omission
from agentstead.workspace.operations import Begin, Operation, OperationKind
from agentstead.workspace.paths import shown
from agentstead.workspace.places import Place
from agentstead.workspace.planning import Plan, Unknown, Wanted, make_plan
from agentstead.workspace.snapshots import Why
from agentstead.workspace.standing import same

_UNDOABLE: Final = frozenset({"restore", "promote", "write", "undo"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a place is to become: a tree in some paths (none: all), by a restore or by the undo of an operation."""

    tree: str
    paths: tuple[bytes, ...] = ()
    unknown: Unknown = "keep"
    undoes: Operation | None = None

    @property
    def kind(self) -> OperationKind:
        """Return the kind of operation that this is."""
        return "restore" if self.undoes is None else "undo"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and the digest that confirms it."""

    plan: Plan
    digest: str


async def plan_restore(home: Home, place: Place, target: Target) -> Planned:
    """Return what a restore would do now; nothing is recorded."""
    walked = await look(home, place)
    known = await home.state.read(snapshots.trees_before, place.workspace_id, place.name, _AFTER_ALL)
    return await _plan(home, place, target, walked.tree, walked.omissions, known)


async def restore(home: Home, place: Place, target: Target, *, operation_id: str, digest: str) -> Operation:
    """Carry out the plan of this digest; the caller holds the place's lock.

    Raises Conflict `workspace.plan_changed`, Unavailable `restore.unsafe_path`.
    """
    safety = await capture(home, place, Why("safety", operation_id=operation_id))
    planned = await _plan_from(home, place, target, safety)
    if planned.digest != digest:
        raise plan_changed(digest, planned.digest)
    begin = Begin(
        operation_id,
        target.kind,
        place.workspace_id,
        place.name,
        planned.plan.live_tree,
        planned.plan.result_tree,
        await cas_of(home, place),
        options={"safety_snapshot": safety.snapshot.id},
        plan=await keep_plan(home, planned.plan, planned.digest),
        inverse_of=target.undoes.id if target.undoes else "",
    )
    with anyio.CancelScope(shield=True):
        operation = await home.state.write(operations.begin, begin, planned.plan.steps)
        ended = await carry_out(home, place, operation)
    return ended.operation


async def undo_target(home: Home, place: Place, operation: Operation) -> Target:
    """Return what undoing an operation restores: its paths, as they were before it.

    Raises NotFound `operation.not_undoable`, and Conflict `workspace.conflict` where a path was changed since.
    """
    if operation.kind not in _UNDOABLE or operation.state != "done":
        raise NotFound(
            "operation.not_undoable",
            f"operation {operation.id} ({operation.kind}, {operation.state}) changed no tree that could be put back",
            remedy="Use tree_restore with to=<snapshot> instead.",
        )
    steps = await home.state.read(operations.steps_of, operation.id)
    done = {each.step.path: each.step.new for each in steps if each.phase == "verified"}
    walked = await look(home, place)
    changed = await home.blobs.run(lambda store: _changed_since(Trees(store), walked.tree, done))
    if changed:
        raise Conflict(
            "workspace.conflict",
            f"{len(changed)} paths were changed since operation {operation.id}, {shown(changed[0])!r} first",
            remedy="Undo the later changes first, or restore single paths with tree_restore(to, paths).",
            details={"paths": [shown(path) for path in changed[:20]]},
        )
    return Target(operation.before_tree, tuple(done), "remove", operation)


# Sorts behind every id: all snapshots of a place come before it.
_AFTER_ALL: Final = "~"


async def _plan_from(home: Home, place: Place, target: Target, safety: Captured) -> Planned:
    """Plan against the safety snapshot; it counts as earlier only where it had been taken before."""
    limit = safety.snapshot.id if safety.created else _AFTER_ALL
    known = await home.state.read(snapshots.trees_before, place.workspace_id, place.name, limit)
    return await _plan(home, place, target, safety.walked.tree, safety.walked.omissions, known)


async def _plan(
    home: Home, place: Place, target: Target, tree: str, omissions: Sequence[Omission], known: Sequence[str]
) -> Planned:
    wanted = Wanted(target.tree, target.paths, target.unknown, tuple(known))
    plan = await home.blobs.run(make_plan, tree, omissions, wanted)
    about: dict[str, Any] = {
        "workspace": place.workspace_id,
        "place": place.name,
        "kind": target.kind,
        "target": target.tree,
        "undoes": target.undoes.id if target.undoes else "",
    }
    return Planned(plan, plan.digest(**about))


def _changed_since(trees: Trees, live: str, done: Mapping[bytes, TreeEntry | None]) -> list[bytes]:
    """Return the paths whose entry is not the one that an operation left there."""
    return [path for path, entry in done.items() if not same(trees.entry(live, path), entry)]
