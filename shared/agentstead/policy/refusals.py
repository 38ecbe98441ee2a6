"""The words of a refusal and of a question that waits: what, by which rule, and what to do next. Values stay out."""

from agentstead.policy.approvals import Approval
from agentstead.policy.audit import Judged
from agentstead.state import Denied, PendingAnswer


def refusal(judged: Judged, decision_id: str) -> Denied:
    """Return the error of a denied call; its text names the access, the rule and where it stands."""
    how = f"permission_explain(decision_id={decision_id!r}) says why and what would allow it."
    if judged.outcome == "headless":
        return Denied(
            "permission.headless",
            f"{judged.call.tool} needs a person's answer, and this home refuses what nobody is there to answer.",
            remedy=f"Ask the person to run it, or to allow it by a rule. {how}",
            details={"decision_id": decision_id},
        )
    decision = judged.decision
    ruled = next((each for each in decision.accesses if each.verdict == "deny"), decision.accesses[0])
    denying = [rule for rule in ruled.rules if rule.effect == "deny"]
    by = ", ".join(f"rule {rule.id} ({rule.layer}, {rule.file}:{rule.line})" for rule in denying)
    said = "".join(f" {rule.reason}" for rule in denying if rule.reason)
    instead = "".join(f" Instead: {rule.instead}" for rule in denying if rule.instead)
    return Denied(
        "permission.denied",
        f"{ruled.access.text} is denied by {by or _without_rule(judged)}.{said}",
        remedy=f"{how}{instead}",
        details={"decision_id": decision_id, "access": ruled.access.text, "reasons": list(decision.reasons)},
    )


def pending(approval: Approval, what: str) -> PendingAnswer:
    """Return the error of a call that waits for a person, with the one command that answers it."""
    command = f"agentstead answer {approval.id}"
    return PendingAnswer(
        "permission.pending",
        f"{what}: question {approval.id} waits.",
        remedy=f"A person answers with `{command}` or in a host that they trust; then repeat the same call.",
        retryable=True,
        details={"approval_id": approval.id, "expires_at": approval.expires_at, "answer": command},
    )


def lost(tool: str, why: str) -> Denied:
    """Return the error of a call whose permission ended between its judgement and its first change."""
    return Denied(
        "permission.denied",
        f"{tool} lost its permission before its first change: {why}.",
        remedy="Repeat the call: it is judged anew.",
        retryable=True,
    )


def _without_rule(judged: Judged) -> str:
    return "a person's standing no" if judged.grant_id else f"the default ({', '.join(judged.decision.reasons)})"
