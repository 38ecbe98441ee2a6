"""Runs: the one claimable record. Enqueued, renewed, released, ended, lost; `claiming` leases them.

What a run is about belongs to its `RunOwner`, called in the transaction that moves the run, so that run and owner
never disagree.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from agentstead import telemetry
from agentstead.sessions.machines import PRIORITIES, RUN, OwnerKind, Pool, Priority, RunState, step
from agentstead.state import (
    NotFound,
    Reading,
    RefFacts,
    Repair,
    Tx,
)
from agentstead.telemetry import names

SWEEP = 100

COLUMNS = (
    "id, workspace_id, owner_kind, owner_id, attempt, previous_id, pool, state, required_caps, priority, queued_at, "
    "session_id, worker, fence, lease_hash, lease_until, lease_s, phase_note, result, summary, failure_class, proof, "
    "ended_at, traceparent, version"
)
_BY_ID = f"SELECT {COLUMNS} FROM runs WHERE id = :id"
_OF_OWNER = f"""
SELECT {COLUMNS}
FROM runs
WHERE owner_kind = :kind
    AND owner_id = :owner
ORDER BY attempt DESC, id DESC
LIMIT :most
"""
_EXPIRED = f"SELECT {COLUMNS} FROM runs WHERE state = 'leased' AND lease_until < :now ORDER BY lease_until LIMIT :most"
_INSERT = """
INSERT INTO runs (
    id, workspace_id, owner_kind, owner_id, attempt, previous_id, pool, state, required_caps, priority, queued_at,
    session_id, worker, fence, lease_hash, lease_until, lease_s, renewed_at, phase_note, packet_blob, result_blob,
    result, summary, failure_class, failure_signature, proof, late, budget_id, starve_cycles, traceparent, ended_at,
    version
)
VALUES (
    :id, :workspace, :kind, :owner, :attempt, :previous, :pool, 'queued', :caps, :priority, :now,
    '', '', 0, NULL, NULL, 0, NULL, '', '', '',
    '', '', '', '', '', 0, '', 0, :traceparent, NULL,
    1
)
"""
_RENEW = """
UPDATE runs
SET lease_until = :until,
    renewed_at = :now,
    phase_note = CASE WHEN :note = '' THEN phase_note ELSE :note END
WHERE id = :id
"""
_REQUEUE = """
UPDATE runs
SET state = 'queued',
    session_id = '',
    lease_hash = NULL,
    lease_until = NULL,
    queued_at = :now,
    version = version + 1
WHERE id = :id
"""
_END = """
UPDATE runs
SET state = :state,
    lease_hash = NULL,
    lease_until = NULL,
    summary = :summary,
    result = :result,
    failure_class = :failure,
    proof = :proof,
    fence = fence + :raise_fence,
    ended_at = :now,
    version = version + 1
WHERE id = :id
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at something."""

    id: str
    workspace_id: str
    owner_kind: OwnerKind
    owner_id: str
    attempt: int
    previous_id: str
    pool: Pool
    state: RunState
    required_caps: tuple[str, ...]
    priority: int
    queued_at: int
    session_id: str
    worker: str
    fence: int
    lease_hash: str | None
    lease_until: int | None
    lease_s: int
    phase_note: str
    result: str
    summary: str
    failure_class: str
    proof: str
    ended_at: int | None
    traceparent: str
    version: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ends: what the worker says, in redacted form."""

    summary: str = ""
    result: str = ""
    failure: str = ""


class RunOwner(Protocol):
    """What a kind of owner does when its runs move; every method runs in the transaction that moves the run."""

    def claimable(self, tx: Tx, run: Run) -> bool:
        """Tell whether this run may be taken now."""
        ...

    def packet(self, tx: Tx, run: Run) -> Mapping[str, Any]:
        """Return what the worker needs, as it is now."""
        ...

    def settled(self, tx: Tx, run: Run) -> None:
        """Follow a run that was claimed, released or ended."""
        ...

    def lost(self, tx: Tx, run: Run) -> None:
        """Decide what follows a run whose lease ran out."""
        ...


_OWNERS: dict[OwnerKind, RunOwner] = {}


def register_owner(kind: OwnerKind, owner: RunOwner) -> None:
    """Let `owner` follow the runs of a kind; each kind has one owner."""
    if _OWNERS.setdefault(kind, owner) is not owner:
        raise ValueError(f"runs of kind {kind} have two owners")


def owner_of(run: Run) -> RunOwner:
    """Return who follows this run."""
    return _OWNERS[run.owner_kind]


def find(reading: Reading, run_id: str) -> Run | None:
    """Return a run, or None."""
    row = reading.one(_BY_ID, id=run_id)
    return None if row is None else to_run(row)


def get(reading: Reading, run_id: str) -> Run:
    """Return a run; raises `NotFound`."""
    found = find(reading, run_id)
    if found is None:
        raise NotFound("run.none_claimable", f"No run {run_id[:40]!r} is known.", remedy="Use an id of task_claim.")
    return found


def attempts(reading: Reading, kind: OwnerKind, owner_id: str, *, most: int = 5) -> list[Run]:
    """Return an owner's runs, the newest first."""
    return [to_run(row) for row in reading.all(_OF_OWNER, kind=kind, owner=owner_id, most=most)]


