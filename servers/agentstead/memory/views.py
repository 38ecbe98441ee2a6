"""The shapes in which memories, recalls, decisions and proposals are shown."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agentstead.kit import Result
from agentstead.memory.decisions import Decision
from agentstead.memory.fence import fenced
from agentstead.memory.hidden import reveal
from agentstead.memory.proposals import Proposal
from agentstead.memory.recall import Answer, Item
from agentstead.memory.store import Memory
from agentstead.memory.times import age_days, show_instant, show_or_none
from agentstead.memory.vocabulary import MemoryState, MemoryType, RecallMode

SHOWN_CHARS = 400
AGE_DIGITS = 2


class View(BaseModel):
    """A nested part of a result."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WhyView(View):
    """Why an item came back."""

    terms: list[str]
    columns: list[str]
    signals: dict[str, float]


class ItemView(View):
    """One recalled memory."""

    memory_id: str
    edition_id: str
    type: MemoryType
    scope: str
    title: str
    text: str
    part: str | None = None
    author: str
    trust: str
    valid_from: str
    valid_to: str | None = None
    recorded_at: str
    age_days: float
    stale: str
    state: MemoryState | None = None
    conflict_with: str | None = None
    suspect: str | None = None
    shadowed_by: str | None = None
    evidence_count: int
    score: float
    why: WhyView


class Recalled(Result):
    """The answer to a question, with how it was found and what was left out."""

    recall_id: str
    mode: RecallMode
    complete: bool = True
    reason: str | None = None
    weak: bool = False
    terms_used: list[str] = Field(default_factory=list)
    terms_dropped: list[str] = Field(default_factory=list)
    filters: dict[str, Any] = Field(default_factory=dict)
    candidates: int = 0
    hidden: dict[str, int] = Field(default_factory=dict)
    items: list[ItemView] = Field(default_factory=list)
    next_cursor: str | None = None

    def summary(self) -> str:
        """Return the items as fenced notes under one line on how they were found."""
        head = f"{len(self.items)} of {self.candidates} memories ({self.mode}{', weak' if self.weak else ''})."
        lines = [head, *filter(None, (self.reason,))]
        notes = [
            (
                f"{each.memory_id} {each.type} {each.trust} {each.valid_from[:10]}{_flags(each)}",
                f"{each.title}\n{each.text}",
            )
            for each in self.items
        ]
        return "\n".join([*lines, fenced(notes)] if notes else lines)


class MemoryView(View):
    """One memory as it stands, whole."""

    memory_id: str
    edition_id: str
    version: int
    state: MemoryState
    type: MemoryType
    scope: str
    key: str | None = None
    title: str
    text: str
    attributes: dict[str, Any]
    tags: list[str]
    author: str
    trust: str
    pinned: bool
    stale: str
    suspect: str | None = None
    valid_from: str
    valid_to: str | None = None
    recorded_at: str
    thread: str | None = None
    place: int | None = None
    fork_id: str | None = None
    taint: list[str] | None = None
    history: list[dict[str, Any]] | None = None
    evidence: list[dict[str, Any]] | None = None
    links: list[dict[str, Any]] | None = None
    decisions: list[dict[str, Any]] | None = None
    uses: dict[str, int] | None = None


def recalled_item(item: Item, *, now_us: int) -> ItemView:
    """Return one recalled item as it is shown."""
    memory = item.memory
    edition = memory.edition
    return ItemView(
        memory_id=memory.id,
        edition_id=memory.edition_id,
        type=edition.type,
        scope=edition.scope,
        title=memory.title,
        text=item.text,
        part=item.part or None,
        author=edition.author,
        trust=edition.trust.word,
        valid_from=show_instant(edition.valid_from),
        valid_to=show_or_none(edition.valid_to),
        recorded_at=show_instant(memory.recorded_at),
        age_days=round(age_days(memory.recorded_at, now_us), AGE_DIGITS),
        stale=memory.stale,
        state=None if memory.state == "live" else memory.state,
        conflict_with=item.conflict_with or None,
        suspect=memory.suspect or None,
        shadowed_by=item.shadowed_by or None,
        evidence_count=item.evidence_count,
        score=item.score,
        why=WhyView(terms=list(item.why.terms), columns=list(item.why.columns), signals=dict(item.why.signals)),
    )


