"""The one grammar for naming a tree: a place, a snapshot, a label, a tree, or a side of a receipt or an operation.

`~n` after any of them means the n-th first parent of its snapshot.
"""

import re
from dataclasses import dataclass
from typing import Final

from agentstead.identity import WorkspaceFacts
from agentstead.kit import Home
from agentstead.state import Invalid, NotFound, Reading, is_id
from agentstead.workspace import forks, labels, operations, promotions, receipts, snapshots
from agentstead.workspace.boundaries import check_boundary
from agentstead.workspace.capturing import look
from agentstead.workspace.omissions import Omission
from agentstead.workspace.places import live_place
from agentstead.workspace.snapshots import LIVE

_REF: Final = re.compile(r"(?P<name>[^~]+?)(?:~(?P<back>\d{1,4}))?")
_TREE: Final = re.compile(r"tree:([0-9a-f]{64})")
_MOST_BACK: Final = 1000
REMEDY: Final = (
    "Use live, a fork id (frk_), a snapshot id (snp_), @label, tree:<64 hex>, rcp_..:in|out, prm_..:before|after or "
    "opr_..:before|after; workspace_view (view=timeline) lists snapshots."
)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a reference means now: a tree, and the snapshot, fork or place that it is of (empty where none)."""

    ref: str
    tree: str
    snapshot_id: str = ""
    place: str = ""
    omissions: tuple[Omission, ...] = ()


async def resolve(home: Home, facts: WorkspaceFacts, ref: str) -> Resolved:
    """Return the tree that a reference names; a place is walked, and recorded nowhere.

    Raises NotFound `ref.not_found`, Invalid `ref.foreign` for what belongs to another workspace.
    """
    match = _REF.fullmatch(ref.strip())
    if match is None or int(match["back"] or 0) > _MOST_BACK:
        raise _not_found(ref)
    back = int(match["back"] or 0)
    walked = await _walked(home, facts, match["name"])
    found = walked if walked is not None else await home.state.read(_stored, facts, match["name"])
    return found if back == 0 else await home.state.read(_ancestor, facts, found, back)


async def _walked(home: Home, facts: WorkspaceFacts, name: str) -> Resolved | None:
    """Walk the place that a name means; None for a name of anything else."""
    if name == LIVE:
        await check_boundary(home, facts)
        place = live_place(facts)
    elif is_id(name, "frk_"):
        fork = await home.state.read(forks.the_fork, name)
        refuse_foreign(facts, fork.workspace_id, name)
        if fork.state in ("closed", "failed", "gone"):
            return await home.state.read(_stored, facts, fork.head_snapshot)
        place = fork.place
    else:
        return None
    walked = await look(home, place)
    return Resolved(name, walked.tree, place=place.name, omissions=walked.omissions)


def _stored(reading: Reading, facts: WorkspaceFacts, name: str) -> Resolved:
    if match := _TREE.fullmatch(name):
        return Resolved(name, match[1])
    head, _, side = name.partition(":")
    if name.startswith("@"):
        labelled = labels.find(reading, facts.id, name[1:])
        head = labelled.snapshot_id if labelled else ""
    if is_id(head, "snp_") and (snapshot := snapshots.find(reading, head)) and not side:
        refuse_foreign(facts, snapshot.workspace_id, name)
        return Resolved(name, snapshot.tree, snapshot.id, snapshot.place)
    tree = _side(reading, facts, head, side)
    if not tree:
        raise _not_found(name)
    return Resolved(name, tree)


def _side(reading: Reading, facts: WorkspaceFacts, head: str, side: str) -> str:
    """Return the tree on one side of a receipt, a promotion or an operation; empty for what is none."""
    if is_id(head, "rcp_") and (receipt := receipts.find(reading, head)):
        refuse_foreign(facts, receipt.workspace_id, head)
        return {"in": receipt.tree_in, "out": receipt.tree_out}.get(side, "")
    if is_id(head, "prm_") and (promotion := promotions.find(reading, head)):
        refuse_foreign(facts, promotion.workspace_id, head)
        return {"before": promotion.live_tree, "after": promotion.result_tree}.get(side, "")
    if is_id(head, "opr_") and (operation := operations.find(reading, head)):
        refuse_foreign(facts, operation.workspace_id, head)
        after = str(operation.result.get("tree", ""))
        return {"before": operation.before_tree, "after": after}.get(side, "")
    return ""


def _ancestor(reading: Reading, facts: WorkspaceFacts, found: Resolved, back: int) -> Resolved:
    at = found.snapshot_id
    if not at and found.place:
        # What a place holds now comes from its last snapshot, or is that snapshot.
        last = snapshots.latest(reading, facts.id, found.place)
        if last is not None and last.tree != found.tree:
            back -= 1
        at = last.id if last is not None else ""
    for _ in range(back):
        at = next((parent for parent, _ in snapshots.parents(reading, at)), "")
    snapshot = snapshots.find(reading, at)
    if snapshot is None:
        raise _not_found(f"{found.ref}~{back}")
    return Resolved(found.ref, snapshot.tree, snapshot.id, snapshot.place)


def refuse_foreign(facts: WorkspaceFacts, workspace_id: str, ref: str) -> None:
    """Raise Invalid `ref.foreign` for what belongs to another workspace."""
    if workspace_id != facts.id:
        raise Invalid(
            "ref.foreign",
            f"{ref} belongs to another workspace ({workspace_id}) than {facts.name} at {facts.root}",
            remedy="Name that workspace in the call, or use a reference of this one.",
            details={"ref": ref, "workspace_id": workspace_id, "asked_in": facts.id},
        )


def _not_found(ref: str) -> NotFound:
    return NotFound("ref.not_found", f"{ref[:80]!r} names no tree here", remedy=REMEDY, details={"ref": ref[:80]})