def enqueue(
    tx: Tx,
    kind: OwnerKind,
    owner_id: str,
    *,
    workspace: str,
    pool: Pool = "host",
    capabilities: Sequence[str] = (),
    priority: Priority = "medium",
    previous: Run | None = None,
) -> str:
    """Queue an attempt; the caller has seen to it that the owner has no open run."""
    run_id = tx.new_id("run_")
    tx.execute(
        _INSERT,
        id=run_id,
        workspace=workspace,
        kind=kind,
        owner=owner_id,
        attempt=previous.attempt + 1 if previous else 1,
        previous=previous.id if previous else "",
        pool=pool,
        caps=json.dumps(sorted(capabilities)),
        priority=PRIORITIES[priority],
        traceparent=tx.traceparent,
        now=tx.now_us,
    )
    tx.journal("sessions.run.queued", subject=run_id, workspace=workspace, body={"kind": kind, "owner": owner_id})
    return run_id


def renew(tx: Tx, run: Run, *, note: str = "") -> Run:
    """Give a leased run its full time again."""
    step(RUN, "run", run.id, state=run.state, event="renew")
    tx.execute(_RENEW, id=run.id, until=tx.now_us + run.lease_s * 1_000_000, note=tx.redact(note), now=tx.now_us)
    tx.journal("sessions.run.renewed", subject=run.id, workspace=run.workspace_id, body={"note": note})
    return get(tx, run.id)


def release(tx: Tx, run: Run, *, reason: str) -> Run:
    """Put a leased run back into the queue; the attempt is not used up."""
    step(RUN, "run", run.id, state=run.state, event="release")
    tx.execute(_REQUEUE, id=run.id, now=tx.now_us)
    return follow(tx, run.id, "released", {"reason": reason})


def end(tx: Tx, run: Run, event: str, outcome: Outcome) -> Run:
    """End a run by `complete`, `fail` or `cancel`; nothing proves a completion here, so its proof is `none`."""
    state = step(RUN, "run", run.id, state=run.state, event=event)
    tx.execute(
        _END,
        id=run.id,
        state=state,
        summary=tx.redact(outcome.summary),
        result=tx.redact(outcome.result),
        failure=tx.redact(outcome.failure),
        proof="none" if event == "complete" else "",
        raise_fence=int(event == "cancel"),
        now=tx.now_us,
    )
    return follow(tx, run.id, state, {"summary": outcome.summary, "failure": outcome.failure})


def sweep(tx: Tx) -> int:
    """Declare lost every lease that ran out; return how many (at most 100 at once)."""
    expired = [to_run(row) for row in tx.all(_EXPIRED, now=tx.now_us, most=SWEEP)]
    for run in expired:
        state = step(RUN, "run", run.id, state=run.state, event="lose")
        tx.execute(
            _END,
            id=run.id,
            state=state,
            summary="",
            result="",
            failure="lease_expired",
            proof="",
            raise_fence=0,
            now=tx.now_us,
        )
        _OWNERS[run.owner_kind].lost(tx, follow(tx, run.id, "lost", {"session_id": run.session_id}))
    return len(expired)


def is_any_overdue(reading: Reading) -> bool:
    """Tell whether a lease ran out; a look without a write."""
    return bool(reading.all(_EXPIRED, now=reading.now_us, most=1))


def look_run(reading: Reading, ref: str) -> RefFacts | None:
    """Answer `state.refs` for `run_` ids."""
    row = reading.one(_BY_ID, id=ref)
    if row is None:
        return None
    facts = {"owner": row["owner_id"], "session_id": row["session_id"]}
    return RefFacts(exists=True, workspace=row["workspace_id"], state=row["state"], facts=facts)


def _check(tx: Tx, row: sqlite3.Row) -> None:
    run = to_run(row)
    if run.owner_kind not in _OWNERS:
        raise ValueError(f"nothing owns runs of kind {run.owner_kind}")


REPAIR = Repair(
    "runs", f"SELECT {COLUMNS}, id AS ref FROM runs WHERE ended_at IS NULL", lambda tx, row: _check(tx, row)
)


def follow(tx: Tx, run_id: str, happened: str, body: Mapping[str, Any]) -> Run:
    """Write a run's journal entry and let its owner follow; return the run as it is now."""
    run = get(tx, run_id)
    if run.ended_at is not None:
        tx.after_commit(partial(_trace, run))
    tx.journal(f"sessions.run.{happened}", subject=run.id, workspace=run.workspace_id, body=body)
    _OWNERS[run.owner_kind].settled(tx, run)
    return run


def to_run(row: sqlite3.Row) -> Run:
    """Return the run of a row with `COLUMNS`."""
    fields = {name: row[name] for name in row.keys() if name != "ref"}  # noqa: SIM118 - a Row iterates its values
    fields["required_caps"] = tuple(json.loads(row["required_caps"]))
    return Run(**fields)


def _trace(run: Run) -> None:
    """Show a run that ended as a span that links back to the call which asked for it."""
    attributes: telemetry.Attributes = {
        names.RUN_ID: run.id,
        names.RUN_OWNER: run.owner_kind,
        names.RUN_STATE: run.state,
        names.ATTEMPT: run.attempt,
    }
    telemetry.finished(
        names.RUN,
        attributes,
        asked_by=run.traceparent,
        start_us=run.queued_at,
        end_us=run.ended_at or run.queued_at,
        failed=run.state in ("failed", "lost"),
    )
