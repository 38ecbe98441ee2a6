"""The recorded outcome of each requested change: what the controller said, by which rules, and what it changed."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from agentstead.memory.vocabulary import DecisionOp, JudgedBy, Trust, Verdict
from agentstead.state import Reading, Tx

Trace = Mapping[str, Any]

_COLUMNS = """
id, proposal_id, ordinal, op, verdict, judged_by, rules, memory_id, before_edition, after_edition, principal,
    workspace_id, trust, reason, idempotency_key, at, reverted_by
"""
_INSERT = f"""
INSERT INTO decisions ({_COLUMNS})
VALUES (:id, :proposal_id, :ordinal, :op, :verdict, :judged_by, :rules, :memory_id, :before_edition, :after_edition,
    :principal, :workspace_id, :trust, :reason, :idempotency_key, :at, '')
"""
_BY_ID = f"SELECT {_COLUMNS} FROM decisions WHERE id = :id"
_OF_MEMORY = f"SELECT {_COLUMNS} FROM decisions WHERE memory_id = :memory_id ORDER BY id"
_LATER = """
SELECT id
FROM decisions
WHERE memory_id IN (SELECT value FROM json_each(:memories))
    AND id > :id
    AND verdict = 'accepted'
    AND op NOT IN ('none', 'refuse')
ORDER BY id
"""
_REVERTED = "UPDATE decisions SET reverted_by = :by WHERE id = :id"
_ACCEPTED_SINCE = """
SELECT count(*)
FROM decisions
WHERE workspace_id = :workspace AND principal = :principal AND at > :since AND verdict = 'accepted'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One row; `rules` holds every rule that was tried, in order, and never a text."""

    id: str
    proposal_id: str
    ordinal: int
    op: DecisionOp
    verdict: Verdict
    judged_by: JudgedBy
    rules: Sequence[Trace]
    principal: str
    trust: Trust
    at: int
    memory_id: str = ""
    before_edition: str = ""
    after_edition: str = ""
    workspace_id: str = ""
    reason: str = ""
    idempotency_key: str = ""
    reverted_by: str = ""


def insert(tx: Tx, decision: Decision) -> None:
    """Record a decision."""
    tx.execute(
        _INSERT,
        id=decision.id,
        proposal_id=decision.proposal_id,
        ordinal=decision.ordinal,
        op=decision.op,
        verdict=decision.verdict,
        judged_by=decision.judged_by,
        rules=json.dumps(list(decision.rules)),
        memory_id=decision.memory_id,
        before_edition=decision.before_edition,
        after_edition=decision.after_edition,
        principal=decision.principal,
        workspace_id=decision.workspace_id,
        trust=int(decision.trust),
        reason=tx.redact(decision.reason),
        idempotency_key=decision.idempotency_key,
        at=decision.at,
    )


def by_id(reading: Reading, decision_id: str) -> Decision | None:
    """Return one decision."""
    row = reading.one(_BY_ID, id=decision_id)
    return None if row is None else read_row(row)


def of_memory(reading: Reading, memory_id: str) -> list[Decision]:
    """Return the decisions on a memory, oldest first."""
    return [read_row(row) for row in reading.all(_OF_MEMORY, memory_id=memory_id)]


def later_than(reading: Reading, decision_id: str, memory_ids: Sequence[str]) -> list[str]:
    """Return the ids of accepted decisions that changed one of these memories after this one."""
    return [row["id"] for row in reading.all(_LATER, id=decision_id, memories=json.dumps(list(memory_ids)))]


def mark_reverted(tx: Tx, decision_id: str, *, by: str) -> None:
    """Say which decision undid this one."""
    tx.execute(_REVERTED, id=decision_id, by=by)


def accepted_since(reading: Reading, since: int, *, workspace_id: str, principal: str) -> int:
    """Return how many accepted decisions a principal has in a workspace since an instant."""
    number: int = reading.value(_ACCEPTED_SINCE, since=since, workspace=workspace_id, principal=principal)
    return number


def read_row(row: sqlite3.Row) -> Decision:
    """Return the decision that a row holds."""
    values = {each.name: row[each.name] for each in fields(Decision)}
    return Decision(**(values | {"rules": json.loads(row["rules"]), "trust": Trust(row["trust"])}))
