"""Approvals: durable questions about permissions. The first answer wins, and only of those who may answer."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from agentstead.policy.machines import (
    APPROVAL_TRANSITIONS,
    EXEC_TRANSITIONS,
    ApprovalKind,
    ApprovalState,
    Choice,
    ExecState,
    SubjectKind,
)
from agentstead.state import Conflict, Denied, Exhausted, NotFound, Reading, Repair, Tx

SESSION_MOST = 20

_COLUMNS = """id, state, exec_state, kind, subject_kind, subject_hash, server, tool, action_hash, input_digest,
    accesses, summary, principal, session_id, root_session_id, workspace_id, policy_revision, options, asks,
    created_at, expires_at, answer, answered_by, proof, note, answered_at, version"""

_BY_ID = f"SELECT {_COLUMNS} FROM approvals WHERE id = :id"
_PENDING_CALL = f"""
SELECT {_COLUMNS}
FROM approvals
WHERE state = 'pending'
    AND kind <> 'subject'
    AND root_session_id = :root_session_id
    AND (root_session_id <> '' OR principal = :principal)
    AND action_hash = :action_hash
    AND input_digest = :input_digest
"""
_PENDING_SUBJECT = f"""
SELECT {_COLUMNS}
FROM approvals
WHERE state = 'pending'
    AND kind = 'subject'
    AND subject_kind = :subject_kind
    AND subject_hash = :subject_hash
"""
_LIST = f"""
SELECT {_COLUMNS}
FROM approvals
WHERE (:state = '' OR state = :state)
    AND (:session_id = '' OR session_id = :session_id)
    AND (:workspace_id = '' OR workspace_id = :workspace_id)
    AND (:after = '' OR id < :after)
ORDER BY id DESC
LIMIT :most
"""
_OPEN_IN_WORKSPACE = """
SELECT COUNT(*)
FROM approvals
WHERE state = 'pending'
    AND workspace_id = :workspace_id
    AND expires_at > :now
"""
_OPEN_IN_SESSION = """
SELECT COUNT(*)
FROM approvals
WHERE state = 'pending'
    AND workspace_id = :workspace_id
    AND session_id = :session_id
    AND expires_at > :now
"""
_INSERT = """
INSERT INTO approvals
    (id, state, exec_state, kind, subject_kind, subject_hash, server, tool, action_hash, input_digest, accesses,
    summary, principal, session_id, root_session_id, workspace_id, policy_revision, options, asks, created_at,
    expires_at, answer, answered_by, proof, note, answered_at, version)
VALUES
    (:id, 'pending', 'none', :kind, :subject_kind, :subject_hash, :server, :tool, :action_hash, :input_digest,
    :accesses, :summary, :principal, :session_id, :root_session_id, :workspace_id, :policy_revision, :options, 1,
    :now, :expires_at, '', '', '', '', NULL, 1)
"""
_ASK_AGAIN = "UPDATE approvals SET asks = asks + 1, version = version + 1 WHERE id = :id"
_SETTLE = """
UPDATE approvals
SET state = :state,
    answer = :answer,
    answered_by = :answered_by,
    proof = :proof,
    note = :note,
    answered_at = :now,
    version = version + 1
WHERE id = :id
    AND state = 'pending'
"""
_EXECUTED = """
UPDATE approvals
SET exec_state = :to_state,
    version = version + 1
WHERE id = :id
    AND exec_state = :from_state
"""
_OVERDUE = "SELECT id, workspace_id FROM approvals WHERE state = 'pending' AND expires_at <= :now LIMIT :most"
_OF_SESSION = """
SELECT id, workspace_id
FROM approvals
WHERE state = 'pending'
    AND session_id = :session_id
    AND session_id <> ''
