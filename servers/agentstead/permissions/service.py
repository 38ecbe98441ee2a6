"""What may be done and why: checking ahead, explaining afterwards, waiting for an answer, asking ahead, the status."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentstead.kit import Call, operation
from agentstead.permissions.calls import facts_for
from agentstead.permissions.results import (
    Answered,
    DecisionView,
    Explained,
    Requested,
    Status,
    answered,
    approval_object,
    grant_objects,
)
from agentstead.permissions.ways import ways
from agentstead.policy import (
    CallFacts,
    Decision,
    Enforcement,
    find_approval,
    find_decision,
    get_approval,
    list_approvals,
)
from agentstead.policy.axes import AXES, Axes
from agentstead.policy.known import Known
from agentstead.policy.layers import Loaded
from agentstead.policy.model import ENGINE, Verdict
from agentstead.state import Invalid, Reading, Tx

Part = Literal["axes", "grants", "pending", "all"]
Wanted = Literal["once", "session", "workspace"]

_ToolName = Annotated[str, Field(description="tree_promote, or server/tool.", max_length=260)]
_Arguments = Annotated[Mapping[str, Any], Field(description="Its arguments.")]
_Session = Annotated[str | None, Field(description="Its session.")]


class WantedCall(BaseModel):
    """One call that is to be allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str = Field(max_length=260)
    arguments: Mapping[str, Any] = Field(default_factory=dict)


@operation("permission_check", action="permissions.check", risk="read", title="Check a call", idempotent=True)
async def permission_check(
    call: Call,
    *,
    tool: _ToolName,
    arguments: _Arguments = {},  # noqa: B006 - read, never changed
    session_id: _Session = None,
    detail: Annotated[Literal["brief", "full"], Field(description="full: rules, layers.")] = "brief",
) -> DecisionView:
    """Use before a call that may be refused: would it be allowed, asked or denied, why, and what would allow it.
    Records nothing, asks nobody.
    """
    facts = facts_for(call, tool, arguments, session_id=session_id or "")
    decision, known = await call.read(_look, call.home.enforcement, facts)
    return _view(decision, known, full=detail == "full")


@operation("permission_explain", action="permissions.explain", risk="read", title="Explain a decision", idempotent=True)
async def permission_explain(
    call: Call,
    *,
    decision_id: Annotated[str | None, Field(description="pdc_ id.")] = None,
    approval_id: Annotated[str | None, Field(description="apr_ id.")] = None,
) -> Explained:
    """Use after a refusal or question: the rule and layer behind each verdict, and what would allow it. Give one id."""
    if (decision_id is None) == (approval_id is None):
        raise Invalid("tool.invalid_arguments", "Exactly one id is needed.", remedy="Give decision_id or approval_id.")
    return await call.read(_explain, decision_id or approval_id or "")


@operation("approval_get", action="permissions.approval_get", risk="read", title="Read an answer", idempotent=True)
async def approval_get(
    call: Call,
    *,
    approval_id: Annotated[str, Field(description="apr_ id.")],
    wait_s: Annotated[float, Field(description="Wait so long.", ge=0, le=25)] = 0,
) -> Answered:
    """Use after permission.pending: did a person answer, and what. When allowed, repeat the call."""
    approval = await call.read(get_approval, approval_id)
    deadline = time.monotonic() + wait_s
    while approval.state_at(call.home.clock.now_us()) == "pending" and (left := deadline - time.monotonic()) > 0:
        seen = (await call.home.state.head()).seq
        approval = await call.read(get_approval, approval_id)
        if approval.state == "pending":
            await call.home.state.wait(seen, kinds=("permissions.approval.*",), timeout_s=left)
            approval = await call.read(get_approval, approval_id)
    return answered(approval, call.home.clock.now_us())


@operation(
    "permission_request",
    action="permissions.request",
    risk="write",
    title="Ask ahead",
    idempotent=True,
)
async def permission_request(
    call: Call,
    *,
    calls: Annotated[Sequence[WantedCall], Field(description="{tool, arguments}.", min_length=1, max_length=20)],
    why: Annotated[str, Field(description="Shown to the person.", max_length=500)] = "",
    scope: Annotated[Wanted, Field(description="How long you need it.")] = "once",
    session_id: _Session = None,
) -> Requested:
    """Use when planned calls will be asked about: stores their questions now, to be answered before work starts."""
    wanted = f"{why} (for: {scope})".strip()
    facts = [
        replace(facts_for(call, each.tool, each.arguments, session_id=session_id or ""), why=wanted) for each in calls
    ]
    asked = await call.write(_ask_all(call.home.enforcement, facts))
    waiting = [each["approval_id"] for each in asked if each.get("approval_id")]
    how = "A person runs: " + "; ".join(f"agentstead answer {each}" for each in waiting) if waiting else None
    return Requested(calls=asked, how_to_answer=how)


