"""The data of a decision: the facts of a call, its accesses, and what was decided about each with reasons.

Nothing here reads a file, a clock or the database.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import rfc8785

from agentstead.identity.principals import Principal
from agentstead.state import canonical_json, sha256_hex

FORMAT = 1
ENGINE = "agentstead.policy/1"

Verdict = Literal["allow", "ask", "deny"]
Risk = Literal["read", "write", "execute", "destructive", "external", "secret"]
Door = Literal["own", "gateway", "hook", "prompt", "runner", "check"]
Layer = Literal["builtin", "managed", "user", "workspace", "session"]
AccessKind = Literal[
    "exec", "fs.read", "fs.write", "fs.delete", "net", "env", "mcp", "action", "secret", "spawn", "opaque"
]
AccessOrigin = Literal["direct", "structure", "operand", "escalation"]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
RISKS: tuple[Risk, ...] = get_args(Risk)
LAYERS: tuple[Layer, ...] = get_args(Layer)
ESCALATED: frozenset[Risk] = frozenset({"execute", "destructive", "external", "secret"})

_RANK: Mapping[str, int] = {verdict: rank for rank, verdict in enumerate(VERDICTS)}


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the strictest of `verdicts`; allow < ask < deny, and none at all is ask."""
    return max(verdicts, key=_RANK.__getitem__, default="ask")


def is_looser(verdict: Verdict, than: Verdict) -> bool:
    """Tell whether `verdict` admits more than `than`."""
    return _RANK[verdict] < _RANK[than]


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What enforcement is told of one call, before its body runs.

    `action` and `risk` come from the operation's descriptor (for a tool of several actions: from its arguments).
    `arguments` are the validated ones, the very object that the body receives. `asks="subject"`: the body opens its own
    subject approval, so an ask verdict lets it run. `now_us` is the home clock's time. `workspace_name` is what the
    caller's environment names, where neither `workspace_id` nor an argument does. `why` is the caller's own word.
    """

    server: str
    tool: str
    action: str
    risk: Risk
    arguments: Mapping[str, Any]
    principal: Principal
    now_us: int
    door: Door = "own"
    kind: Literal["tool", "resource", "prompt"] = "tool"
    asks: Literal["enforcement", "subject"] = "enforcement"
    session_id: str = ""
    workspace_id: str = ""
    workspace_name: str = ""
    cwd: str = ""
    labels: frozenset[str] = frozenset()
    definition_digest: str = ""
    why: str = ""

    def input_digest(self) -> str:
        """Return the SHA-256 of the canonical JSON of the arguments."""
        return input_digest(self.arguments)


@dataclass(frozen=True, slots=True)
class Access:
    """One typed thing that a call does; `text` is its canonical form."""

    kind: AccessKind
    name: str
    risk: Risk
    origin: AccessOrigin = "direct"
    certain: bool = True

    @property
    def text(self) -> str:
        """Return the form used in answers, cases and grants: `action workspace.promote`."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class RuleHit:
    """A rule that spoke about an access, and where it stands."""

    id: str
    layer: Layer
    effect: Verdict
    file: str
    line: int
    reason: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Ruled:
    """An access with its verdict, every reason code, every rule that spoke, and each layer's own verdict."""

    access: Access
    verdict: Verdict
    reasons: tuple[str, ...]
    rules: tuple[RuleHit, ...] = ()
    layers: tuple[tuple[Layer, Verdict], ...] = ()
    grant_id: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the published form; a layer that said nothing is `none`."""
        spoken = dict(self.layers)
        return {
            "text": self.access.text,
            "class": self.access.risk,
            "origin": self.access.origin,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "rules": [
                {"id": r.id, "layer": r.layer, "effect": r.effect, "file": r.file, "line": r.line} for r in self.rules
            ],
            "layers": {layer: spoken.get(layer, "none") for layer in LAYERS},
            "grant_id": self.grant_id or None,
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """What policy says of a call: the strictest verdict over its accesses."""

    verdict: Verdict
    accesses: tuple[Ruled, ...]
    revision: str
    stale: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the distinct reason codes, in order."""
        return tuple(dict.fromkeys(code for ruled in self.accesses for code in ruled.reasons))

    @property
    def risk(self) -> Risk:
        """Return the worst class among the accesses."""
        return max((ruled.access.risk for ruled in self.accesses), key=RISKS.index, default="secret")


def input_digest(arguments: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a call's arguments.

    A value that RFC 8785 cannot carry (an integer past 2**53) falls back to sorted JSON under a mark of its own.
    """
    try:
        return sha256_hex(canonical_json(dict(arguments)))
    except rfc8785.CanonicalizationError:
        text = json.dumps(dict(arguments), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(b"sorted:" + text.encode("utf-8", "surrogatepass")).hexdigest()


def action_hash(call: CallFacts, accesses: Iterable[Access]) -> str:
    """Return what an exact grant binds: the tool, its definition, the place, and the sorted accesses."""
    texts = (access.text for access in accesses)
    place = (call.workspace_id, call.cwd)
    return action_hash_of(call.server, call.tool, texts, definition_digest=call.definition_digest, place=place)


def action_hash_of(
    server: str,
    tool: str,
    texts: Iterable[str],
    *,
    definition_digest: str = "",
    place: tuple[str, str] = ("", ""),
) -> str:
    """Return the hash of the canonical accesses of a tool; without a `place` (workspace, cwd) it holds in any."""
    parts = [FORMAT, server, tool, definition_digest, *place, sorted(set(texts))]
    return sha256_hex(canonical_json(parts))
