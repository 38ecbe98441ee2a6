"""Rows in their published form."""

from collections.abc import Sequence
from typing import Any, Final

from agentstead.blobs import TreeEntry
from agentstead.workspace.changes import Change
from agentstead.workspace.checks import Check
from agentstead.workspace.finishing import path_json
from agentstead.workspace.forks import Fork
from agentstead.workspace.labels import Label
from agentstead.workspace.omissions import Omission, counts
from agentstead.workspace.operations import Operation
from agentstead.workspace.promotions import Promotion
from agentstead.workspace.receipts import Receipt
from agentstead.workspace.snapshots import Snapshot
from agentstead.workspace.unified import FilePatch

Object = dict[str, Any]

OMISSIONS_SHOWN: Final = 20


def snapshot_object(snapshot: Snapshot) -> Object:
    """Return a snapshot as answers carry it."""
    return {
        "snapshot_id": snapshot.id,
        "place": snapshot.place,
        "tree": snapshot.tree,
        "completeness": snapshot.completeness,
        "reason": snapshot.reason,
        "principal": snapshot.principal,
        "operation_id": snapshot.operation_id or None,
        "files": snapshot.files,
        "bytes": snapshot.bytes,
        "at_us": snapshot.created_at,
    }


def operation_object(operation: Operation) -> Object:
    """Return an operation as answers carry it."""
    return {
        "operation_id": operation.id,
        "kind": operation.kind,
        "place": operation.place,
        "state": operation.state,
        "before_tree": operation.before_tree,
        "after_tree": operation.result.get("tree"),
        "contested": operation.result.get("contested", []),
        "error": operation.error or None,
        "undoes": operation.inverse_of or None,
        "principal": operation.principal,
        "started_at_us": operation.started_at,
        "ended_at_us": operation.ended_at or None,
    }


def fork_object(fork: Fork, tree: str | None = None) -> Object:
    """Return a fork as answers carry it."""
    return {
        "fork_id": fork.id,
        "path": str(fork.place.root),
        "tree": tree,
        "base_snapshot": fork.base_snapshot,
        "head_snapshot": fork.head_snapshot,
        "strategy": fork.strategy,
        "mode": fork.mode,
        "state": fork.state,
        "label": fork.label or None,
        "hypothesis": fork.hypothesis or None,
        "holder": fork.holder,
        "fence": fork.fence,
        "expires_at_us": fork.expires_at,
        "bytes": fork.bytes,
    }


def receipt_object(receipt: Receipt, *, reused: bool = False) -> Object:
    """Return a receipt as answers carry it; what was not measured is null."""
    facts = receipt.facts
    return {
        "receipt_id": receipt.id,
        "check": receipt.check_name,
        "state": receipt.state,
        "status": receipt.status or None,
        "exit": facts.get("code"),
        "reason": facts.get("reason"),
        "wall_us": facts.get("wall_us"),
        "tests": None,
        "isolation": receipt.isolation or None,
        "tree_in": receipt.tree_in,
        "tree_out": receipt.tree_out or None,
        "environment_digest": receipt.environment_digest or None,
        "reused_from": receipt.id if reused else None,
        "at_us": receipt.at,
    }


def check_object(check: Check) -> Object:
    """Return a check as answers carry it."""
    return {
        "name": check.name,
        "digest": check.digest,
        "version": check.version,
        "source": check.source,
        **check.command.model_dump(),
    }


def promotion_object(promotion: Promotion) -> Object:
    """Return a promotion as answers carry it."""
    return {
        "promotion_id": promotion.id,
        "operation_id": promotion.operation_id or None,
        "source": promotion.source_ref,
        "state": promotion.state,
        "base_tree": promotion.base_tree,
        "live_tree": promotion.live_tree,
        "result_tree": promotion.result_tree,
        "plan_digest": promotion.plan_digest,
        "approval_id": promotion.approval_id or None,
        "at_us": promotion.created_at,
    }


def label_object(label: Label) -> Object:
    """Return a label as answers carry it."""
    return {"name": label.name, "snapshot_id": label.snapshot_id, "pinned": label.pinned, "version": label.version}


def entry_object(path: bytes, entry: TreeEntry) -> Object:
    """Return an entry of a tree as answers carry it."""
    kind = {"f": "file", "d": "directory", "l": "link"}[entry.type]
    facts = {"type": kind, "mode": f"{entry.mode:03o}", "size": entry.size, "id": entry.id}
    return {**path_json(path), **facts}


def change_object(change: Change, patch: FilePatch | None) -> Object:
    """Return a change as answers carry it; line counts are null where no lines were compared."""
    facts: Object = {**path_json(change.path), "status": change.status}
    if change.old_path is not None:
        facts["old_path"] = path_json(change.old_path)["path"]
    for side, entry in (("old", change.old), ("new", change.new)):
        if entry is not None:
            facts[side] = {"type": entry.type, "mode": f"{entry.mode:03o}", "size": entry.size, "id": entry.id}
    if patch is not None:
        facts |= {"binary": patch.binary, "lines_added": patch.lines_added, "lines_deleted": patch.lines_deleted}
        facts |= {"approximate": True} if patch.approximate else {}
    return facts


def omissions_object(omissions: Sequence[Omission]) -> Object:
    """Return how many paths were left out for each reason, and the first twenty."""
    ordered = sorted(omissions, key=lambda omission: omission.path)
    return {"counts": counts(omissions), "first": [each.as_json() for each in ordered[:OMISSIONS_SHOWN]]}
