"""What a call means: the snapshot that forks begin from, the tree that a check runs on, the sides of a comparison."""

from collections.abc import Sequence

from agentstead.blobs import EMPTY_TREE
from agentstead.identity import WorkspaceFacts
from agentstead.kit import Call
from agentstead.state import Invalid, NotFound, is_id
from agentstead.workspace import checks, forks, operations, receipts, snapshots
from agentstead.workspace.boundaries import check_boundary
from agentstead.workspace.capturing import capture
from agentstead.workspace.checks import Check, CheckCommand, check_of
from agentstead.workspace.forking import capture_fork
from agentstead.workspace.paths import given
from agentstead.workspace.places import Place, live_place
from agentstead.workspace.planning import Unknown
from agentstead.workspace.receipts import Receipt
from agentstead.workspace.refs import resolve
from agentstead.workspace.restoring import Target, undo_target
from agentstead.workspace.snapshots import LIVE, Snapshot, Why
from agentstead.workspace.surroundings import environment_digest


async def base_snapshot(call: Call, facts: WorkspaceFacts, ref: str) -> Snapshot:
    """Return the snapshot that forks are made from; a place is recorded as it is now."""
    found = await _recorded(call, facts, ref)
    if found is not None:
        return found
    resolved = await resolve(call.home, facts, ref)
    snapshot = await call.read(snapshots.of_tree, facts.id, resolved.snapshot_id, resolved.tree)
    if snapshot is None:
        raise NotFound(
            "ref.not_found",
            f"no snapshot of this workspace holds the tree of {ref[:80]!r}",
            remedy="Fork from live, a fork, a snapshot or a label.",
        )
    return snapshot


async def pinned_tree(call: Call, facts: WorkspaceFacts, ref: str) -> str:
    """Return the exact tree that a check runs on; a place is recorded as it is now, and may move on meanwhile."""
    found = await _recorded(call, facts, ref)
    return found.tree if found is not None else (await resolve(call.home, facts, ref)).tree


async def sides(call: Call, facts: WorkspaceFacts, old: str | None, new: str) -> tuple[str, str]:
    """Return the two trees of a comparison; without an old side, what the new one came from."""
    after = await resolve(call.home, facts, new)
    if old is not None:
        return (await resolve(call.home, facts, old)).tree, after.tree
    fork = await call.read(forks.find, new) if is_id(new, "frk_") else None
    if fork is not None:
        before = await call.read(snapshots.find, fork.base_snapshot)
    else:
        before = await call.read(snapshots.latest, facts.id, LIVE)
    return before.tree if before is not None else EMPTY_TREE, after.tree


async def chosen_checks(
    call: Call, facts: WorkspaceFacts, names: Sequence[str], command: CheckCommand | None
) -> list[Check]:
    """Return the checks that a call asks for: saved ones by name, or one command."""
    if bool(names) == (command is not None):
        raise Invalid(
            "check.invalid", "give either checks or a command", remedy="Name saved checks, or pass command.argv."
        )
    if command is not None:
        return [check_of(command)]
    return [await call.read(checks.the_check, facts.id, name) for name in dict.fromkeys(names)]


async def reusable_receipts(call: Call, facts: WorkspaceFacts, chosen: Sequence[Check], tree: str) -> list[Receipt]:
    """Return the recorded runs of the same checks on the same tree in the same environment."""
    found: list[Receipt] = []
    for check in chosen:
        digest = await environment_digest(call.home, check, call.environ)
        receipt = await call.read(receipts.reusable, facts.id, tree, check.digest, digest)
        found += [receipt] if receipt is not None and receipt.check_name == check.name else []
    return found


async def restore_target(
    call: Call,
    facts: WorkspaceFacts,
    place: Place,
    *,
    to: str | None,
    undo: str | None,
    paths: Sequence[str],
    unknown: Unknown,
) -> Target:
    """Return what a restore goes back to: a version, or the state before an operation."""
    if (to is None) == (undo is None):
        raise Invalid("ref.not_found", "give either to or undo", remedy="Name a version, or an operation to undo.")
    if undo is None:
        resolved = await resolve(call.home, facts, to or "")
        return Target(resolved.tree, tuple(given(path) for path in paths), unknown)
    operation = await call.read(operations.find, undo)
    if operation is None or operation.workspace_id != facts.id or operation.place != place.name:
        raise NotFound(
            "operation.not_found",
            f"{undo[:40]} is no operation on {place.name} of {facts.name}",
            remedy="workspace_view (view=operation) lists them, with their places.",
        )
    return await undo_target(call.home, place, operation)


async def _recorded(call: Call, facts: WorkspaceFacts, ref: str) -> Snapshot | None:
    """Record what a place holds now; None where the reference names something else than a living place."""
    if ref == LIVE:
        await check_boundary(call.home, facts)
        return (await capture(call.home, live_place(facts), Why("before"))).snapshot
    fork = await call.read(forks.find, ref) if is_id(ref, "frk_") else None
    if fork is None or fork.workspace_id != facts.id or fork.state not in forks.LIVING:
        return None
    return (await capture_fork(call.home, fork)).snapshot
