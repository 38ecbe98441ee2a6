"""Who may write what: one table of callers and kinds of memory, and the trust that a write ends up with."""

from dataclasses import dataclass
from typing import Literal

from agentstead.memory.intents import Intent
from agentstead.memory.scopes import Reach
from agentstead.memory.vocabulary import BEHAVIOURAL, Channel, Trust

Right = Literal["accepted", "pending", "refused"]
Caller = Literal["person", "agent", "spawned", "brought", "foreign"]
Kind = Literal["behavioural", "home", "own", "turn"]

# Rows: who calls. Columns: behavioural types; other types at home; other types in the caller's own workspace or agent
# scope; turns of its own session.
TABLE: dict[Caller, dict[Kind, Right]] = {
    "person": {"behavioural": "accepted", "home": "accepted", "own": "accepted", "turn": "accepted"},
    "agent": {"behavioural": "pending", "home": "pending", "own": "accepted", "turn": "accepted"},
    "spawned": {"behavioural": "refused", "home": "pending", "own": "pending", "turn": "accepted"},
    "brought": {"behavioural": "pending", "home": "pending", "own": "pending", "turn": "accepted"},
    "foreign": {"behavioural": "refused", "home": "refused", "own": "pending", "turn": "accepted"},
}
BROUGHT: frozenset[Channel] = frozenset({"folder", "import", "extension", "consolidation"})


@dataclass(frozen=True, slots=True)
class Authority:
    """What the table says of one write."""

    right: Right
    caller: Caller
    kind: Kind
    trust: Trust


def authority(intent: Intent, reach: Reach, *, channel: Channel, confirmed: bool) -> Authority:
    """Return the right and the trust of a write; `confirmed` says that a person accepted exactly this."""
    caller = caller_of(reach, channel=channel, confirmed=confirmed)
    kind = kind_of(intent)
    right = TABLE[caller][kind]
    trust = Trust.PERSON if caller == "person" else _own_trust(reach, caller)
    if any(each.passed for each in intent.evidence):
        trust = max(trust, Trust.CHECKED)
    if reach.taint and caller != "person":
        trust = Trust.FOREIGN
    return Authority(right, caller, kind, trust)


def caller_of(reach: Reach, *, channel: Channel, confirmed: bool) -> Caller:
    """Return the row of the table."""
    if confirmed or reach.person:
        return "person"
    if channel == "network":
        return "foreign"
    if channel in BROUGHT or reach.kind == "extension":
        return "brought"
    return "spawned" if reach.depth > 0 else "agent"


def kind_of(intent: Intent) -> Kind:
    """Return the column of the table."""
    if intent.type in BEHAVIOURAL:
        return "behavioural"
    if intent.scope.kind == "session" and intent.type == "episode":
        return "turn"
    return "home" if intent.scope.kind == "home" else "own"


def _own_trust(reach: Reach, caller: Caller) -> Trust:
    return Trust.FOREIGN if caller in ("brought", "foreign") else reach.trust
