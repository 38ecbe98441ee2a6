"""Turn a ruling into an answer: the skill that a name stands for, or the error that says why not and what helps."""

from typing import Final

from agentstead.kit import Call
from agentstead.skills.resolver import Resolution
from agentstead.skills.rulings import Ruled, Ruling
from agentstead.state import AgentsteadError, Denied, Invalid

_CODES: Final[dict[Ruling, tuple[type[AgentsteadError], str, str]]] = {
    Ruling.INVALID: (Invalid, "skill.invalid", "cannot be read"),
    Ruling.UNTRUSTED: (Denied, "skill.untrusted", "stands in a workspace whose skills nobody trusted"),
    Ruling.DISABLED: (Denied, "skill.disabled", "is switched off"),
    Ruling.QUARANTINED: (Denied, "skill.quarantined", "is quarantined"),
    Ruling.BLOCKED: (Denied, "skill.blocked", "is blocked"),
    Ruling.INACTIVE: (Denied, "skill.inactive", "does not apply here"),
    Ruling.SHADOWED: (Denied, "skill.ambiguous", "stands behind another of the same name and place"),
    Ruling.NEEDS_CONSENT: (Denied, "skill.needs_consent", "waits for a person's consent to this content"),
}


def admit(resolution: Resolution, name: str, *, consenting: bool = False) -> Ruled:
    """Return the served skill of a name; with ``consenting`` also one that only lacks a person's consent.

    Raises NotFound (``skill.not_found``), Denied or Invalid with the code of its ruling.
    """
    found = resolution.named(name)[0]
    ruling = effective(found, name)
    if ruling is Ruling.SERVED or (consenting and ruling is Ruling.NEEDS_CONSENT):
        return found
    raise refused(found, ruling)


def effective(found: Ruled, name: str) -> Ruling:
    """Return the ruling that counts for this spelling: a qualified name reaches behind skills of other origins."""
    return found.by_itself if ":" in name else found.ruling


def for_person_only(call: Call, found: Ruled) -> bool:
    """Say whether the skill's author keeps it from this caller: agents and hosts may not take it up by themselves."""
    document = found.candidate.document
    return document is not None and document.user_only and call.principal.kind != "user"


def require_person(call: Call, found: Ruled) -> None:
    """Raise Denied (``skill.user_only``) for a skill that its author keeps from this caller."""
    if not for_person_only(call, found):
        return
    name = found.candidate.qualified_name
    raise Denied(
        "skill.user_only",
        f"{name} may be activated by a person only, its author says.",
        remedy=f"A person picks the prompt use_skill, or runs `agentstead skills activate {name}`.",
    )


def refused(found: Ruled, ruling: Ruling) -> AgentsteadError:
    """Return the error for a skill that is not served."""
    error, code, words = _CODES[ruling]
    reasons = [reason for reason in found.reasons if not reason.startswith("shadowed_by:")]
    because = f" ({', '.join(reasons)})" if reasons else ""
    return error(
        code,
        f"{found.candidate.qualified_name} {words}{because}.",
        remedy=found.fix or "skill_explain says more.",
        details={"ruling": ruling.value, "reasons": reasons, "path": str(found.candidate.shown)},
    )
