"""Carrying out what the controller accepted: new editions and log lines, nothing overwritten."""

from dataclasses import dataclass, replace

from agentstead.memory import log
from agentstead.memory.controller import Judgement, Writer
from agentstead.memory.evidence import add_evidence, copy_evidence, evidence_of
from agentstead.memory.intents import Intent
from agentstead.memory.log import Edition
from agentstead.memory.store import Memory, load, next_place
from agentstead.memory.vocabulary import EventOp, Trust
from agentstead.state import Invalid, Tx

_LINK = """
INSERT INTO links (from_id, to_id, kind, state, rule, at)
VALUES (:from_id, :to_id, :kind, :state, :rule, :now)
ON CONFLICT (from_id, to_id, kind) DO UPDATE
SET state = excluded.state,
    rule = excluded.rule,
    at = excluded.at
"""
_SETTLE = "UPDATE links SET state = 'settled', at = :now WHERE from_id = :from_id AND kind = 'contradicts'"


@dataclass(frozen=True, slots=True)
class Applied:
    """What a change touched."""

    memory_id: str = ""
    before_edition: str = ""
    after_edition: str = ""
    version: int = 0
    scope: str = ""


@dataclass(frozen=True, slots=True)
class _Work:
    tx: Tx
    intent: Intent
    judgement: Judgement
    writer: Writer
    decision_id: str
    text_id: str

    @property
    def target(self) -> Memory:
        """Return the memory that the change is about."""
        assert self.intent.target is not None
        return self.intent.target


def apply(
    tx: Tx, intent: Intent, judgement: Judgement, writer: Writer, *, decision_id: str, text_id: str = ""
) -> Applied:
    """Carry out one judged change; `text_id` names a text that is stored already."""
    work = _Work(tx, intent, judgement, writer, decision_id, text_id)
    if judgement.verdict == "duplicate":
        return _absorb(work)
    match intent.op:
        case "add":
            return _add(work) if judgement.supersedes is None else _supersede(work, judgement.supersedes)
        case "supersede":
            return _supersede(work, work.target)
        case "revise":
            return _revise(work)
        case "confirm":
            return _confirm(work, work.target)
        case "restore":
            return _restore(work)
        case "retract":
            return _retract(work, work.target)
        case _:
            return _mark(work)


def link(tx: Tx, from_id: str, to_id: str, kind: str, *, state: str, rule: str = "") -> None:
    """Connect two memories, or an open proposal with the memory that it contradicts."""
    tx.execute(_LINK, from_id=from_id, to_id=to_id, kind=kind, state=state, rule=rule, now=tx.now_us)


def settle_links(tx: Tx, from_id: str) -> None:
    """Close the contradictions that a proposal or a memory opened."""
    tx.execute(_SETTLE, from_id=from_id, now=tx.now_us)


def _add(work: _Work) -> Applied:
    tx, intent, draft = work.tx, work.intent, work.intent.draft
    memory_id = tx.new_id("mem_")
    edition = _first_edition(work, memory_id)
    edition_id = log.append_edition(tx, edition, decision_id=work.decision_id)
    add_evidence(tx, edition_id, intent.evidence)
    # A closed period of the past never lives: it must not even for an instant take the slot of what holds now.
    over = draft.valid_to is not None and draft.valid_to <= tx.now_us
    ops: tuple[EventOp, ...] = ("add", "expire") if over else ("add",)
    log.append_event(tx, memory_id, *ops, edition_id=edition_id, decision_id=work.decision_id)
    return _applied(tx, memory_id, after=edition_id)


def _first_edition(work: _Work, memory_id: str) -> Edition:
    tx, intent, draft, reach = work.tx, work.intent, work.intent.draft, work.writer.reach
    place = draft.place
    if draft.thread and place is None:
        place = next_place(tx, scope=intent.scope.id, thread=draft.thread)
    start, end = _validity(work)
    return Edition(
        memory_id=memory_id,
        text_id=work.text_id or log.store_text(tx, title=intent.title, body=intent.text),
        scope=intent.scope.id,
        workspace_id=intent.workspace_id,
        type=intent.type,
        key=intent.key,
        slug=log.free_slug(tx, intent.title, scope=intent.scope.id, type=intent.type, fork_id=reach.fork_id),
        attributes=intent.attributes or {},
        tags=draft.tags or (),
        valid_from=start,
        valid_to=end,
        trust=work.judgement.trust,
        taint=reach.taint,
        author=draft.author or reach.principal,
        principal=reach.principal,
        source_kind=work.writer.channel,
        source_ref=reach.session_id,
        thread=draft.thread,
        place=place,
        fork_id=reach.fork_id,
        text_hash=intent.text_hash,
    )


def _validity(work: _Work) -> tuple[int, int | None]:
    draft = work.intent.draft
    start = work.tx.now_us if draft.valid_from is None else draft.valid_from
    if draft.valid_to is not None and draft.valid_to <= start:
        raise Invalid(
            "memory.invalid",
            "valid_to is not after the start of validity, which is now unless valid_from says otherwise.",
            remedy="Give valid_from too, or leave valid_to open.",
        )
    return start, draft.valid_to


def _supersede(work: _Work, old: Memory) -> Applied:
    tx = work.tx
    start, _ = _validity(work)
    ends = [start if old.edition.valid_to is None else min(start, old.edition.valid_to), old.edition.valid_from]
    closed = replace(old.edition, valid_to=max(ends))
    closed_id = _follow(work, old, closed)
    log.append_event(tx, old.id, "supersede", edition_id=closed_id, decision_id=work.decision_id)
    added = _add(work)
    link(tx, added.memory_id, old.id, "supersedes", state="settled", rule="supersede")
    return replace(added, before_edition=old.edition_id)


