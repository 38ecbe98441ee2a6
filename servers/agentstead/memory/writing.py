"""Submitting changes: judge all, apply all or none, and record what became of each in the same transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, ConfigDict, Field

from agentstead.memory import decisions, proposals
from agentstead.memory.applying import Applied, apply, link
from agentstead.memory.changes import Draft, without_secrets
from agentstead.memory.controller import Judgement, Writer, check_open_proposals, judge
from agentstead.memory.decisions import Decision
from agentstead.memory.intents import Intent, read_intents
from agentstead.memory.parking import park, subject_of
from agentstead.memory.reverting import opposite
from agentstead.memory.vocabulary import DecisionOp, JudgedBy, ProposalState, Verdict
from agentstead.state import Conflict, Invalid, References, Tx

SEVERITY: tuple[Verdict, ...] = ("duplicate", "accepted", "pending", "held", "refused")
_STATES: Mapping[Verdict, ProposalState] = {
    "duplicate": "accepted",
    "accepted": "accepted",
    "pending": "pending",
    "held": "held",
    "refused": "refused",
}


_JOURNALED = {"decision_id", "op", "verdict", "memory_id", "scope"}


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DecisionRow(_Row):
    """What became of one requested change."""

    decision_id: str
    op: DecisionOp
    verdict: Verdict
    memory_id: str = ""
    edition_id: str = ""
    version: int = 0
    scope: str | None = None
    rules: list[dict[str, object]] = Field(default_factory=list)
    twin: str | None = None
    conflict_with: str | None = None


class RefusalRow(_Row):
    """Why a proposal was refused, in the form of an error."""

    code: str
    message: str
    remedy: str
    operation: int


class Outcome(_Row):
    """What became of a proposal."""

    proposal_id: str
    state: ProposalState
    decisions: list[DecisionRow]
    refusal: RefusalRow | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: the changes, why, and how.

    `names` maps scopes that were given by a workspace's name to their ids; `redact` takes secrets out of every text
    instead of refusing it; `key` is the call's idempotency key.
    """

    drafts: Sequence[Draft]
    reason: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    redact: bool = False
    key: str = ""


def submit(tx: Tx, refs: References, request: Request, writer: Writer) -> Outcome:
    """Judge and settle one proposal; what is refused changes nothing, but its decision stays.

    Raises where a change cannot be placed (see `read_intents`, `opposite`) or a budget is spent: then nothing is kept.
    """
    drafts = [without_secrets(draft, tx.redact) if request.redact else draft for draft in request.drafts]
    names = request.names
    intents = place_all(tx, refs, drafts, writer, names=names)
    judgements = [judge(tx, intent, writer) for intent in intents]
    worst = max((judgement.verdict for judgement in judgements), key=SEVERITY.index)
    state = _STATES[worst]
    record = Record(tx, writer, tx.new_id("mpr_"), request.reason, key=request.key)
    if state in proposals.OPEN:
        check_open_proposals(tx, writer)
        _wait(record, state, intents, judgements)
        rows = [record.undone(each, number) for number, each in enumerate(judgements, 1)]
    elif state == "refused":
        record.proposal(state, [_named(intent) for intent in intents], [])
        rows = [record.undone(each, number) for number, each in enumerate(judgements, 1)]
    else:
        record.proposal(state, [_named(intent) for intent in intents], [])
        rows = apply_all(record, refs, drafts, intents, judgements, names=names)
    record.journal(state, rows)
    return Outcome(proposal_id=record.proposal_id, state=state, decisions=rows, refusal=_refusal(judgements))


def place_all(
    tx: Tx, refs: References, drafts: Sequence[Draft], writer: Writer, *, names: Mapping[str, str]
) -> list[Intent]:
    """Return every draft in its place; a revert becomes the opposite of what it undoes."""
    plain = [draft for draft in drafts if draft.op != "revert"]
    placed = iter(read_intents(tx, refs, plain, reach=writer.reach, names=names))
    return [opposite(tx, draft, reach=writer.reach) if draft.op == "revert" else next(placed) for draft in drafts]


