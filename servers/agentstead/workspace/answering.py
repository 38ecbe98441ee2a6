"""Answers of what changes a tree or runs a check, made from rows, so that a repeated call gets them too."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Final

from agentstead.kit import Call, Home
from agentstead.workspace import promotions, receipts, snapshots
from agentstead.workspace.acting import kept_plan
from agentstead.workspace.capturing import Taken
from agentstead.workspace.diffing import changed_counts
from agentstead.workspace.omissions import decode_omissions
from agentstead.workspace.operations import Operation
from agentstead.workspace.promoting import Proposal
from agentstead.workspace.receipts import OPEN, Receipt
from agentstead.workspace.restoring import Planned
from agentstead.workspace.results import ChecksRun, PromotionPlanned, SnapshotTaken, TreeRestored
from agentstead.workspace.shapes import omissions_object, receipt_object

_TAIL_BYTES: Final = 2_000
_TICK_S: Final = 0.05


async def snapshot_answer(call: Call, taken: Taken, *, notes: Sequence[str]) -> SnapshotTaken:
    """Return a snapshot with what changed since the one before it."""
    snapshot = await call.read(snapshots.find, taken.snapshot_id)
    assert snapshot is not None, taken.snapshot_id
    from_ids = await call.read(snapshots.parents, snapshot.id)
    parent = await call.read(snapshots.find, from_ids[0][0]) if from_ids and taken.created else None
    before = parent.tree if parent is not None else "" if taken.created else snapshot.tree
    changed = await call.home.blobs.run(changed_counts, before, snapshot.tree) if before else {}
    omissions = decode_omissions(await call.home.blobs.get("blob", snapshot.omissions))
    return SnapshotTaken(
        snapshot_id=snapshot.id,
        tree=snapshot.tree,
        created=taken.created,
        parent=parent.id if parent is not None else None,
        completeness=snapshot.completeness,
        omissions=omissions_object(omissions),
        changed=changed,
        notes=notes,
    )


def proposal_answer(proposal: Proposal) -> PromotionPlanned:
    """Return what a promotion would do."""
    return PromotionPlanned(
        state="planned",
        plan=proposal.plan.as_json(),
        plan_digest=proposal.digest,
        verdict=proposal.verdict.as_json(),
    )


async def promotion_answer(call: Call, operation: Operation) -> PromotionPlanned:
    """Return what a promotion did."""
    promotion = await call.read(promotions.of_operation, operation.id)
    assert promotion is not None, operation.id
    plan, digest = await kept_plan(call.home, operation)
    return PromotionPlanned(
        promotion_id=promotion.id,
        state=promotion.state,
        plan=plan,
        plan_digest=digest,
        verdict=json.loads(promotion.verdict),
        concurrent=operation.result.get("concurrent", []),
        operation_id=operation.id,
    )


def restore_plan_answer(planned: Planned) -> TreeRestored:
    """Return what a restore would do."""
    return TreeRestored(state="planned", plan=planned.plan.as_json(), plan_digest=planned.digest)


async def restore_answer(call: Call, operation: Operation) -> TreeRestored:
    """Return what a restore did."""
    plan, digest = await kept_plan(call.home, operation)
    return TreeRestored(
        operation_id=operation.id,
        state=operation.state,
        plan=plan,
        plan_digest=digest,
        safety_snapshot=operation.result.get("safety_snapshot"),
        contested=operation.result.get("contested", []),
    )


async def wait_for(home: Home, ids: Sequence[str], *, wait_s: float) -> list[Receipt]:
    """Return receipts once their runs have ended, or as they are when the time is up."""
    deadline = time.monotonic() + wait_s
    while True:
        found = [await home.state.read(receipts.the_receipt, receipt_id) for receipt_id in ids]
        if all(receipt.state not in OPEN for receipt in found) or time.monotonic() >= deadline:
            return found
        await asyncio.sleep(_TICK_S)


async def checks_answer(home: Home, reused: Sequence[Receipt], ran: Sequence[Receipt]) -> ChecksRun:
    """Return what some runs gave, with the end of what a failed one printed."""
    rows = [receipt_object(receipt, reused=True) for receipt in reused]
    for receipt in ran:
        row = receipt_object(receipt)
        if receipt.state == "recorded" and receipt.status != "pass":
            row["tail"] = await _tail(home, receipt)
        rows.append(row)
    everything = [*reused, *ran]
    by_check: dict[str, set[str]] = {}
    for receipt in everything:
        by_check.setdefault(receipt.check_name or "command", set()).add(receipt.status)
    flaky = sorted(name for name, statuses in by_check.items() if len(statuses) > 1 and "pass" in statuses)
    return ChecksRun(outcome=_outcome(everything), receipts=rows, flaky=flaky)


def _outcome(found: Sequence[Receipt]) -> str:
    if any(receipt.state in OPEN for receipt in found):
        return "running"
    return "pass" if all(receipt.status == "pass" for receipt in found) else "fail"


async def _tail(home: Home, receipt: Receipt) -> str:
    """Return the end of what a run printed, its errors last."""
    streams = [await home.blobs.get("blob", blob) for blob in (receipt.stdout, receipt.stderr)]
    text = b"\n".join(stream[-_TAIL_BYTES:] for stream in streams if stream)
    return text[-_TAIL_BYTES:].decode("utf-8", "replace")