def _revise(work: _Work) -> Applied:
    tx, intent, draft, old = work.tx, work.intent, work.intent.draft, work.target
    base = (intent.as_of or old).edition
    changed = replace(
        base,
        text_id=_revised_text(work, old),
        attributes=base.attributes if intent.attributes is None else intent.attributes,
        tags=base.tags if draft.tags is None else draft.tags,
        valid_from=base.valid_from if draft.valid_from is None else draft.valid_from,
        valid_to=base.valid_to if draft.valid_to is None else draft.valid_to,
        trust=work.judgement.trust,
        taint=work.writer.reach.taint,
        principal=work.writer.reach.principal,
        source_kind=work.writer.channel,
        source_ref=work.writer.reach.session_id,
        slug=old.edition.slug,
        text_hash=intent.text_hash,
    )
    if changed.valid_to is not None and changed.valid_to <= changed.valid_from:
        raise Invalid("memory.invalid", "valid_to is not after valid_from.", remedy="Give an end after the start.")
    edition_id = _follow(work, old, changed, keep_evidence=draft.evidence is None)
    add_evidence(tx, edition_id, intent.evidence)
    log.append_event(tx, old.id, "revise", edition_id=edition_id, decision_id=work.decision_id)
    return _applied(tx, old.id, before=old.edition_id, after=edition_id)


def _revised_text(work: _Work, old: Memory) -> str:
    """Return the id of the revised text: a known one where the words did not change."""
    intent = work.intent
    for known in (intent.as_of, old):
        if known is not None and (intent.text, intent.title) == (known.text, known.title):
            return known.edition.text_id
    return work.text_id or log.store_text(work.tx, title=intent.title, body=intent.text)


def _confirm(work: _Work, memory: Memory) -> Applied:
    if any(each.passed for each in work.intent.evidence) and memory.trust < Trust.CHECKED:
        return _enrich(work, memory, memory.edition.tags)
    add_evidence(work.tx, memory.edition_id, work.intent.evidence)
    log.append_event(work.tx, memory.id, "confirm", decision_id=work.decision_id)
    return _applied(work.tx, memory.id, before=memory.edition_id, after=memory.edition_id)


def _retract(work: _Work, memory: Memory) -> Applied:
    log.end_edition(work.tx, memory.edition_id)
    log.append_event(work.tx, memory.id, "retract", decision_id=work.decision_id)
    return _applied(work.tx, memory.id, before=memory.edition_id)


def _restore(work: _Work) -> Applied:
    tx, old = work.tx, work.target
    if work.intent.also_retract is not None:
        _retract(work, work.intent.also_retract)
    if old.state == "archived":
        log.append_event(tx, old.id, "restore", decision_id=work.decision_id)
        return _applied(tx, old.id, before=old.edition_id, after=old.edition_id)
    # What was superseded, expired or retracted is believed again from now on, without the end that it was given.
    edition_id = _follow(work, old, replace(old.edition, valid_to=None))
    log.append_event(tx, old.id, "restore", edition_id=edition_id, decision_id=work.decision_id)
    return _applied(tx, old.id, before=old.edition_id, after=edition_id)


def _mark(work: _Work) -> Applied:
    memory = work.target
    if work.intent.op == "archive":
        log.append_event(work.tx, memory.id, "archive", decision_id=work.decision_id)
    else:
        pinned = int(work.intent.op == "pin")
        log.append_event(work.tx, memory.id, "pin", decision_id=work.decision_id, pinned=pinned)
    return _applied(work.tx, memory.id, before=memory.edition_id, after=memory.edition_id)


def _absorb(work: _Work) -> Applied:
    """Let the twin gain what the duplicate brings (evidence, tags), unless it stands above the writer."""
    twin = load(work.tx, [work.judgement.twin])[work.judgement.twin]
    known = {row.ref for row in evidence_of(work.tx, twin.edition_id)}
    fresh = [each for each in work.intent.evidence if each.ref not in known]
    tags = tuple(sorted({*twin.edition.tags, *(work.intent.draft.tags or ())}))
    if twin.trust > work.judgement.trust or not (fresh or tags != twin.edition.tags) or twin.state != "live":
        return _applied(work.tx, twin.id, before=twin.edition_id, after=twin.edition_id)
    return _enrich(work, twin, tags)


def _enrich(work: _Work, twin: Memory, tags: tuple[str, ...]) -> Applied:
    trust = max(twin.trust, Trust.CHECKED) if any(each.passed for each in work.intent.evidence) else twin.trust
    edition_id = _follow(work, twin, replace(twin.edition, tags=tags, trust=trust))
    add_evidence(work.tx, edition_id, work.intent.evidence)
    log.append_event(work.tx, twin.id, "confirm", edition_id=edition_id, decision_id=work.decision_id)
    return _applied(work.tx, twin.id, before=twin.edition_id, after=edition_id)


def _follow(work: _Work, old: Memory, edition: Edition, *, keep_evidence: bool = True) -> str:
    """End an edition and record the one that follows it."""
    log.end_edition(work.tx, old.edition_id)
    edition_id = log.append_edition(work.tx, edition, decision_id=work.decision_id)
    if keep_evidence:
        copy_evidence(work.tx, old.edition_id, edition_id)
    return edition_id


def _applied(tx: Tx, memory_id: str, *, before: str = "", after: str = "") -> Applied:
    memory = load(tx, [memory_id])[memory_id]
    return Applied(memory_id, before, after, memory.version, memory.scope)