def recalled(
    answer: Answer, *, recall_id: str, filters: dict[str, Any], cursor: str | None, note: str, now_us: int
) -> Recalled:
    """Return an answer as it is shown."""
    return Recalled(
        recall_id=recall_id,
        mode=answer.mode,
        complete=True,
        reason=" ".join(filter(None, (answer.reason, note))) or None,
        weak=answer.weak,
        terms_used=list(answer.terms_used),
        terms_dropped=list(answer.terms_dropped),
        filters=filters,
        candidates=answer.candidates,
        hidden=dict(answer.hidden),
        items=[recalled_item(item, now_us=now_us) for item in answer.items],
        next_cursor=cursor,
    )


def memory_view(memory: Memory, **more: Any) -> MemoryView:
    """Return one memory as it is shown; `more` adds its history, evidence and so on."""
    edition = memory.edition
    return MemoryView(
        memory_id=memory.id,
        edition_id=memory.edition_id,
        version=memory.version,
        state=memory.state,
        type=edition.type,
        scope=edition.scope,
        key=edition.key,
        title=memory.title,
        text=memory.text,
        attributes=dict(edition.attributes),
        tags=list(edition.tags),
        author=edition.author,
        trust=edition.trust.word,
        pinned=memory.pinned,
        stale=memory.stale,
        suspect=memory.suspect or None,
        valid_from=show_instant(edition.valid_from),
        valid_to=show_or_none(edition.valid_to),
        recorded_at=show_instant(memory.recorded_at),
        thread=edition.thread or None,
        place=edition.place,
        fork_id=edition.fork_id or None,
        taint=list(edition.taint) or None,
        **more,
    )


def memory_row(memory: Memory) -> dict[str, Any]:
    """Return one memory as a line of a list."""
    edition = memory.edition
    row = {
        "memory_id": memory.id,
        "version": memory.version,
        "state": memory.state,
        "type": edition.type,
        "scope": edition.scope,
        "title": memory.title,
        "trust": edition.trust.word,
        "updated_at": show_instant(memory.updated_at),
    }
    return row | ({"key": edition.key} if edition.key else {}) | ({"pinned": True} if memory.pinned else {})


def decision_row(decision: Decision) -> dict[str, Any]:
    """Return one decision as a line of a list."""
    row = {
        "decision_id": decision.id,
        "proposal_id": decision.proposal_id,
        "op": decision.op,
        "verdict": decision.verdict,
        "judged_by": decision.judged_by,
        "memory_id": decision.memory_id,
        "principal": decision.principal,
        "trust": decision.trust.word,
        "rules": [dict(rule) for rule in decision.rules],
        "reason": decision.reason,
        "at": show_instant(decision.at),
        "reverted_by": decision.reverted_by,
    }
    return {name: value for name, value in row.items() if value not in ("", [])}


def proposal_row(proposal: Proposal, texts: dict[str, tuple[str, str]], *, now_us: int) -> dict[str, Any]:
    """Return one proposal as a line of a list; hidden characters of a held text are spelled out."""
    operations = []
    for place, operation in enumerate(proposal.operations):
        text_id = proposal.text_ids[place] if place < len(proposal.text_ids) else ""
        shown = {name: value for name, value in operation.items() if value not in (None, "", [], {})}
        title, body = texts.get(text_id, ("", ""))
        more = {"title": reveal(title), "text": reveal(body[:SHOWN_CHARS])} if text_id in texts else {}
        operations.append(shown | more)
    row = {
        "proposal_id": proposal.id,
        "state": proposal.state_at(now_us),
        "principal": proposal.principal,
        "reason": proposal.reason,
        "operations": operations,
        "created_at": show_instant(proposal.created_at),
        "expires_at": show_instant(proposal.expires_at),
        "version": proposal.version,
    }
    return {name: value for name, value in row.items() if value not in ("", [])}


def _flags(item: ItemView) -> str:
    flags = [
        *(["stale"] if item.stale != "no" else []),
        *([f"conflict:{item.conflict_with}"] if item.conflict_with else []),
        *(["suspect"] if item.suspect else []),
        *([item.state] if item.state else []),
    ]
    return " " + " ".join(flags) if flags else ""
