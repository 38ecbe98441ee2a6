"""Judge candidates: a pure function of what was found and what is known, with every reason and the smallest way out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from agentstead.skills.candidates import Candidate, Origin
from agentstead.skills.diagnostics import Severity


class Ruling(StrEnum):
    """The resolver's answer for one candidate."""

    INVALID = "invalid"
    UNTRUSTED = "untrusted"
    DISABLED = "disabled"
    QUARANTINED = "quarantined"
    BLOCKED = "blocked"
    INACTIVE = "inactive"
    SHADOWED = "shadowed"
    NEEDS_CONSENT = "needs_consent"
    SERVED = "served"


# The others leave their name free: an untrusted repository must not be able to hide a person's own skill.
HOLDS_NAME: Final = frozenset({Ruling.BLOCKED, Ruling.QUARANTINED, Ruling.NEEDS_CONSENT, Ruling.SERVED})


class TrustMode(StrEnum):
    """How far a person trusts a workspace's skills: not, each content by itself, or whatever it becomes."""

    NONE = "none"
    CONTENT = "content"
    ALL = "all"


class Answer(StrEnum):
    """A person's recorded answer about one content of one skill."""

    YES = "yes"
    NO = "no"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Consent:
    """An answer for a content (tree id) and what it can do (capability digest)."""

    tree_id: str
    capability_digest: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the files.

    Trust in the workspace's skills, the tree ids and the folders it was given to, consents by origin key with the
    newest first, selectors that are switched off, the tree ids with which bundled skills were shipped by name, the
    names of this platform, the tools that exist, and whether an origin asks for consent.
    """

    trust: TrustMode = TrustMode.NONE
    trusted: frozenset[str] = frozenset()
    trusted_folders: frozenset[Path] = frozenset()
    consents: Mapping[str, tuple[Consent, ...]] = field(default_factory=dict)
    switched_off: frozenset[str] = frozenset()
    shipped: Mapping[str, str] = field(default_factory=dict)
    platforms: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    asks: Mapping[Origin, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ruled:
    """A candidate with its ruling; ``by_itself`` is what it would be if no other skill had its name."""

    candidate: Candidate
    ruling: Ruling
    by_itself: Ruling
    reasons: tuple[str, ...]
    fix: str


def rule(candidates: Iterable[Candidate], known: Known) -> tuple[Ruled, ...]:
    """Judge candidates in the order of their rank; the first that may hold a name has it."""
    holders: dict[str, Candidate] = {}
    ruled = []
    for candidate in sorted(candidates, key=lambda each: each.order):
        outcome = _rule(candidate, known, holder=holders.get(candidate.key))
        if outcome.ruling in HOLDS_NAME:
            holders.setdefault(candidate.key, candidate)
        ruled.append(outcome)
    return tuple(ruled)


def _rule(candidate: Candidate, known: Known, *, holder: Candidate | None) -> Ruled:
    failed = [(ruling, reasons) for ruling, check in _CHECKS if (reasons := check(candidate, known))]
    by_itself = failed[0][0] if failed else Ruling.SERVED
    if holder is not None:
        shadow = (Ruling.SHADOWED, (f"shadowed_by:{holder.origin}:{holder.shown}",))
        failed = sorted([*failed, shadow], key=lambda each: _ORDER[each[0]])
    ruling = failed[0][0] if failed else Ruling.SERVED
    reasons = tuple(reason for _, each in failed for reason in each)
    return Ruled(candidate, ruling, by_itself, reasons, _fix(candidate, ruling, holder))


def _invalid(candidate: Candidate, _known: Known) -> tuple[str, ...]:
    if candidate.judged is None or candidate.judged.document is not None:
        return ()
    errors = (each for each in candidate.judged.diagnostics if each.severity is Severity.ERROR)
    return tuple(dict.fromkeys(each.code for each in errors))


def _untrusted(candidate: Candidate, known: Known) -> tuple[str, ...]:
    if candidate.origin is not Origin.WORKSPACE or known.trust is not TrustMode.NONE:
        return ()
    return ("workspace_untrusted",)


def _disabled(candidate: Candidate, known: Known) -> tuple[str, ...]:
    if candidate.origin is Origin.MANAGED or candidate.selector not in known.switched_off:
        return ()
    return ("disabled_by_user",)


def _altered(candidate: Candidate, known: Known) -> tuple[str, ...]:
    if candidate.origin is not Origin.BUNDLED or known.shipped.get(candidate.name) == candidate.tree_id:
        return ()
    return ("content_changed",)


def _blocked(candidate: Candidate, _known: Known) -> tuple[str, ...]:
    refusal = candidate.refusal.reason if candidate.refusal else ""
    hidden = "scan_blocked" if candidate.unseen else ""
    return tuple(dict.fromkeys(reason for reason in (refusal, hidden) if reason))


def _inactive(candidate: Candidate, known: Known) -> tuple[str, ...]:
    document = candidate.document
    if document is None:
        return ()
    platforms = document.words("platforms")
    reasons = ["platform_mismatch"] if platforms and not known.platforms & set(platforms) else []
    if not set(document.words("requires-tools")) <= known.tools:
        reasons.append("missing_tool")
    return tuple(reasons)


def _needs_consent(candidate: Candidate, known: Known) -> tuple[str, ...]:
    tree_id = candidate.tree_id
    if not known.asks.get(candidate.origin, False) or tree_id in known.trusted:
        return ()
    if candidate.origin is Origin.WORKSPACE and known.trust is TrustMode.ALL:
        return ()
    consents = known.consents.get(candidate.origin_key, ())
    if not consents and candidate.shown in known.trusted_folders:
        return ("content_changed_since_consent",)
    return _missing_consent(consents, tree_id, candidate.capability_digest)


def _missing_consent(consents: tuple[Consent, ...], tree_id: str, capability_digest: str) -> tuple[str, ...]:
    """Say why no consent covers this content; ``consents`` have the newest first."""
    if not consents:
        return ("never_asked",)
    here = [each for each in consents if each.tree_id == tree_id]
    if not here:
        return ("content_changed_since_consent",)
    newest = here[0]
    if newest.capability_digest != capability_digest:
        return ("capability_grew",)
    by_answer = {Answer.NO: "refused", Answer.EXPIRED: "consent_expired", Answer.REVOKED: "never_asked"}
    return (by_answer[newest.answer],) if newest.answer in by_answer else ()


_Check = Callable[[Candidate, Known], tuple[str, ...]]
# Trust and switches come before content, so that content nobody wants can neither hide nor spoil a name.
_CHECKS: Final[tuple[tuple[Ruling, _Check], ...]] = (
    (Ruling.INVALID, _invalid),
    (Ruling.UNTRUSTED, _untrusted),
    (Ruling.DISABLED, _disabled),
    (Ruling.BLOCKED, _altered),
    (Ruling.BLOCKED, _blocked),
    (Ruling.INACTIVE, _inactive),
    (Ruling.NEEDS_CONSENT, _needs_consent),
)
_ORDER: Final = {ruling: at for at, ruling in enumerate(Ruling)}


def _fix(candidate: Candidate, ruling: Ruling, holder: Candidate | None) -> str:
    name = candidate.qualified_name
    match ruling:
        case Ruling.INVALID:
            return f"Correct {candidate.shown}/SKILL.md; skill_validate says what is wrong."
        case Ruling.UNTRUSTED:
            return "A person runs `agentstead trust workspace --skills content` in this workspace."
        case Ruling.DISABLED:
            return f"A person switches it on: `agentstead skills enable {candidate.selector}`."
        case Ruling.BLOCKED:
            return _unblock(candidate)
        case Ruling.INACTIVE:
            return "It is made for another platform or needs tools that are not here."
        case Ruling.SHADOWED:
            above = holder.qualified_name if holder else "the other one"
            return f"Activate it as {name!r}, or rename it: {above!r} comes first."
        case Ruling.NEEDS_CONSENT:
            return f"Activate it (skill_activate name={name!r}): a person is then asked about this content."
        case Ruling.QUARANTINED | Ruling.SERVED:
            return ""


def _unblock(candidate: Candidate) -> str:
    if candidate.origin is Origin.BUNDLED:
        return "Install Agentstead again: a file of this skill is not the one that was shipped."
    if candidate.refusal is not None:
        return f"Correct the folder {candidate.shown}. {candidate.refusal.message}"
    return f"Remove from {candidate.shown}/SKILL.md: {candidate.unseen}"
