"""The record of decisions: an entry and a row for what was denied, asked or escalated; counts for the rest."""

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.policy.layers import LayerFile
from agentstead.policy.machines import DAY_US, MINUTE_US, Outcome
from agentstead.policy.model import ENGINE, CallFacts, Decision
from agentstead.state import NotFound, Reading, Tx

KEPT_US = 90 * DAY_US
SUBJECT = "permissions"

_KEEP_REVISION = """
INSERT INTO policy_revisions (id, hash, engine, files, created_at)
VALUES (:id, :hash, :engine, :files, :now)
ON CONFLICT (hash) DO NOTHING
"""
_INSERT = """
INSERT INTO policy_decisions
    (id, journal_seq, verdict, tool, action_hash, reasons, session_id, principal, revision, approval_id, grant_id,
    outcome, created_at)
VALUES
    (:id, :journal_seq, :verdict, :tool, :action_hash, :reasons, :session_id, :principal, :revision, :approval_id,
    :grant_id, :outcome, :now)
"""
_COLUMNS = """id, journal_seq, verdict, tool, action_hash, reasons, session_id, principal, revision, approval_id,
    grant_id, outcome, created_at"""
_BY_ID = f"SELECT {_COLUMNS} FROM policy_decisions WHERE id = :id"
_OF_APPROVAL = f"""
SELECT {_COLUMNS}
FROM policy_decisions
WHERE approval_id = :approval_id
ORDER BY created_at DESC, id DESC
LIMIT 1
"""
_FORGET = """
DELETE FROM policy_decisions
WHERE id IN (SELECT id FROM policy_decisions WHERE created_at <= :before LIMIT :most)
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One stored decision; `entry` is the body of its journal entry (None once that was erased)."""

    id: str
    verdict: str
    tool: str
    outcome: Outcome
    principal: str
    session_id: str
    revision: str
    approval_id: str
    grant_id: str
    reasons: tuple[str, ...]
    created_at: int
    entry: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision about a call with what enforcement made of it."""

    call: CallFacts
    decision: Decision
    action_hash: str
    outcome: Outcome
    approval_id: str = ""
    grant_id: str = ""
    notes: tuple[str, ...] = ()


def record(tx: Tx, judged: Judged, files: Sequence[LayerFile]) -> str:
    """Write the entry and the row of one decision; return its id. Argument values stay out of both."""
    call, decision = judged.call, judged.decision
    decision_id = tx.new_id("pdc_")
    reasons = [*decision.reasons, *judged.notes]
    shared = {
        "verdict": decision.verdict,
        "outcome": judged.outcome,
        "tool": f"{call.server}/{call.tool}",
        "action_hash": judged.action_hash,
        "session_id": call.session_id,
        "principal": call.principal.text,
        "revision": decision.revision,
        "approval_id": judged.approval_id,
        "grant_id": judged.grant_id,
    }
    body = {
        **shared,
        "door": call.door,
        "reasons": reasons,
        "accesses": [ruled.as_dict() for ruled in decision.accesses],
        "input_digest": call.input_digest(),
        "stale": list(decision.stale),
    }
    keep_revision(tx, decision.revision, files)
    seq = tx.journal("permissions.decision.recorded", subject=decision_id, workspace=call.workspace_id, body=body)
    row = {**shared, "reasons": json.dumps(reasons)}
    tx.execute(_INSERT, **row, id=decision_id, journal_seq=seq, now=tx.now_us)
    return decision_id


def keep_revision(tx: Tx, revision: str, files: Sequence[LayerFile]) -> None:
    """Store which files made a revision, once."""
    listed = json.dumps([file.as_dict() for file in files])
    tx.execute(_KEEP_REVISION, id=tx.new_id("pol_"), hash=revision, engine=ENGINE, files=listed, now=tx.now_us)


def find_decision(reading: Reading, ref: str) -> Recorded:
    """Return a decision by its own id or the newest one about an approval; raises `NotFound` (`ref.not_found`)."""
    by_approval = ref.startswith("apr_")
    row = reading.one(_OF_APPROVAL, approval_id=ref) if by_approval else reading.one(_BY_ID, id=ref)
    if row is None:
        raise NotFound(
            "ref.not_found",
            f"No decision {ref[:40]!r} is stored.",
            remedy="Use a decision_id (pdc_) or an approval_id (apr_) of a refusal; rows are kept for 90 days.",
        )
    fields = {name: row[name] for name in Recorded.__slots__ if name not in ("reasons", "entry")}
    entries = reading.entries(row["journal_seq"] - 1, most=1)
    body = entries[0].body if entries and entries[0].seq == row["journal_seq"] else None
    return Recorded(**fields, reasons=tuple(json.loads(row["reasons"])), entry=body)


def forget_old(tx: Tx, *, most: int = 1000) -> int:
    """Delete up to `most` rows older than 90 days; the journal keeps their entries."""
    gone = tx.execute(_FORGET, before=tx.now_us - KEPT_US, most=most)
    if gone:
        tx.journal("permissions.decisions.forgotten", subject=SUBJECT, body={"rows": gone})
    return gone


class Counts:
    """Allowed calls without a row: counted in memory per minute, tool and rule, written as one entry a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute = 0
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, call: CallFacts, decision: Decision) -> bool:
        """Count one allow; true where an earlier minute waits to be written (take it first with `take`)."""
        rules = ",".join(rule.id for ruled in decision.accesses for rule in ruled.rules) or "axis"
        minute = call.now_us // MINUTE_US
        with self._lock:
            due = bool(self._counts) and minute != self._minute
            if not due:
                self._minute = minute
                self._counts[call.server + "/" + call.tool, call.risk, rules] += 1
            return due

    def take(self) -> Mapping[str, Any] | None:
        """Return the body of the entry of what was counted, and count anew; None where nothing was."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return None
        rows = [
            {"tool": tool, "class": risk, "rules": rules, "count": count}
            for (tool, risk, rules), count in sorted(counts.items())
        ]
        return {"minute_us": self._minute * MINUTE_US, "allowed": rows}


def record_counts(tx: Tx, body: Mapping[str, Any]) -> None:
    """Write the counted allows of one minute."""
    tx.journal("permissions.allows.counted", subject=SUBJECT, body=body)
