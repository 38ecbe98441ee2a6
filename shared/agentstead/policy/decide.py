"""The decision: accesses, rules and axes in; verdicts with reasons out. Pure, and independent of the order of rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentstead.policy.axes import DEFAULT, Axes, default_verdict
from agentstead.policy.model import LAYERS, Access, CallFacts, Decision, Layer, Ruled, Verdict, is_looser, strictest
from agentstead.policy.rules import Match, Rule

# a layer that may never turn an access to allow, whatever its rules say
NEVER_ALLOW: frozenset[Layer] = frozenset({"builtin", "session"})
REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All rules in force, as one revision.

    `broken`: layers of which no state ever loaded (every access is then at least ask); `stale`: layers whose files are
    refused now, so that their last good state holds. `untrusted`: layers that may only narrow.
    """

    revision: str
    rules: tuple[Rule, ...]
    axes: Axes = DEFAULT
    broken: tuple[Layer, ...] = ()
    stale: tuple[Layer, ...] = ()
    untrusted: frozenset[Layer] = frozenset()
    managed_only: bool = False


def accesses_of(call: CallFacts) -> tuple[Access, ...]:
    """Return what a call does: an action of ours, or a tool of somebody else's server (external, whatever it says)."""
    if call.door == "own":
        return (Access("action", call.action, call.risk),)
    return (Access("mcp", call.action, "external"),)


def decide(policy: PolicySet, call: CallFacts, accesses: Sequence[Access] | None = None) -> Decision:
    """Judge a call: the strictest verdict over its accesses; a call without any is ask."""
    found = accesses_of(call) if accesses is None else accesses
    ruled = tuple(rule_access(policy, access, call) for access in found)
    return Decision(strictest(each.verdict for each in ruled), ruled, policy.revision, policy.stale)


class Decider:
    """Decide under one policy set, and remember what depends on nothing but action, class and door.

    Where a rule that may speak looks deeper (arguments, conditions, a date), each call is decided anew.
    """

    def __init__(self, policy: PolicySet) -> None:
        self.policy = policy
        self._known: dict[tuple[str, str, str], Decision | None] = {}

    def decide(self, call: CallFacts) -> Decision:
        """Return what `decide` returns."""
        key = (call.action, call.risk, call.door)
        known = self._known.get(key, False)
        if isinstance(known, Decision):
            return known
        decision = decide(self.policy, call)
        if known is False:
            self._remember(key, call, decision)
        return decision

    def _remember(self, key: tuple[str, str, str], call: CallFacts, decision: Decision) -> None:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        accesses = accesses_of(call)
        deeper = any(rule.looks_deeper and rule.selects(each) for rule in self.policy.rules for each in accesses)
        self._known[key] = None if deeper else decision


def rule_access(policy: PolicySet, access: Access, call: CallFacts) -> Ruled:
    """Judge one access: rules and floors first, an entitled allow next, the axis last."""
    hits = [(rule, match) for rule in policy.rules if (match := rule.matches(access, call)) != "none"]
    hits.sort(key=lambda hit: (LAYERS.index(hit[0].layer), hit[0].file, hit[0].id))
    reasons: list[str] = []
    verdicts: list[Verdict] = []
    for rule, match in hits:
        if rule.effect != "allow":
            verdicts.append("deny" if rule.effect == "deny" and match == "certain" else "ask")
            reasons.append("rule.possible" if match == "possible" else f"rule.{rule.effect}")
    if policy.broken:
        verdicts.append("ask")
        reasons.append("layer.broken")
    reasons.extend("layer.stale" for _ in policy.stale)
    allowing, refused = _allowing(policy, hits)
    reasons.extend(refused)
    default = default_verdict(policy.axes.risk or "ask-all", access.risk)
    if allowing:
        verdict = strictest(verdicts) if verdicts else "allow"
        reasons.extend([] if verdicts else ["rule.allow"])
    else:
        # an ask rule does not lift what the axis denies: more text in a lower layer must never loosen
        verdict = strictest([*verdicts, default])
        reasons.extend([] if verdicts and not is_looser(strictest(verdicts), default) else ["axis.risk"])
    return Ruled(access, verdict, tuple(sorted(set(reasons))), tuple(rule.hit() for rule, _ in hits), _per_layer(hits))


def _allowing(policy: PolicySet, hits: Sequence[tuple[Rule, Match]]) -> tuple[list[Rule], list[str]]:
    """Split the allow rules that match into those entitled to allow, and the reasons of those that are not."""
    entitled: list[Rule] = []
    reasons: list[str] = []
    for rule, match in hits:
        if rule.effect != "allow" or match != "certain":
            continue
        if rule.layer in NEVER_ALLOW or rule.layer in policy.untrusted:
            reasons.append("layer.untrusted")
        elif policy.managed_only and rule.layer != "managed":
            reasons.append("layer.managed_only")
        else:
            entitled.append(rule)
    return entitled, reasons


def _per_layer(hits: Sequence[tuple[Rule, Match]]) -> tuple[tuple[Layer, Verdict], ...]:
    spoken = {layer: [rule.effect for rule, _ in hits if rule.layer == layer] for layer in LAYERS}
    return tuple((layer, strictest(effects)) for layer, effects in spoken.items() if effects)