@operation("permission_status", action="permissions.status", risk="read", title="Show the policy", idempotent=True)
async def permission_status(
    call: Call,
    *,
    session_id: _Session = None,
    part: Annotated[Part, Field(description="What to show.")] = "all",
) -> Status:
    """Use to see what holds here: defaults and who set them, faults of policy files, grants, open questions."""
    loaded = call.home.enforcement.layers.current(force=True)
    status = await call.read(_status, session_id or "", part)
    return status.model_copy(update={"policy": _policy(loaded)}) if part in ("axes", "all") else status


def _look(reading: Reading, enforcement: Enforcement, facts: CallFacts) -> tuple[Decision, Known]:
    return enforcement.look(reading, facts)


def _view(decision: Decision, known: Known, *, full: bool) -> DecisionView:
    verdict, notes = _with_grant(decision, known)
    accesses = [ruled.as_dict() for ruled in decision.accesses]
    shown = accesses if full else [{key: each[key] for key in ("text", "class", "verdict")} for each in accesses]
    return DecisionView(
        verdict=verdict,
        reasons=[*decision.reasons, *notes],
        accesses=shown,
        would_allow=ways(verdict, accesses),
        basis={
            "action_hash": known.keys.exact,
            "input_digest": known.input_digest,
            "policy_revision": decision.revision,
            "engine": ENGINE,
            "stale_layers": list(decision.stale),
        },
        grant_id=known.grant.id if known.grant is not None and decision.verdict == "ask" else None,
    )


def _with_grant(decision: Decision, known: Known) -> tuple[Verdict, list[str]]:
    """Return the verdict with what grants say; they are looked at only where the rules ask."""
    if decision.verdict != "ask":
        return decision.verdict, []
    if known.grant is None:
        return "ask", [known.miss]
    return ("allow", ["grant.used"]) if known.grant.effect == "allow" else ("deny", ["grant.deny"])


def _explain(reading: Reading, ref: str) -> Explained:
    found = find_decision(reading, ref)
    accesses: Sequence[Mapping[str, Any]] = found.entry["accesses"] if found.entry else ()
    approval = find_approval(reading, found.approval_id) if found.approval_id else None
    waits = approval is not None and approval.state_at(reading.now_us) == "pending"
    return Explained(
        decision_id=found.id,
        verdict=found.verdict,
        outcome=found.outcome,
        reasons=found.reasons,
        accesses=accesses,
        would_allow=ways(found.verdict, accesses, approval_id=found.approval_id if waits else ""),
        call={
            "tool": found.tool,
            "principal": found.principal,
            "session_id": found.session_id or None,
            "grant_id": found.grant_id or None,
            "policy_revision": found.revision,
            "at_us": found.created_at,
        },
        approval=approval_object(approval, reading.now_us) if approval is not None else None,
    )


def _ask_all(enforcement: Enforcement, facts: Sequence[CallFacts]) -> Any:
    def ask_all(tx: Tx) -> list[dict[str, Any]]:
        return [_asked(tx, enforcement, each) for each in facts]

    return ask_all


def _asked(tx: Tx, enforcement: Enforcement, facts: CallFacts) -> dict[str, Any]:
    decision, known = enforcement.look(tx, facts)
    approval = enforcement.ask(tx, facts)
    verdict, notes = _with_grant(decision, known)
    return {
        "tool": f"{facts.server}/{facts.tool}",
        "verdict": verdict,
        "reasons": [*decision.reasons, *notes],
        "approval_id": approval.id if approval is not None else None,
    }


def _status(reading: Reading, session_id: str, part: Part) -> Status:
    grants = grant_objects(reading, session_id=session_id) if part in ("grants", "all") else None
    pending = None
    if part in ("pending", "all"):
        found = list_approvals(reading, state="pending", session_id=session_id)
        pending = [
            approval_object(each, reading.now_us) for each in found if each.state_at(reading.now_us) == "pending"
        ]
    return Status(grants=grants, pending=pending)


def _policy(loaded: Loaded) -> dict[str, Any]:
    policy = loaded.policy
    return {
        "revision": policy.revision,
        "axes": {axis: _axis(axis, loaded) for axis in AXES},
        "files": [file.as_dict() for file in loaded.files],
        "faults": [str(fault) for fault in loaded.faults],
        "broken_layers": list(policy.broken),
        "stale_layers": list(policy.stale),
    }


def _axis(axis: str, loaded: Loaded) -> dict[str, str]:
    """Return the value in force and everything that set it so; `default` where nothing did."""
    value = getattr(loaded.policy.axes, axis)
    setters = [source for source, axes in loaded.axes_of if _sets(axes, axis, value)]
    return {"value": value, "set_by": ", ".join(setters) or "default"}


def _sets(axes: Axes, axis: str, value: str) -> bool:
    return bool(getattr(axes, axis) == value)
