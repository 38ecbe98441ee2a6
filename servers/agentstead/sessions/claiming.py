"""Claiming runs: the right to finish one, held for a time by one session, and proved by a lease string."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentstead.sessions.machines import PRIORITIES, RUN, OwnerKind, Priority, step
from agentstead.sessions.runs import COLUMNS, Run, find, follow, get, owner_of, sweep, to_run
from agentstead.sessions.sessions import get_open
from agentstead.state import Conflict, LeaseLost, Tx, lease_mint, lease_parse

_QUEUE = f"""
SELECT {COLUMNS}
FROM runs
WHERE state = 'queued'
    AND pool = :pool
    AND owner_kind IN (SELECT value FROM json_each(:kinds))
    AND (:workspace = '' OR workspace_id = :workspace)
    AND (:owner = '' OR owner_id = :owner)
    AND priority >= :min_priority
    AND NOT EXISTS (
        SELECT 1 FROM json_each(runs.required_caps) AS needed
        WHERE needed.value NOT IN (SELECT value FROM json_each(:caps))
    )
ORDER BY priority DESC, queued_at, id
LIMIT 50
"""
_LEASED_BY = "SELECT id FROM runs WHERE session_id = :session_id AND state = 'leased' AND owner_kind <> 'wake'"
_LEASE = """
UPDATE runs
SET state = 'leased',
    session_id = :session_id,
    worker = :worker,
    fence = fence + 1,
    lease_hash = :hash,
    lease_until = :until,
    lease_s = :lease_s,
    renewed_at = :now,
    version = version + 1
WHERE id = :id
"""
_REMINT = "UPDATE runs SET lease_hash = :hash WHERE id = :id AND state = 'leased'"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a worker asks for: its session, what it can do, and which run it would take."""

    session_id: str
    worker: str
    capabilities: tuple[str, ...] = ()
    workspace: str = ""
    owner_id: str = ""
    run_id: str = ""
    min_priority: Priority = "low"
    lease_s: int = 300
    kinds: tuple[OwnerKind, ...] = ("task", "cell")


@dataclass(frozen=True, slots=True)
class Claimed:
    """A leased run, its lease string (shown once, stored only as a hash) and what its owner says of the work."""

    run: Run
    lease: str
    packet: Mapping[str, Any] = field(default_factory=dict)


def claim(tx: Tx, ask: Ask) -> Claimed | None:
    """Lease the first run that fits; None where there is none.

    Raises `Conflict` with `run.lease_held` where the session works on another run.
    """
    get_open(tx, ask.session_id)
    sweep(tx)
    held = tx.value(_LEASED_BY, session_id=ask.session_id)
    if held is not None:
        raise Conflict(
            "run.lease_held",
            f"This session works on {held}.",
            remedy="Report it with task_report first (completed, failed or released).",
            details={"run_id": held},
        )
    for run in _candidates(tx, ask):
        if owner_of(run).claimable(tx, run):
            return _lease(tx, run, ask)
    return None


def remint(tx: Tx, run_id: str) -> str:
    """Return a new lease string for a leased run, under the same fence; the earlier one is worthless at once."""
    run = get(tx, run_id)
    lease, hashed = lease_mint(run.id, run.fence)
    if not tx.execute(_REMINT, id=run.id, hash=hashed):
        raise _lost(run)
    tx.journal("sessions.run.reminted", subject=run.id, workspace=run.workspace_id, body={"fence": run.fence})
    return lease


def held(tx: Tx, lease: str) -> Run:
    """Return the run that a lease string is on; raises `LeaseLost` when it is held no more."""
    parsed = lease_parse(lease)
    run = find(tx, parsed.subject)
    if run is None:
        raise LeaseLost("run.lease_lost", "This is no lease of this home.", remedy="Claim the work again.")
    if run.state != "leased" or not parsed.matches(run.lease_hash, run.fence):
        raise _lost(run)
    return run


def _candidates(tx: Tx, ask: Ask) -> list[Run]:
    if ask.run_id:
        run = get(tx, ask.run_id)
        return [run] if run.state == "queued" and set(run.required_caps) <= set(ask.capabilities) else []
    rows = tx.all(
        _QUEUE,
        pool="host",
        kinds=json.dumps(list(ask.kinds)),
        workspace=ask.workspace,
        owner=ask.owner_id,
        min_priority=PRIORITIES[ask.min_priority],
        caps=json.dumps(list(ask.capabilities)),
    )
    return [to_run(row) for row in rows]


def _lease(tx: Tx, run: Run, ask: Ask) -> Claimed:
    step(RUN, "run", run.id, state=run.state, event="claim")
    lease, hashed = lease_mint(run.id, run.fence + 1)
    tx.execute(
        _LEASE,
        id=run.id,
        session_id=ask.session_id,
        worker=ask.worker,
        hash=hashed,
        until=tx.now_us + ask.lease_s * 1_000_000,
        lease_s=ask.lease_s,
        now=tx.now_us,
    )
    leased = follow(tx, run.id, "claimed", {"session_id": ask.session_id, "fence": run.fence + 1})
    return Claimed(leased, lease, owner_of(run).packet(tx, leased))


def _lost(run: Run) -> LeaseLost:
    return LeaseLost(
        "run.lease_lost",
        f"The lease on {run.id} is no longer held: the run is {run.state}.",
        remedy="Stop this work; its changes count for nothing. Claim again.",
        details={"state": run.state},
    )