"""


@dataclass(frozen=True, slots=True)
class Approval:
    """One stored question, its answer, and how far the approved call got."""

    id: str
    state: ApprovalState
    exec_state: ExecState
    kind: ApprovalKind
    subject_kind: SubjectKind | str
    subject_hash: str
    server: str
    tool: str
    action_hash: str
    input_digest: str
    accesses: tuple[Mapping[str, str], ...]
    summary: str
    principal: str
    session_id: str
    root_session_id: str
    workspace_id: str
    policy_revision: str
    options: tuple[Choice, ...]
    asks: int
    created_at: int
    expires_at: int
    answer: Choice | str
    answered_by: str
    proof: str
    note: str
    answered_at: int | None
    version: int

    def state_at(self, now_us: int) -> ApprovalState:
        """Return the state as a reader sees it: an overdue question is expired before the sweep says so."""
        return "expired" if self.state == "pending" and self.expires_at <= now_us else self.state


@dataclass(frozen=True, slots=True)
class NewApproval:
    """What is asked, by whom, and which answers are offered."""

    kind: ApprovalKind
    summary: str
    principal: str
    options: tuple[Choice, ...]
    ttl_us: int
    workspace_most: int
    server: str = ""
    tool: str = ""
    action_hash: str = ""
    input_digest: str = ""
    accesses: Sequence[Mapping[str, str]] = ()
    subject_kind: str = ""
    subject_hash: str = ""
    session_id: str = ""
    root_session_id: str = ""
    workspace_id: str = ""
    policy_revision: str = ""


def find_approval(reading: Reading, approval_id: str) -> Approval | None:
    """Return one approval, or None."""
    return _approval(reading.one(_BY_ID, id=approval_id))


def get_approval(reading: Reading, approval_id: str) -> Approval:
    """Return one approval; raises `NotFound` with `approval.not_found`."""
    found = find_approval(reading, approval_id)
    if found is None:
        raise NotFound(
            "approval.not_found",
            f"No approval {approval_id[:40]!r} exists.",
            remedy="Use the approval_id of a pending answer.",
        )
    return found


def list_approvals(
    reading: Reading, *, state: str = "", session_id: str = "", workspace_id: str = "", after: str = "", most: int = 50
) -> list[Approval]:
    """Return approvals, newest first, behind the id `after`; '' leaves a filter open."""
    rows = reading.all(_LIST, state=state, session_id=session_id, workspace_id=workspace_id, after=after, most=most)
    return [found for row in rows if (found := _approval(row)) is not None]


def ask(tx: Tx, new: NewApproval) -> Approval:
    """Store a question, or count one more asking of the one that is open for the same call or subject.

    Raises `Exhausted` with `approval.full` where a session or a workspace has too many open ones.
    """
    found = _pending(tx, new)
    if found is not None and found.expires_at > tx.now_us:
        tx.execute(_ASK_AGAIN, id=found.id)
        _note(tx, found.id, found.workspace_id, "asked", {"asks": found.asks + 1, "tool": found.tool})
        return get_approval(tx, found.id)
    if found is not None:
        move(tx, found, "expire")
    _check_room(tx, new)
    row = {name: getattr(new, name) for name in _ROW}
    approval_id = tx.new_id("apr_")
    tx.execute(
        _INSERT,
        **row,
        id=approval_id,
        accesses=json.dumps([dict(access) for access in new.accesses]),
        summary=tx.redact(new.summary),
        options=json.dumps(new.options),
        now=tx.now_us,
        expires_at=tx.now_us + new.ttl_us,
    )
    body = {name: row[name] for name in ("kind", "server", "tool", "action_hash", "input_digest", "subject_kind")}
    body["accesses"] = [access["text"] for access in new.accesses]
    _note(tx, approval_id, new.workspace_id, "asked", {**body, "asks": 1, "principal": new.principal})
    return get_approval(tx, approval_id)


def settle(tx: Tx, approval: Approval, choice: Choice, *, answered_by: str, proof: str, note: str) -> Approval:
    """Store the first answer; raises `Conflict` (`approval.settled`, `approval.expired`) for any later one."""
    check_open(approval, tx.now_us)
    state = APPROVAL_TRANSITIONS["pending", choice]
    answer = {"answer": choice, "answered_by": answered_by, "proof": proof, "note": tx.redact(note)[:500]}
    if not tx.execute(_SETTLE, id=approval.id, state=state, now=tx.now_us, **answer):
        check_open(get_approval(tx, approval.id), tx.now_us)
    _note(tx, approval.id, approval.workspace_id, "answered", {"state": state, **answer, "tool": approval.tool})
    return get_approval(tx, approval.id)


def check_open(approval: Approval, now_us: int) -> None:
    """Raise `Conflict` unless the question waits for an answer."""
    state = approval.state_at(now_us)
    if state == "pending":
        return
    if state == "expired":
        raise Conflict(
            "approval.expired", f"Approval {approval.id} has expired.", remedy="Repeat the call: it asks again."
        )
    first = {name: getattr(approval, name) for name in ("state", "answer", "answered_by", "proof", "answered_at")}
    said = f"{approval.answer} by {approval.answered_by}" if approval.answer else state
    raise Conflict(
        "approval.settled",
        f"Approval {approval.id} is settled: {said}.",
        remedy="The first answer holds; repeat the call to be asked anew.",
        details=first,
    )


def move(tx: Tx, approval: Approval, event: str) -> bool:
    """Settle a pending question without an answer: `expire`, `withdraw` or `supersede`; false if it was settled."""
    return _move(tx, approval.id, approval.workspace_id, event)


def execute(tx: Tx, approval: Approval, event: str) -> bool:
    """Move how far the approved call got; false where another transaction moved it first."""
    to_state = EXEC_TRANSITIONS.get((approval.exec_state, event))
    if to_state is None:
        return False
    changed = tx.execute(_EXECUTED, id=approval.id, from_state=approval.exec_state, to_state=to_state)
    if changed:
        _note(tx, approval.id, approval.workspace_id, "executed", {"exec_state": to_state})
    return bool(changed)


def expire_due(tx: Tx, *, most: int = 100) -> int:
    """Settle up to `most` overdue questions as expired; return how many."""
    rows = tx.all(_OVERDUE, now=tx.now_us, most=most)
    return sum(_move(tx, row["id"], row["workspace_id"], "expire") for row in rows)


def cancel_of_session(tx: Tx, session_id: str) -> int:
    """Cancel every open question of a session that ends; return how many."""
    rows = tx.all(_OF_SESSION, session_id=session_id)
    return sum(_move(tx, row["id"], row["workspace_id"], "withdraw") for row in rows)


def withdraw(tx: Tx, approval_id: str, *, by: str) -> Approval:
    """Take a question back; only its asker or the person may. Raises `Denied` for anybody else."""
    approval = get_approval(tx, approval_id)
    if by not in ("user", approval.principal):
        raise Denied(
            "approval.not_approver", f"{by} did not ask {approval_id}.", remedy="Only its asker can withdraw it."
        )
    check_open(approval, tx.now_us)
    move(tx, approval, "withdraw")
    return get_approval(tx, approval_id)


def _mend(tx: Tx, row: sqlite3.Row) -> None:
    execute(tx, get_approval(tx, row["ref"]), "found_at_start")


# what was let go and never ended is shown to a person, and never run again by itself
REPAIR = Repair("approval", "SELECT id AS ref FROM approvals WHERE exec_state = 'dispatching'", _mend)

_ROW = tuple(
    each.name
    for each in fields(NewApproval)
    if each.name not in ("accesses", "summary", "options", "ttl_us", "workspace_most")
)


def _pending(reading: Reading, new: NewApproval) -> Approval | None:
    if new.kind == "subject":
        row = reading.one(_PENDING_SUBJECT, subject_kind=new.subject_kind, subject_hash=new.subject_hash)
    else:
        row = reading.one(
            _PENDING_CALL,
            root_session_id=new.root_session_id,
            principal=new.principal,
            action_hash=new.action_hash,
            input_digest=new.input_digest,
        )
    return _approval(row)


def _check_room(reading: Reading, new: NewApproval) -> None:
    where: dict[str, Any] = {"workspace_id": new.workspace_id, "now": reading.now_us}
    if reading.value(_OPEN_IN_WORKSPACE, **where) >= new.workspace_most:
        raise _full("workspace", new.workspace_most)
    if new.session_id and reading.value(_OPEN_IN_SESSION, session_id=new.session_id, **where) >= SESSION_MOST:
        raise _full("session", SESSION_MOST)


def _full(noun: str, most: int) -> Exhausted:
    return Exhausted(
        "approval.full",
        f"This {noun} has {most} open questions about permissions, which is the most.",
        remedy="A person answers or refuses some: `agentstead permissions approvals` lists them.",
        retryable=True,
    )


def _move(tx: Tx, approval_id: str, workspace_id: str, event: str) -> bool:
    state = APPROVAL_TRANSITIONS["pending", event]
    unanswered = {"answer": "", "answered_by": "", "proof": "", "note": ""}
    changed = tx.execute(_SETTLE, id=approval_id, state=state, now=tx.now_us, **unanswered)
    if changed:
        _note(tx, approval_id, workspace_id, state, {})
    return bool(changed)


def _note(tx: Tx, approval_id: str, workspace_id: str, what: str, body: Mapping[str, Any]) -> None:
    tx.journal(f"permissions.approval.{what}", subject=approval_id, workspace=workspace_id, body=body)


def _approval(row: sqlite3.Row | None) -> Approval | None:
    if row is None:
        return None
    found = dict(row)
    found["accesses"] = tuple(json.loads(row["accesses"]))
    found["options"] = tuple(json.loads(row["options"]))
    return Approval(**found)
