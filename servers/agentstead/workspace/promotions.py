"""Promotions as rows: which tree was to become the live one, on what evidence, with whose yes, and how it went."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentstead.state import Reading, RefFacts, Tx
from agentstead.workspace.exchange import Cas
from agentstead.workspace.machines import PROMOTION

_COLUMNS: Final = """id, workspace_id, operation_id, source_ref, base_tree, live_tree, result_tree, plan_digest,
gate_digest, verdict, approval_id, cas, state, concurrent, version, created_at"""
_BY_ID: Final = f"SELECT {_COLUMNS} FROM promotions WHERE id = :id"
_OF_OPERATION: Final = f"SELECT {_COLUMNS} FROM promotions WHERE operation_id = :operation_id"
_WAITING: Final = f"""
SELECT {_COLUMNS}
FROM promotions
WHERE workspace_id = :workspace
    AND plan_digest = :plan_digest
    AND state = 'waiting'
ORDER BY id DESC
LIMIT 1
"""
_LIST: Final = f"""
SELECT {_COLUMNS}
FROM promotions
WHERE workspace_id = :workspace
    AND (:before = '' OR id < :before)
ORDER BY id DESC
LIMIT :most
"""
_INSERT: Final = """
INSERT INTO promotions (id, workspace_id, source_ref, base_tree, live_tree, result_tree, plan_digest, gate_digest,
    verdict, approval_id, cas, state, created_at)
VALUES (:id, :workspace, :source_ref, :base_tree, :live_tree, :result_tree, :plan_digest, :gate_digest,
    :verdict, :approval_id, :cas, :state, :now)
"""
_MOVE: Final = """
UPDATE promotions
SET state = :state,
    operation_id = CASE WHEN :operation_id = '' THEN operation_id ELSE :operation_id END,
    approval_id = CASE WHEN :approval_id = '' THEN approval_id ELSE :approval_id END,
    concurrent = :concurrent,
    version = version + 1
WHERE id = :id
"""


@dataclass(frozen=True, slots=True)
class Promotion:
    """One attempt to make a tree the live one; `verdict` is what the gate said, as JSON."""

    id: str
    workspace_id: str
    operation_id: str
    source_ref: str
    base_tree: str
    live_tree: str
    result_tree: str
    plan_digest: str
    gate_digest: str
    verdict: str
    approval_id: str
    cas: Cas
    state: str
    concurrent: str
    version: int
    created_at: int


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a promotion would do, as it was planned and judged."""

    workspace_id: str
    source_ref: str
    base_tree: str
    live_tree: str
    result_tree: str
    plan_digest: str
    gate_digest: str
    verdict: Mapping[str, Any]
    cas: Cas


def wait(tx: Tx, proposed: Proposed, approval_id: str) -> Promotion:
    """Record that a promotion waits for a person; the same plan waits once."""
    known = waiting(tx, proposed.workspace_id, proposed.plan_digest)
    if known is not None and known.approval_id == approval_id:
        return known
    return _insert(tx, proposed, PROMOTION.after("planned", "approval_needed"), approval_id)


def lock(tx: Tx, proposed: Proposed, approval_id: str, operation_id: str) -> Promotion:
    """Record that an approved promotion begins, under the operation that carries it out."""
    known = waiting(tx, proposed.workspace_id, proposed.plan_digest)
    if known is None:
        known = _insert(tx, proposed, PROMOTION.after("planned", "approved"), approval_id)
    else:
        known = move(tx, known.id, "approved", approval_id=approval_id)
    return move(tx, known.id, "locked", operation_id=operation_id)


def move(
    tx: Tx,
    promotion_id: str,
    event: str,
    *,
    operation_id: str = "",
    approval_id: str = "",
    concurrent: Sequence[Mapping[str, Any]] = (),
) -> Promotion:
    """Move a promotion by an event of its machine."""
    known = _known(tx, promotion_id)
    state = PROMOTION.after(known.state, event)
    tx.execute(
        _MOVE,
        id=promotion_id,
        state=state,
        operation_id=operation_id,
        approval_id=approval_id,
        concurrent=json.dumps(list(concurrent)) if concurrent else known.concurrent,
    )
    kind = "workspace.promotion.committed" if state == "committed" else "workspace.promotion.moved"
    body = {"event": event, "state": state, "result_tree": known.result_tree}
    tx.journal(kind, subject=promotion_id, workspace=known.workspace_id, body=body)
    return _known(tx, promotion_id)


def find(reading: Reading, promotion_id: str) -> Promotion | None:
    """Return a promotion by its id."""
    return _promotion(reading.one(_BY_ID, id=promotion_id))


def of_operation(reading: Reading, operation_id: str) -> Promotion | None:
    """Return the promotion that an operation carries out."""
    return _promotion(reading.one(_OF_OPERATION, operation_id=operation_id))


def waiting(reading: Reading, workspace_id: str, plan_digest: str) -> Promotion | None:
    """Return the promotion that waits for a person with exactly this plan."""
    return _promotion(reading.one(_WAITING, workspace=workspace_id, plan_digest=plan_digest))


def listed(reading: Reading, workspace_id: str, *, before: str = "", most: int = 50) -> list[Promotion]:
    """Return the promotions of a workspace, newest first."""
    return [Promotion(*row) for row in reading.all(_LIST, workspace=workspace_id, before=before, most=most)]


def look_promotion(reading: Reading, ref: str) -> RefFacts | None:
    """Return what other servers may know of a promotion."""
    found = find(reading, ref)
    return None if found is None else RefFacts(True, found.workspace_id, found.state, {"tree": found.result_tree})


def _insert(tx: Tx, proposed: Proposed, state: str, approval_id: str) -> Promotion:
    promotion_id = tx.new_id("prm_")
    tx.execute(
        _INSERT,
        id=promotion_id,
        workspace=proposed.workspace_id,
        source_ref=proposed.source_ref,
        base_tree=proposed.base_tree,
        live_tree=proposed.live_tree,
        result_tree=proposed.result_tree,
        plan_digest=proposed.plan_digest,
        gate_digest=proposed.gate_digest,
        verdict=json.dumps(proposed.verdict),
        approval_id=approval_id,
        cas=proposed.cas,
        state=state,
        now=tx.now_us,
    )
    body = {"source": proposed.source_ref, "result_tree": proposed.result_tree, "state": state}
    tx.journal("workspace.promotion.proposed", subject=promotion_id, workspace=proposed.workspace_id, body=body)
    return _known(tx, promotion_id)


def _known(reading: Reading, promotion_id: str) -> Promotion:
    found = find(reading, promotion_id)
    assert found is not None, promotion_id
    return found


def _promotion(row: sqlite3.Row | None) -> Promotion | None:
    return None if row is None else Promotion(*row)
