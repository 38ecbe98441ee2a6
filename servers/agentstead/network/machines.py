"""Closed sets of the network tables and the work machine, as data: tests compare them with the migrations' CHECKs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from agentstead.network.wire.envelope import Envelope, Trust
from agentstead.network.wire.grammar import KINDS, SURFACES, WORK_STATES, WorkState
from agentstead.network.wire.refusal import LOCAL_CODES, REASONS, Refused

ChannelIdentity = Literal["plain", "signed"]
ChannelTrustPolicy = Literal["any", "flag", "verified_only"]
ChannelState = Literal["open", "archived"]
ChannelStrategy = Literal["named", "run", "loop_run"]
PeerKind = Literal["session", "human", "runtime", "foreign"]
Presence = Literal["joined", "left", "fresh", "stale"]
OwnerKind = Literal["session", "run", "loop_run", "automation_run"]
Mode = Literal["local", "live"]
ParticipationSource = Literal[
    "explicit_request", "task_profile", "loop_definition", "automation_job", "workspace_coordination", "built_in_local"
]
Origin = Literal["local", "carrier"]
ThreadView = Literal["open", "archived"]
Decision = Literal["deliver", "ignore"]
DeliveryReason = Literal["addressed", "mentioned", "participant", "member", "muted", "not_addressed", "held"]
SkipReason = Literal["absent", "unknown", "addressed_elsewhere", "self"]

PRESENT: Final[frozenset[Presence]] = frozenset({"joined", "fresh"})

# (table, column) -> the set that its CHECK lists
CLOSED_SETS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = MappingProxyType(
    {
        ("net_channel", "identity"): get_args(ChannelIdentity),
        ("net_channel", "trust_policy"): get_args(ChannelTrustPolicy),
        ("net_channel", "state"): get_args(ChannelState),
        ("net_channel", "strategy"): get_args(ChannelStrategy),
        ("net_peer", "kind"): get_args(PeerKind),
        ("net_peer", "presence"): get_args(Presence),
        ("net_peer", "owner_kind"): ("", *get_args(OwnerKind)),
        ("net_participation", "owner_kind"): get_args(OwnerKind),
        ("net_participation", "mode"): get_args(Mode),
        ("net_participation", "source"): get_args(ParticipationSource),
        ("net_message", "kind"): KINDS,
        ("net_message", "surface"): SURFACES,
        ("net_message", "trust"): get_args(Trust),
        ("net_message", "origin"): get_args(Origin),
        ("net_thread", "view"): get_args(ThreadView),
        ("net_delivery", "decision"): get_args(Decision),
        ("net_delivery", "reason"): get_args(DeliveryReason),
        ("net_work", "surface"): SURFACES,
        ("net_work", "state"): WORK_STATES,
        ("net_work_step", "to_state"): WORK_STATES,
        ("net_reject", "origin"): get_args(Origin),
        ("net_reject", "reason_code"): REASONS,
        ("net_reject", "local_code"): ("", *LOCAL_CODES),
    }
)

TERMINAL: Final[frozenset[WorkState]] = frozenset({"completed", "failed", "canceled"})

WorkEvent = Literal[
    "talk_by_initiator",
    "talk_by_target",
    "receipt_accepted",
    "receipt_rejected",
    "receipt_canceled",
    "receipt_duplicate",
    "receipt_expired",
    "receipt_unsupported",
    "trace_submitted",
    "trace_working",
    "trace_needs_input",
    "trace_completed",
    "trace_failed",
    "trace_canceled",
]
WORK_EVENTS: Final[tuple[WorkEvent, ...]] = get_args(WorkEvent)
OPEN_STATES: Final[tuple[WorkState, ...]] = tuple(state for state in WORK_STATES if state not in TERMINAL)

_SAME: Final[Mapping[WorkState, WorkState]] = {state: state for state in OPEN_STATES}


def _all_to(state: WorkState) -> Mapping[WorkState, WorkState]:
    return dict.fromkeys(OPEN_STATES, state)


# Section 10 of the protocol; a pair that is missing here is refused as `invalid_transition`.
WORK: Final[Mapping[WorkEvent, Mapping[WorkState, WorkState]]] = MappingProxyType(
    {
        "talk_by_initiator": {**_SAME, "needs_input": "working"},
        "talk_by_target": _SAME,
        "receipt_accepted": {**_SAME, "submitted": "working"},
        "receipt_rejected": _all_to("failed"),
        "receipt_canceled": _all_to("canceled"),
        "receipt_duplicate": _SAME,
        "receipt_expired": _SAME,
        "receipt_unsupported": _SAME,
        "trace_submitted": {},
        "trace_working": _all_to("working"),
        "trace_needs_input": _all_to("needs_input"),
        "trace_completed": _all_to("completed"),
        "trace_failed": _all_to("failed"),
        "trace_canceled": _all_to("canceled"),
    }
)

_RECEIPTS: Final[Mapping[str, WorkEvent]] = {
    event.removeprefix("receipt_"): event for event in WORK_EVENTS if event.startswith("receipt_")
}
_TRACES: Final[Mapping[str, WorkEvent]] = {
    event.removeprefix("trace_"): event for event in WORK_EVENTS if event.startswith("trace_")
}


def work_event(envelope: Envelope, *, by_initiator: bool) -> WorkEvent:
    """Return what a message that names a work does to it."""
    if envelope.kind == "receipt":
        return _RECEIPTS[envelope.body["status"]]
    if envelope.kind == "trace":
        return _TRACES[envelope.body["state"]]
    return "talk_by_initiator" if by_initiator else "talk_by_target"


def next_work_state(state: WorkState, event: WorkEvent) -> WorkState:
    """Return the state after `event`.

    Raises `Refused`: `work_closed` from a terminal state, `invalid_transition` where the protocol has no way.
    """
    if state in TERMINAL:
        raise Refused("work_closed", what=f"The work is {state}; work that goes on needs a new work_id.")
    after = WORK[event].get(state)
    if after is None:
        raise Refused("malformed", "invalid_transition", what=f"{event} never applies to work that exists.")
    return after