class Record:
    """The rows that one settled proposal leaves: itself, a decision for each change, one journal entry."""

    def __init__(
        self, tx: Tx, writer: Writer, proposal_id: str, reason: str, *, key: str = "", judged_by: JudgedBy = "rule"
    ) -> None:
        self.tx = tx
        self.writer = writer
        self.proposal_id = proposal_id
        self.reason = reason
        self.key = key
        self.judged_by = judged_by

    def proposal(
        self,
        state: ProposalState,
        operations: Sequence[Mapping[str, object]],
        text_ids: Sequence[str],
        *,
        dedupe: str = "",
    ) -> None:
        """Record the proposal."""
        reach = self.writer.reach
        proposals.insert(
            self.tx,
            self.proposal_id,
            state=state,
            operations=operations,
            text_ids=text_ids,
            channel=self.writer.channel,
            principal=reach.principal,
            workspace_id=reach.workspace_id,
            reason=self.reason,
            fork_id=reach.fork_id,
            dedupe=dedupe,
        )

    def undone(self, judgement: Judgement, number: int) -> DecisionRow:
        """Record the decision on a change that was not carried out."""
        return self.decision(self.tx.new_id("dec_"), judgement, number, Applied())

    def decision(
        self, decision_id: str, judgement: Judgement, number: int, applied: Applied, *, reason: str = ""
    ) -> DecisionRow:
        """Record the decision on one change."""
        memory_id = applied.memory_id or judgement.twin
        decisions.insert(
            self.tx,
            Decision(
                id=decision_id,
                proposal_id=self.proposal_id,
                ordinal=number,
                op=judgement.op,
                verdict=judgement.verdict,
                judged_by=self.judged_by,
                rules=judgement.rules,
                principal=self.writer.reach.principal,
                trust=judgement.trust,
                at=self.tx.now_us,
                memory_id=memory_id,
                before_edition=applied.before_edition,
                after_edition=applied.after_edition,
                workspace_id=self.writer.reach.workspace_id,
                reason=reason or self.reason,
                idempotency_key=self.key,
            ),
        )
        return _row(decision_id, judgement, memory_id, applied)

    def journal(self, state: ProposalState, rows: Sequence[DecisionRow]) -> None:
        """Write the journal entry: ids and verdicts, no text."""
        body = {
            "state": state,
            "fork_id": self.writer.reach.fork_id,
            "decisions": [row.model_dump(include=_JOURNALED, exclude_none=True) for row in rows],
        }
        kind = "submitted" if state in proposals.OPEN else state
        self.tx.journal(
            f"memory.proposal.{kind}",
            subject=self.proposal_id,
            workspace=self.writer.reach.workspace_id,
            body=body,
        )


def apply_all(
    record: Record,
    refs: References,
    drafts: Sequence[Draft],
    intents: Sequence[Intent],
    judgements: Sequence[Judgement],
    *,
    names: Mapping[str, str],
    text_ids: Mapping[int, str] | None = None,
) -> list[DecisionRow]:
    """Carry out a batch in order; each change after the first is placed and judged anew, on what stands by then."""
    tx, writer = record.tx, record.writer
    rows = []
    for number, (draft, first_intent, first_judgement) in enumerate(zip(drafts, intents, judgements, strict=True), 1):
        intent, judgement = first_intent, first_judgement
        if number > 1:
            [intent] = place_all(tx, refs, [draft], writer, names=names)
            judgement = judge(tx, intent, writer)
            _check_still_fine(judgement, number)
        decision_id = tx.new_id("dec_")
        applied = apply(
            tx, intent, judgement, writer, decision_id=decision_id, text_id=(text_ids or {}).get(number, "")
        )
        rows.append(record.decision(decision_id, judgement, number, applied, reason=intent.draft.reason))
        if intent.undoes:
            decisions.mark_reverted(tx, intent.undoes, by=decision_id)
    return rows


def confirmed(writer: Writer) -> Writer:
    """Return the writer as one whose change a person accepted: it reaches what a person reaches."""
    return replace(writer, confirmed=True, reach=replace(writer.reach, kind="user"))


def _wait(record: Record, state: ProposalState, intents: Sequence[Intent], judgements: Sequence[Judgement]) -> None:
    operations, text_ids = park(record.tx, intents, confirmed(record.writer))
    record.proposal(state, operations, text_ids, dedupe=subject_of(intents))
    for intent, judgement in zip(intents, judgements, strict=True):
        if judgement.conflict_with:
            link(record.tx, record.proposal_id, judgement.conflict_with, "contradicts", state="open", rule=intent.op)


def _named(intent: Intent) -> dict[str, object]:
    """Return what a settled proposal keeps of a change: what and where, not its text."""
    return {"op": intent.op, "type": intent.type, "scope": intent.scope.id, "memory_id": intent.draft.memory_id}


def _check_still_fine(judgement: Judgement, number: int) -> None:
    if judgement.verdict not in ("accepted", "duplicate"):
        raise Conflict(
            "memory.conflict",
            f"Operation {number} does not fit those before it in the same batch.",
            remedy="Send it in a call of its own.",
            details={"rules": [dict(rule) for rule in judgement.rules]},
        )


def _row(decision_id: str, judgement: Judgement, memory_id: str, applied: Applied) -> DecisionRow:
    return DecisionRow(
        decision_id=decision_id,
        op=judgement.op,
        verdict=judgement.verdict,
        memory_id=memory_id,
        edition_id=applied.after_edition,
        version=applied.version,
        scope=applied.scope or None,
        rules=[dict(rule) for rule in judgement.rules],
        twin=judgement.twin or None,
        conflict_with=judgement.conflict_with or None,
    )


def _refusal(judgements: Sequence[Judgement]) -> RefusalRow | None:
    for number, judgement in enumerate(judgements, 1):
        if judgement.refusal is not None:
            found = judgement.refusal
            message = f"Operation {number} was refused: {found.what}. Nothing was stored."
            return RefusalRow(code=found.code, message=message, remedy=found.remedy, operation=number)
    return None


def raise_refusal(outcome: Outcome) -> None:
    """Raise the error of a refused proposal; its decisions are on record."""
    if outcome.refusal is not None:
        raise Invalid(
            outcome.refusal.code,
            outcome.refusal.message,
            remedy=outcome.refusal.remedy,
            details={
                "operation": outcome.refusal.operation,
                "proposal_id": outcome.proposal_id,
                "decisions": [row.model_dump(mode="json", exclude_none=True) for row in outcome.decisions],
            },
        )
