"""Answering a question: who may, which choices are offered, and the grant that an answer makes."""

from collections.abc import Collection

from agentstead.identity.principals import Principal, Proof
from agentstead.policy.approvals import Approval, check_open, get_approval, settle
from agentstead.policy.approvers import check_approver
from agentstead.policy.grants import NewGrant, create_grant
from agentstead.policy.machines import ANSWERS, CHOICES, UNTIL_MOST_US, USES_MOST, Answer, Choice
from agentstead.policy.model import action_hash_of
from agentstead.state import Invalid, Tx


def options_for(*, session_id: str, workspace_id: str, reusable: bool) -> tuple[Choice, ...]:
    """Return the answers that make sense for a call; not `reusable`: its accesses say too little to be repeated."""
    offered = [choice for choice in CHOICES if reusable or choice in ("allow_once", "deny_once")]
    if not session_id and "allow_session" in offered:
        offered.remove("allow_session")
    if not workspace_id and "allow_workspace" in offered:
        offered.remove("allow_workspace")
    return tuple(offered)


def answer(
    tx: Tx,
    approval_id: str,
    choice: str,
    *,
    by: Principal,
    proof: Proof,
    note: str = "",
    until_us: int | None = None,
    uses: int | None = None,
    trusted_hosts: Collection[str] = (),
) -> Approval:
    """Settle a pending question and make the grant of the answer, in one transaction.

    Raises `NotFound` (`approval.not_found`), `Denied` (`approval.self`, `approval.not_approver`), `Conflict`
    (`approval.settled`, `approval.expired`) or `Invalid` (a choice that is not offered, bounds of a grant).
    """
    approval = get_approval(tx, approval_id)
    check_approver(tx, asker=approval.principal, by=by, proof=proof, trusted_hosts=trusted_hosts)
    check_open(approval, tx.now_us)
    chosen = _offered(approval, choice)
    grant = _grant(approval, chosen, now_us=tx.now_us, until_us=until_us, uses=uses)
    settled = settle(tx, approval, chosen, answered_by=by.text, proof=proof, note=note)
    if grant is not None:
        create_grant(tx, grant)
    return settled


def _offered(approval: Approval, choice: str) -> Choice:
    for option in approval.options:
        if option == choice:
            return option
    raise Invalid(
        "tool.invalid_arguments",
        f"{choice[:40]!r} is no answer to {approval.id}.",
        remedy=f"Choose one of {', '.join(approval.options)}.",
    )


def _grant(
    approval: Approval, choice: Choice, *, now_us: int, until_us: int | None, uses: int | None
) -> NewGrant | None:
    terms = ANSWERS[choice]
    if terms.effect is None or approval.kind == "subject":
        return None
    exact = approval.action_hash
    if terms.scope == "workspace":
        exact = action_hash_of(approval.server, approval.tool, (access["text"] for access in approval.accesses))
    return NewGrant(
        effect=terms.effect,
        scope=terms.scope,
        match_kind="input" if terms.scope == "once" else "exact",
        pattern=f"{exact}:{approval.input_digest}" if terms.scope == "once" else exact,
        expires_at=_expiry(choice, terms, now_us=now_us, until_us=until_us),
        approval_id=approval.id,
        policy_revision=approval.policy_revision,
        session_id=approval.session_id if terms.scope in ("once", "session") else "",
        workspace_id=approval.workspace_id,
        actor=approval.principal if terms.scope in ("once", "session") else "",
        uses_left=_uses(choice, uses),
    )


def _expiry(choice: Choice, terms: Answer, *, now_us: int, until_us: int | None) -> int:
    if choice != "allow_until":
        return now_us + terms.lasts_us
    if until_us is None or until_us <= now_us:
        raise Invalid(
            "grant.expiry_required",
            "This answer needs a date in the future.",
            remedy="Give one at most 90 days from now.",
        )
    if until_us > now_us + UNTIL_MOST_US:
        raise Invalid("grant.too_wide", "A grant lasts 90 days at most.", remedy="Give an earlier date.")
    return until_us


def _uses(choice: Choice, uses: int | None) -> int | None:
    if choice == "allow_once":
        return 1
    if choice != "allow_uses":
        return None
    if uses is None or not 1 <= uses <= USES_MOST:
        raise Invalid("grant.too_wide", "This answer needs a number of uses.", remedy=f"Give 1 to {USES_MOST}.")
    return uses
