"""The closed sets and state machines of this server as data; the tables' CHECK sets are compared with them by a test.

A pair that is not listed is refused as `<noun>.transition_refused` with the legal events.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from agentstead.state import Conflict

SessionKind = Literal["recorded", "driven", "spawned", "system"]
SessionState = Literal["open", "closed", "archived"]
Driver = Literal["none", "starting", "idle", "prompting", "stopping", "stopped", "failed"]
TurnState = Literal["reserved", "sent", "completed", "failed", "interrupted", "canceled", "uncertain"]
EventKind = Literal[
    "prompt",
    "reply",
    "thought",
    "tool_call",
    "tool_result",
    "plan",
    "usage",
    "marker",
    "question",
    "answer",
    "note",
    "system",
    "error",
]
Priority = Literal["low", "medium", "high", "urgent"]
TaskStatus = Literal[
    "draft", "pending", "ready", "blocked", "in_progress", "needs_attention", "completed", "failed", "canceled"
]
Effects = Literal["contained", "idempotent", "external"]
WorkspaceMode = Literal["none", "read", "live", "fork"]
OwnerKind = Literal["task", "cell", "check", "wake", "team"]
Pool = Literal["host", "push", "engine"]
RunState = Literal["queued", "leased", "proving", "stopping", "attention", "completed", "failed", "canceled", "lost"]
EffectClass = Literal["pure", "contained", "idempotent", "compensable", "irreversible"]
EffectState = Literal["intent", "done", "undone", "unknown"]
BlockKind = Literal["needs_input", "capability", "transient"]

PRIORITIES: Mapping[Priority, int] = {"low": 10, "medium": 20, "high": 30, "urgent": 40}
OPEN_RUN_STATES: tuple[RunState, ...] = ("queued", "leased", "proving", "stopping", "attention")

# (table, column) -> the set that its CHECK lists
CHECK_SETS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("sessions", "kind"): get_args(SessionKind),
    ("sessions", "state"): get_args(SessionState),
    ("sessions", "driver"): get_args(Driver),
    ("turns", "state"): get_args(TurnState),
    ("turns", "effect_class"): get_args(EffectClass),
    ("events", "kind"): get_args(EventKind),
    ("tasks", "priority"): get_args(Priority),
    ("tasks", "status"): get_args(TaskStatus),
    ("tasks", "effects"): get_args(Effects),
    ("tasks", "workspace_mode"): get_args(WorkspaceMode),
    ("task_blocks", "kind"): get_args(BlockKind),
    ("runs", "owner_kind"): get_args(OwnerKind),
    ("runs", "pool"): get_args(Pool),
    ("runs", "state"): get_args(RunState),
    ("run_effects", "class"): get_args(EffectClass),
    ("run_effects", "state"): get_args(EffectState),
}

Transitions = Mapping[tuple[str, str], str]

SESSION: Transitions = {
    ("open", "open"): "open",
    ("open", "close"): "closed",
    ("closed", "open"): "open",
    ("closed", "close"): "closed",
    ("closed", "archive"): "archived",
    ("archived", "unarchive"): "closed",
}

RUN: Transitions = {
    ("queued", "claim"): "leased",
    ("leased", "renew"): "leased",
    ("leased", "complete"): "completed",
    ("leased", "fail"): "failed",
    ("leased", "release"): "queued",
    ("leased", "lose"): "lost",
    ("queued", "cancel"): "canceled",
    ("leased", "cancel"): "canceled",
    ("attention", "recover"): "queued",
    ("attention", "fail"): "failed",
    ("attention", "cancel"): "canceled",
}


def step(machine: Transitions, noun: str, ref: str, *, state: str, event: str) -> str:
    """Return the state that `event` leads to; raises `Conflict` with the events that are legal now."""
    found = machine.get((state, event))
    if found is not None:
        return found
    legal = sorted(known for at, known in machine if at == state)
    raise Conflict(
        f"{noun}.transition_refused",
        f"{noun.capitalize()} {ref} is {state}: {event} is not possible.",
        remedy=f"Possible now: {', '.join(legal) or 'nothing; it has ended'}.",
        details={"state": state, "legal": legal},
    )
