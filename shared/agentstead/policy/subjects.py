"""Approvals of subjects: a person's yes to exactly what a hash covers, used once in the transaction of its effect."""

from agentstead.identity.principals import Principal
from agentstead.policy.approvals import Approval, NewApproval, ask, execute, find_approval, settle
from agentstead.policy.machines import DAY_US, DENIED_HOLDS_US, SECOND_US, SUBJECT_CHOICES, SUBJECT_KINDS, SubjectKind
from agentstead.policy.question import subject_text
from agentstead.state import Conflict, Denied, Invalid, Reading, Tx

TTL_S = DAY_US // SECOND_US
WORKSPACE_MOST = 200

_LATEST = """
SELECT id
FROM approvals
WHERE kind = 'subject'
    AND subject_kind = :subject_kind
    AND subject_hash = :subject_hash
ORDER BY created_at DESC, id DESC
LIMIT 1
"""


def subject_ask(
    tx: Tx,
    kind: SubjectKind,
    subject_hash: str,
    *,
    question: str,
    asker: Principal,
    workspace_id: str = "",
    session_id: str = "",
    expires_s: int = TTL_S,
) -> Approval:
    """Return the approval of a subject: the allowed one that is still to be used, the open one, or a new one.

    A person who calls from a terminal of their own has answered by calling. Raises `Denied` while a person's no is
    fresh.
    """
    if kind not in SUBJECT_KINDS or not subject_hash:
        raise Invalid(
            "tool.invalid_arguments",
            f"{kind!r} with an empty hash is no subject.",
            remedy=f"Kinds: {', '.join(SUBJECT_KINDS)}.",
        )
    latest = latest_subject(tx, kind, subject_hash)
    if latest is not None and _usable(latest, tx.now_us):
        return latest
    if latest is not None:
        refuse_fresh_denial(latest, tx.now_us)
    text = subject_text(question, asker=asker.text, options=SUBJECT_CHOICES, redact=tx.redact)
    approval = ask(
        tx,
        NewApproval(
            kind="subject",
            subject_kind=kind,
            subject_hash=subject_hash,
            summary=text,
            principal=asker.text,
            options=SUBJECT_CHOICES,
            ttl_us=expires_s * SECOND_US,
            workspace_most=WORKSPACE_MOST,
            session_id=session_id,
            root_session_id=session_id,
            workspace_id=workspace_id,
        ),
    )
    if asker.kind != "user" or asker.proof is None:
        return approval
    return settle(tx, approval, "allow_once", answered_by=asker.text, proof=asker.proof, note="")


def latest_subject(reading: Reading, kind: SubjectKind, subject_hash: str) -> Approval | None:
    """Return the newest approval of a subject, whatever its state."""
    found = reading.value(_LATEST, subject_kind=kind, subject_hash=subject_hash)
    return None if found is None else find_approval(reading, found)


def subject_use(tx: Tx, approval_id: str, subject_hash: str) -> Approval:
    """Spend the approval of a subject in this transaction, once.

    Raises `Conflict` with `approval.stale` for another hash, one that is not allowed, spent or expired.
    """
    approval = find_approval(tx, approval_id)
    reason = "there is none" if approval is None else _stale(approval, subject_hash, tx.now_us)
    if approval is None or reason or not (execute(tx, approval, "dispatch")):
        raise Conflict(
            "approval.stale",
            f"Approval {approval_id[:40]} does not cover this: {reason or 'it was used'}.",
            remedy="Repeat the call: it asks about the present state.",
            retryable=True,
        )
    used = find_approval(tx, approval_id)
    assert used is not None
    execute(tx, used, "complete")
    return used


def refuse_fresh_denial(approval: Approval, now_us: int) -> None:
    """Raise `Denied` where a person said no a moment ago: the very next attempt does not ask again."""
    if approval.state != "denied" or now_us >= (approval.answered_at or 0) + DENIED_HOLDS_US:
        return
    said = f" They said: {approval.note}" if approval.note else ""
    raise Denied(
        "permission.denied",
        f"A person refused this ({approval.answer}).{said}",
        remedy="Do something else, or talk with the person first; after a minute the call may be asked about again.",
        details={"approval_id": approval.id},
    )


def _usable(approval: Approval, now_us: int) -> bool:
    return approval.state == "allowed" and approval.exec_state == "none" and approval.expires_at > now_us


def _stale(approval: Approval, subject_hash: str, now_us: int) -> str:
    if approval.kind != "subject" or approval.subject_hash != subject_hash:
        return "what it approved has changed"
    if approval.exec_state != "none":
        return "it was used"
    if approval.expires_at <= now_us:
        return "it has expired"
    return "" if approval.state == "allowed" else f"it is {approval.state}"
