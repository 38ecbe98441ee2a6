"""Settling waiting proposals: accepted against the present state, rejected, or withdrawn; each on its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentstead.memory import proposals
from agentstead.memory.applying import settle_links
from agentstead.memory.changes import check_text
from agentstead.memory.controller import Judgement, Writer, judge
from agentstead.memory.parking import basis_of, unpark
from agentstead.memory.proposals import Proposal
from agentstead.memory.scopes import Reach
from agentstead.memory.vocabulary import ProposalState
from agentstead.memory.writing import DecisionRow, Record, apply_all, confirmed, place_all
from agentstead.state import AgentsteadError, Conflict, Denied, Invalid, NotFound, References, Tx

ReviewAction = Literal["accept", "reject", "withdraw"]


class Drift(BaseModel):
    """A proposal that no longer means what it meant when it was made, and stays open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    proposal_id: str
    code: str
    message: str
    then: list[dict[str, Any]] = Field(default_factory=list)
    now: list[dict[str, Any]] = Field(default_factory=list)


class Review(BaseModel):
    """What a review settled."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settled: dict[str, ProposalState]
    decisions: list[DecisionRow]
    drift: list[Drift]


@dataclass(frozen=True, slots=True)
class _Settled:
    state: ProposalState | None
    decisions: Sequence[DecisionRow] = ()
    drift: Drift | None = None


def review(
    tx: Tx,
    refs: References,
    proposal_ids: Sequence[str],
    action: ReviewAction,
    writer: Writer,
    *,
    edit: str | None = None,
    reason: str = "",
) -> Review:
    """Settle proposals. Accepting and rejecting is a person's: `writer.person` must hold.

    Raises `memory.not_found`, `memory.state` (it is open no more), `memory.person_required`, `memory.invalid`.
    """
    found = [visible_proposal(tx, proposal_id, writer.reach) for proposal_id in dict.fromkeys(proposal_ids)]
    if edit is not None:
        _check_edit(found, action, edit)
    settled: dict[str, ProposalState] = {}
    rows: list[DecisionRow] = []
    drift: list[Drift] = []
    for proposal in found:
        _check_right(proposal, action, writer)
        result = _settle(tx, refs, proposal, action, writer, edit=edit, reason=reason)
        rows.extend(result.decisions)
        if result.state is not None:
            settled[proposal.id] = result.state
        if result.drift is not None:
            drift.append(result.drift)
    return Review(settled=settled, decisions=rows, drift=drift)


def visible_proposal(tx: Tx, proposal_id: str, reach: Reach) -> Proposal:
    """Return an open proposal of this workspace or of the home.

    Raises `memory.not_found` alike for an unknown one and another workspace's, `memory.state` for a settled one.
    """
    proposal = proposals.by_id(tx, proposal_id)
    if proposal is None or not (reach.person or proposal.workspace_id in ("", reach.workspace_id)):
        raise NotFound(
            "memory.not_found",
            f"No proposal {proposal_id[:40]!r} is known here.",
            remedy="List the open ones with memory_list(what=proposals).",
        )
    state = proposal.state_at(tx.now_us)
    if state not in proposals.OPEN:
        raise Conflict(
            "memory.state",
            f"The proposal {proposal.id} is {state}.",
            remedy="Only pending and held ones can be settled; propose it again if it is still wanted.",
            details={"state": state, "legal": []},
        )
    return proposal


def _check_edit(found: Sequence[Proposal], action: ReviewAction, edit: str) -> None:
    check_text(edit, what="edit")
    one = len(found) == 1 and len(found[0].operations) == 1 and bool(found[0].text_ids[0])
    if action != "accept" or not one:
        raise Invalid(
            "memory.invalid",
            "An edit goes with accepting one proposal of one change that has a text.",
            remedy="Accept them one by one, or leave the edit out.",
        )


def _check_right(proposal: Proposal, action: ReviewAction, writer: Writer) -> None:
    if action == "withdraw":
        if proposal.principal != writer.reach.principal:
            raise Denied(
                "memory.refused",
                f"The proposal {proposal.id} is not {writer.reach.principal}'s to withdraw.",
                remedy="Reject it, or leave it to its author.",
            )
    elif not writer.person:
        raise Denied(
            "memory.person_required",
            f"Only a person may {action} the proposal {proposal.id}; a yes that covers other calls too does not count.",
            remedy=f"Ask the person to allow this call once, or: agentstead memory {action} {proposal.id}",
        )


def _settle(
    tx: Tx,
    refs: References,
    proposal: Proposal,
    action: ReviewAction,
    writer: Writer,
    *,
    edit: str | None,
    reason: str,
) -> _Settled:
    if action == "accept":
        return _accept(tx, refs, proposal, writer, edit=edit, reason=reason)
    state: ProposalState = "rejected" if action == "reject" else "withdrawn"
    _close(tx, proposal, state)
    Record(tx, writer, proposal.id, reason).journal(state, [])
    return _Settled(state)


def _accept(tx: Tx, refs: References, proposal: Proposal, writer: Writer, *, edit: str | None, reason: str) -> _Settled:
    person = confirmed(writer)
    drafts = unpark(tx, proposal, edit=edit)
    try:
        intents = place_all(tx, refs, drafts, person, names={})
    except AgentsteadError as error:
        return _drifted(tx, proposal, error.message, [])
    judgements = [judge(tx, intent, person) for intent in intents]
    present = [basis_of(intent, judgement) for intent, judgement in zip(intents, judgements, strict=True)]
    if edit is None and present != [operation["basis"] for operation in proposal.operations]:
        return _drifted(tx, proposal, "What it rests on changed since it was proposed.", present)
    _check_clean(judgements)
    record = Record(tx, person, proposal.id, reason or proposal.reason, judged_by="person")
    kept = {} if edit else {number: text_id for number, text_id in enumerate(proposal.text_ids, 1) if text_id}
    rows = apply_all(record, refs, drafts, intents, judgements, names={}, text_ids=kept)
    _close(tx, proposal, "accepted")
    record.journal("accepted", rows)
    return _Settled("accepted", rows)


def _close(tx: Tx, proposal: Proposal, state: ProposalState) -> None:
    proposals.move(tx, proposal.id, state)
    settle_links(tx, proposal.id)


def _drifted(tx: Tx, proposal: Proposal, message: str, present: Sequence[Mapping[str, Any]]) -> _Settled:
    """Keep the proposal open on its present footing, so that accepting it again means what is shown now."""
    if present:
        pairs = zip(proposal.operations, present, strict=True)
        proposals.rebase(tx, proposal.id, [dict(operation) | {"basis": dict(basis)} for operation, basis in pairs])
        tx.journal(
            "memory.proposal.rebased",
            subject=proposal.id,
            workspace=proposal.workspace_id,
            body={"state": proposal.state},
        )
    then = [dict(operation["basis"]) for operation in proposal.operations]
    now = [dict(basis) for basis in present]
    return _Settled(
        None,
        drift=Drift(proposal_id=proposal.id, code="memory.proposal_drift", message=message, then=then, now=now),
    )


def _check_clean(judgements: Sequence[Judgement]) -> None:
    """Refuse what an edit brought in: a person waives what was held, never secrets or hidden text."""
    for judgement in judgements:
        if judgement.refusal is not None:
            raise Invalid(
                judgement.refusal.code,
                f"The proposal cannot be accepted: {judgement.refusal.what}.",
                remedy=judgement.refusal.remedy,
            )
