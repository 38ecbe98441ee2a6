"""One rule of the policy: which accesses it speaks about, under which conditions, and how surely it matches."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from agentstead.policy.matchers import ArgumentTest, any_matches
from agentstead.policy.model import Access, CallFacts, Layer, Risk, RuleHit, Verdict

Match = Literal["none", "possible", "certain"]
Condition = Literal["actor", "principal", "host", "workspace", "label"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it stands in a file; `actions` and `tools` are empty where the rule selects by class alone.

    `tools` holds pairs of server and tool globs, compared as a pair and never joined.
    """

    id: str
    effect: Verdict
    layer: Layer
    file: str
    line: int
    actions: tuple[str, ...] = ()
    tools: tuple[tuple[str, str], ...] = ()
    classes: frozenset[Risk] = frozenset()
    arguments: tuple[ArgumentTest, ...] = ()
    closed: bool = False
    when: tuple[tuple[Condition, tuple[str, ...]], ...] = ()
    reason: str = ""
    instead: str = ""
    expires: date | None = None

    def hit(self) -> RuleHit:
        """Return what a decision keeps of this rule."""
        return RuleHit(self.id, self.layer, self.effect, self.file, self.line, self.reason, self.instead)

    def matches(self, access: Access, call: CallFacts) -> Match:
        """Tell how surely the rule speaks about an access; an expired one never does.

        What goes wrong inside a test never widens: it counts as possible for ask and deny, as no match for allow.
        """
        try:
            if not self.selects(access) or not self._in_time(call.now_us) or not self._conditions(call):
                return "none"
            return "certain" if self._arguments(call.arguments) else "none"
        except Exception:
            return "none" if self.effect == "allow" else "possible"

    @property
    def looks_deeper(self) -> bool:
        """Tell whether more than an access decides if the rule speaks: arguments, conditions or the date."""
        return bool(self.arguments or self.closed or self.when or self.expires)

    def selects(self, access: Access) -> bool:
        """Tell whether the rule's selector covers an access, whatever its conditions say."""
        if self.classes and access.risk not in self.classes:
            return False
        if self.actions:
            return access.kind == "action" and any_matches(self.actions, access.name)
        if self.tools:
            server, slash, tool = access.name.partition("/")
            pairs = self.tools if access.kind == "mcp" and slash else ()
            return any(any_matches((s,), server) and any_matches((t,), tool) for s, t in pairs)
        return bool(self.classes)

    def _in_time(self, now_us: int) -> bool:
        return self.expires is None or datetime.fromtimestamp(now_us / 1e6, UTC).date() <= self.expires

    def _conditions(self, call: CallFacts) -> bool:
        return all(any(any_matches(globs, text) for text in _texts(name, call)) for name, globs in self.when)

    def _arguments(self, arguments: Mapping[str, object]) -> bool:
        if self.closed and self.effect == "allow":
            named = {test.pointer.split("/")[1] for test in self.arguments}
            if set(arguments) - named:
                return False
        return all(test.holds(arguments) for test in self.arguments)


def _texts(condition: Condition, call: CallFacts) -> tuple[str, ...]:
    """Return the values of a call that a condition looks at; no value at all meets no condition."""
    principal = call.principal
    match condition:
        case "actor":
            return (principal.name.partition("@")[0],) if principal.kind == "agent" else ()
        case "principal":
            return (principal.kind,)
        case "host":
            return (principal.claims.client_name,) if principal.claims.client_name else ()
        case "workspace":
            return (call.workspace_id,) if call.workspace_id else ()
        case "label":
            return tuple(call.labels)
