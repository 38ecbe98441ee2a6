"""Ending an operation on a place: the tree afterwards is recorded in the same transaction as how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentstead.blobs import TreeEntry
from agentstead.kit import Home
from agentstead.state import Reading, Tx
from agentstead.workspace import applying, forks, operations, promotions, snapshots
from agentstead.workspace.apply import Outcome
from agentstead.workspace.applying import Applied
from agentstead.workspace.capturing import Captured, capture
from agentstead.workspace.displaced import (
    Displaced,
    discard_stage,
    discard_trash,
    find_displaced,
    record_displaced,
)
from agentstead.workspace.operations import Operation, OperationKind
from agentstead.workspace.paths import encoded, shown
from agentstead.workspace.places import Place
from agentstead.workspace.snapshots import EdgeKind, SnapshotReason, Why

ALL_OR_NOTHING: Final[frozenset[OperationKind]] = frozenset({"promote", "write"})
_PATHS_TOLD: Final = 200
_EDGES: Final[Mapping[OperationKind, EdgeKind]] = {
    "promote": "promote",
    "restore": "restore",
    "undo": "undo",
    "write": "write",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """How an operation ended: the snapshot taken afterwards, what was contested, and what others wrote meanwhile."""

    operation: Operation
    after: Captured
    applied: Applied


async def carry_out(home: Home, place: Place, operation: Operation) -> Ended:
    """Stage, apply and end an operation that has just begun; the caller holds the place's lock."""
    steps = await applying.stage(home, place, operation)
    if operation.kind == "promote":
        await home.state.write(_promotion_event, operation.id, "staged")
    all_or_nothing = operation.kind in ALL_OR_NOTHING
    applied = await applying.forward(home, place, operation, steps, all_or_nothing=all_or_nothing)
    return await _end(home, place, operation, applied, recovered=False)


async def recover_place(home: Home, place: Place) -> list[Operation]:
    """End what a dead process left unfinished on a place; the caller holds its lock."""
    found: list[Operation] = []
    for operation in await home.state.read(operations.unfinished, place.workspace_id, place.name):
        if operation.state == "running":
            operation = await home.state.write(operations.move, operation.id, "lost")
        all_or_nothing = operation.kind in ALL_OR_NOTHING
        applied = await applying.recover(home, place, operation, all_or_nothing=all_or_nothing)
        if applied is None:
            await home.blobs.run(lambda _store, each: discard_stage(place.base, each.id), operation)
            applied = Applied((), (), undone=True)
        found.append((await _end(home, place, operation, applied, recovered=True)).operation)
    return found


async def _end(home: Home, place: Place, operation: Operation, applied: Applied, *, recovered: bool) -> Ended:
    steps = [each.step for each in await home.state.read(operations.steps_of, operation.id)]
    kept = await home.blobs.run(find_displaced, place.base, operation.id, steps)
    also_from = await home.state.read(_source_heads, operation)
    reason: SnapshotReason = "write" if operation.kind == "write" else "after"
    edge: EdgeKind = "edit" if applied.undone else _EDGES[operation.kind]
    why = Why(reason, edge, operation.id, also_from=() if applied.undone else also_from)
    after = await capture(home, place, why)
    ended = await home.state.write(_record_end, place, operation, applied, after, kept, recovered)
    if not place.is_live:
        await home.blobs.run(lambda _store: discard_trash(place.base, operation.id))
    return Ended(ended, after, applied)


def _record_end(
    tx: Tx,
    place: Place,
    operation: Operation,
    applied: Applied,
    after: Captured,
    kept: list[Displaced],
    recovered: bool,
) -> Operation:
    result = {
        "snapshot_id": after.snapshot.id,
        "tree": after.snapshot.tree,
        "contested": [contested_json(outcome) for outcome in applied.contested],
        "concurrent": [path_json(path) for path in applied.moved_on],
    }
    if place.is_live:
        record_displaced(tx, operation.id, place.workspace_id, kept)
        if not applied.undone:
            _tell_paths(tx, operation)
    else:
        forks.advance(tx, place.name, after.snapshot.id, after.walked.size_bytes)
    if operation.kind == "promote":
        _end_promotion(tx, operation, applied)
    if applied.undone:
        error = "every step was taken back" if applied.contested or recovered else "nothing had been done yet"
        return operations.move(tx, operation.id, "rolled_back" if recovered else "error", result=result, error=error)
    return operations.move(tx, operation.id, "forward" if recovered else "done", result=result)


def _tell_paths(tx: Tx, operation: Operation) -> None:
    """Tell those who follow the journal which paths of a live tree were written or deleted."""
    done = [each.step.path for each in operations.steps_of(tx, operation.id) if each.phase == "verified"]
    paths = list(dict.fromkeys(shown(path) for path in done))
    body = {"paths": paths[:_PATHS_TOLD], "more": max(0, len(paths) - _PATHS_TOLD)}
    tx.journal("workspace.paths.changed", subject=operation.id, workspace=operation.workspace_id, body=body)


def _end_promotion(tx: Tx, operation: Operation, applied: Applied) -> None:
    found = promotions.of_operation(tx, operation.id)
    if found is None:
        return
    fork = forks.find(tx, found.source_ref)
    if applied.undone:
        promotions.move(tx, found.id, "failed")
        promotions.move(tx, found.id, "reverted")
    else:
        if found.state == "staging":
            promotions.move(tx, found.id, "staged")
        promotions.move(tx, found.id, "swapped")
        promotions.move(tx, found.id, "confirmed", concurrent=[path_json(path) for path in applied.moved_on])
    if fork is not None and fork.state == "promoting":
        forks.move(tx, fork.id, "kept" if applied.undone or operation.result.get("then") == "keep" else "promoted")


def _promotion_event(tx: Tx, operation_id: str, event: str) -> None:
    found = promotions.of_operation(tx, operation_id)
    if found is not None:
        promotions.move(tx, found.id, event)


def _source_heads(reading: Reading, operation: Operation) -> tuple[str, ...]:
    """Return the snapshots besides the place's own last one that the tree afterwards comes from."""
    if operation.kind != "promote":
        return ()
    found = promotions.of_operation(reading, operation.id)
    fork = forks.find(reading, found.source_ref) if found is not None else None
    if fork is not None:
        return (fork.head_snapshot,)
    source = snapshots.find(reading, found.source_ref) if found is not None else None
    return (source.id,) if source is not None else ()


def contested_json(outcome: Outcome) -> dict[str, Any]:
    """Return the published form of a contested path: what was expected, what was to come, what stands there."""
    step = outcome.step
    ids = {"expected": _id(step.old), "planned": _id(step.new), "found": _id(outcome.found)}
    return {**path_json(step.path), **ids}


def path_json(path: bytes) -> dict[str, Any]:
    """Return a path as answers carry it."""
    exact = encoded(path)
    return {"path": shown(path)} | ({"path_b64": exact} if exact else {})


def _id(entry: TreeEntry | None) -> str | None:
    return None if entry is None else f"{entry.type}:{entry.mode:o}:{entry.id}"
