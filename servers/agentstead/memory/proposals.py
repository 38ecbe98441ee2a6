"""Proposals: one to fifty requested changes that stand or fall together, and wait for a person where they must."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.memory.times import DAY_US
from agentstead.memory.vocabulary import Channel, ProposalState
from agentstead.state import Reading, Tx

OPEN_DAYS = 30
OPEN: tuple[ProposalState, ...] = ("pending", "held")

_COLUMNS = """
id, state, operations, text_ids, channel, principal, workspace_id, reason, fork_id, dedupe, created_at, expires_at,
    version
"""
_INSERT = f"""
INSERT INTO proposals ({_COLUMNS})
VALUES (:id, :state, :operations, :text_ids, :channel, :principal, :workspace_id, :reason, :fork_id, :dedupe,
    :now, :expires_at, 1)
"""
_BY_ID = f"SELECT {_COLUMNS} FROM proposals WHERE id = :id"
_MOVE = """
UPDATE proposals
SET state = :state,
    version = version + 1
WHERE id = :id AND state IN ('pending', 'held')
"""
_REBASE = "UPDATE proposals SET operations = :operations, version = version + 1 WHERE id = :id"
_REPLACE = """
UPDATE proposals
SET state = 'replaced',
    version = version + 1
WHERE dedupe = :dedupe AND principal = :principal AND id <> :id AND state IN ('pending', 'held')
"""
_COUNT_OPEN = """
SELECT count(*)
FROM proposals
WHERE workspace_id = :workspace AND state IN ('pending', 'held') AND expires_at > :now
"""
_EXPIRE = """
UPDATE proposals
SET state = 'expired',
    version = version + 1
WHERE state IN ('pending', 'held') AND expires_at <= :now
RETURNING id, workspace_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One row. `operations` holds each change without its text, which lies in `memory_texts` under `text_ids`."""

    id: str
    state: ProposalState
    operations: Sequence[Mapping[str, Any]]
    text_ids: Sequence[str]
    channel: Channel
    principal: str
    workspace_id: str
    reason: str
    fork_id: str
    dedupe: str
    created_at: int
    expires_at: int
    version: int

    def state_at(self, now_us: int) -> ProposalState:
        """Return the state as it is now: an open one that ran out has expired, whether swept or not."""
        return "expired" if self.state in OPEN and self.expires_at <= now_us else self.state


def insert(
    tx: Tx,
    proposal_id: str,
    *,
    state: ProposalState,
    operations: Sequence[Mapping[str, Any]],
    text_ids: Sequence[str],
    channel: Channel,
    principal: str,
    workspace_id: str,
    reason: str,
    fork_id: str = "",
    dedupe: str = "",
) -> None:
    """Record a proposal; an open one of the same author and subject is replaced by it."""
    tx.execute(
        _INSERT,
        id=proposal_id,
        state=state,
        operations=json.dumps(list(operations), ensure_ascii=False),
        text_ids=json.dumps(list(text_ids)),
        channel=channel,
        principal=principal,
        workspace_id=workspace_id,
        reason=tx.redact(reason),
        fork_id=fork_id,
        dedupe=dedupe,
        now=tx.now_us,
        expires_at=tx.now_us + OPEN_DAYS * DAY_US,
    )
    if state in OPEN and dedupe:
        tx.execute(_REPLACE, id=proposal_id, dedupe=dedupe, principal=principal)


def by_id(reading: Reading, proposal_id: str) -> Proposal | None:
    """Return one proposal."""
    row = reading.one(_BY_ID, id=proposal_id)
    return None if row is None else read_row(row)


def move(tx: Tx, proposal_id: str, state: ProposalState) -> bool:
    """Settle an open proposal; return False where it is open no more."""
    return tx.execute(_MOVE, id=proposal_id, state=state) == 1


def rebase(tx: Tx, proposal_id: str, operations: Sequence[Mapping[str, Any]]) -> None:
    """Keep what the changes rest on now, for the next look at them."""
    tx.execute(_REBASE, id=proposal_id, operations=json.dumps(list(operations), ensure_ascii=False))


def count_open(reading: Reading, workspace_id: str) -> int:
    """Return how many proposals of a workspace (or of the home) wait for a person."""
    number: int = reading.value(_COUNT_OPEN, workspace=workspace_id, now=reading.now_us)
    return number


def expire(tx: Tx) -> int:
    """Settle every open proposal whose time ran out; return how many there were."""
    rows = tx.all(_EXPIRE, now=tx.now_us)
    for row in rows:
        tx.journal("memory.proposal.expired", subject=row["id"], workspace=row["workspace_id"], body={})
    return len(rows)


def read_row(row: sqlite3.Row) -> Proposal:
    """Return the proposal that a row holds."""
    values = dict(row)
    return Proposal(**(values | {"operations": json.loads(row["operations"]), "text_ids": json.loads(row["text_ids"])}))
