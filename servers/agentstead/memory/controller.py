"""The write controller: the first rule that decides, and the trace of every rule that was tried."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentstead.memory import decisions, likeness, proposals
from agentstead.memory.authority import Authority, authority
from agentstead.memory.decisions import Trace
from agentstead.memory.guard import repeated_recall
from agentstead.memory.intents import Intent
from agentstead.memory.question import read_question
from agentstead.memory.scan import SECRET, Finding, scan
from agentstead.memory.scopes import Reach
from agentstead.memory.search import Filters, search
from agentstead.memory.store import Memory, find_exact, find_overlap, find_slot, load
from agentstead.memory.times import DAY_US
from agentstead.memory.vocabulary import Channel, DecisionOp, Trust, Verdict
from agentstead.state import Conflict, Exhausted, Tx

NEAR_CANDIDATES = 20
MINUTE_US = 60_000_000

_OPS: dict[str, DecisionOp] = {
    "add": "add",
    "revise": "revise",
    "supersede": "supersede",
    "confirm": "none",
    "retract": "retract",
    "archive": "archive",
    "restore": "restore",
    "pin": "pin",
    "unpin": "pin",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What settings say of writes: `review` sends every autonomous write of a workspace to a person."""

    review: bool = False
    minute: int = 60
    day: int = 2_000
    pending: int = 200


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the caller's reach, the door it came by, and whether a person confirmed exactly this."""

    reach: Reach
    channel: Channel = "tool"
    confirmed: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def person(self) -> bool:
        """Tell whether a person stands behind the write."""
        return self.confirmed or self.reach.person


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a change was refused, as the error that its caller gets; `finding` gives the place, never the text."""

    code: str
    what: str
    remedy: str
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the controller says of one change, and by which rules.

    `supersedes` is the memory whose slot an accepted add takes over; `twin` one that says the same already;
    `conflict_with` one that says something else and stands above the writer.
    """

    verdict: Verdict
    op: DecisionOp
    trust: Trust
    rules: tuple[Trace, ...]
    supersedes: Memory | None = None
    twin: str = ""
    conflict_with: str = ""
    refusal: Refusal | None = None


@dataclass(slots=True)
class _Case:
    """One change before the rules; each rule adds to the trace, and decides or leaves it to the next."""

    tx: Tx
    intent: Intent
    writer: Writer
    authority: Authority
    trace: list[Trace] = field(default_factory=list)
    supersedes: Memory | None = None
    note_twin: str = ""

    def note(self, rule: str, result: str, **values: Any) -> None:
        self.trace.append({"rule": rule, "result": result} | values)

    def go_on(self, rule: str, result: str, **values: Any) -> Judgement | None:
        self.note(rule, result, **values)
        return None

    def decide(self, verdict: Verdict, *, op: DecisionOp | None = None, **values: Any) -> Judgement:
        done: DecisionOp = op or (_OPS[self.intent.op] if verdict == "accepted" else "none")
        return Judgement(verdict, done, self.authority.trust, tuple(self.trace), **values)


def judge(tx: Tx, intent: Intent, writer: Writer) -> Judgement:
    """Return what becomes of a change.

    Raises `Exhausted` with `memory.budget` where the writer's budget of accepted writes is spent.
    """
    found = authority(intent, writer.reach, channel=writer.channel, confirmed=writer.confirmed)
    case = _Case(tx, intent, writer, found)
    case.note("normalise", "pass")
    rules = _ADDING if intent.op in ("add", "supersede") else _CHANGING
    for rule in rules:
        judged = rule(case)
        if judged is not None:
            return judged
    if case.supersedes is not None:
        return case.decide("accepted", op="supersede", supersedes=case.supersedes, twin=case.note_twin)
    return case.decide("accepted", twin=case.note_twin)


def _scan(case: _Case) -> Judgement | None:
    texts = [*case.intent.draft.texts(), *case.intent.new_texts()]
    vouched = Trust.PERSON if case.writer.person else case.authority.trust
    findings = scan(dict.fromkeys(texts), redact=case.tx.redact, trust=vouched)
    worst = findings[0] if findings else None
    if worst is None or (worst.action == "hold" and case.writer.person):
        return case.go_on("scan", "pass", **({"waived": [each.rule for each in findings]} if findings else {}))
    case.note("scan", worst.action, findings=[_place_of(each) for each in findings])
    if worst.action == "hold":
        return case.decide("held")
    return case.decide("refused", op="refuse", refusal=_refusal(worst))


def _recall_loop(case: _Case) -> Judgement | None:
    if case.writer.person or case.intent.type == "episode":
        return case.go_on("recall_loop", "exempt")
    reach = case.writer.reach
    seen = repeated_recall(
        case.tx,
        case.intent.text,
        principal=reach.principal,
        session_id=reach.session_id,
        workspace_id=reach.workspace_id,
    )
    if seen is None or (case.intent.target is not None and case.intent.target.id == seen.memory_id):
        return case.go_on("recall_loop", "pass")
    case.note("recall_loop", "duplicate", recall=seen.recall_id, memory=seen.memory_id)
    return case.decide("duplicate", twin=seen.memory_id)


def _exact(case: _Case) -> Judgement | None:
    intent = case.intent
    twin = find_exact(
        case.tx,
        scope=intent.scope.id,
        memory_type=intent.type,
        text_hash=intent.text_hash,
        fork_id=case.writer.reach.fork_id,
        span=intent.span(case.tx.now_us),
        turn=(intent.draft.thread, intent.draft.place) if intent.type == "episode" else None,
    )
    if twin is None:
        return case.go_on("exact", "pass")
    case.note("exact", "duplicate", memory=twin.id)
    return case.decide("duplicate", twin=twin.id)


def _key(case: _Case) -> Judgement | None:
    intent = case.intent
    if intent.key is None:
        return case.go_on("key", "pass")
    holder = find_slot(
        case.tx,
        scope=intent.scope.id,
        memory_type=intent.type,
        key=intent.key,
        fork_id=case.writer.reach.fork_id,
    )
    if holder is not None and intent.target is not None and holder.id == intent.target.id:
        holder = None
    if holder is not None and intent.target is not None:
        raise _slot_taken(intent, holder)
    beside = [each.id for each in (holder, intent.target) if each is not None]
    _check_overlap(case, beside)
    if holder is None:
        return case.go_on("key", "free")
    if _ends_before(case, holder):
        return case.go_on("key", "earlier", memory=holder.id)
    if holder.trust > case.authority.trust:
        case.note("key", "pending", memory=holder.id, trust=holder.trust.word)
        return case.decide("pending", conflict_with=holder.id)
    case.supersedes = holder
    return case.go_on("key", "supersede", memory=holder.id)


def _near(case: _Case) -> Judgement | None:
    twin = None if case.supersedes or case.intent.type == "episode" else _near_twin(case)
    if twin is None or (case.intent.target is not None and case.intent.target.id == twin):
        return case.go_on("near", "pass")
    if case.writer.person:
        case.note_twin = twin
        return case.go_on("near", "noted", memory=twin)
    case.note("near", "duplicate", memory=twin)
    return case.decide("duplicate", twin=twin)


def _free_slot(case: _Case) -> Judgement | None:
    """Let a memory come back, or change its time, only where its slot has room."""
    target, retracted = case.intent.target, case.intent.also_retract
    if case.intent.op not in ("restore", "revise") or target is None or target.edition.key is None:
        return None
    beside = [target.id, *([retracted.id] if retracted else [])]
    holder = find_slot(
        case.tx,
        scope=target.scope,
        memory_type=target.type,
        key=target.edition.key,
        fork_id=target.edition.fork_id,
    )
    if holder is not None and holder.id not in beside:
        raise _slot_taken(case.intent, holder)
    _check_overlap(case, beside)
    return case.go_on("key", "free")


def _standing(case: _Case) -> Judgement | None:
    target = case.intent.target
    if target is None or target.trust <= case.authority.trust:
        return None
    case.note("trust", "pending", memory=target.id, trust=target.trust.word, own=case.authority.trust.word)
    return case.decide("pending", conflict_with=target.id)


def _authority(case: _Case) -> Judgement | None:
    found = case.authority
    right = found.right
    if right == "accepted" and case.writer.limits.review and found.caller != "person" and found.kind == "own":
        right = "pending"
    case.note("authority", right, caller=found.caller, kind=found.kind, trust=found.trust.word)
    if right == "pending":
        return case.decide("pending")
    if right == "refused":
        what = f"{case.writer.reach.principal} may not write a {case.intent.type} here"
        return case.decide("refused", op="refuse", refusal=Refusal("memory.refused", what, "Ask the person to add it."))
    return None


def _budget(case: _Case) -> Judgement | None:
    if case.writer.person:
        return case.go_on("budget", "exempt")
    reach, limits, now = case.writer.reach, case.writer.limits, case.tx.now_us
    for name, most, span in (("minute", limits.minute, MINUTE_US), ("day", limits.day, DAY_US)):
        spent = decisions.accepted_since(
            case.tx, now - span, workspace_id=reach.workspace_id, principal=reach.principal
        )
        if spent >= most:
            raise Exhausted(
                "memory.budget",
                f"{reach.principal} wrote {spent} memories within a {name}; {most} are allowed.",
                remedy="Keep what will matter later, and write the rest afterwards.",
                retryable=True,
                details={"spent": spent, "most": most, "span": name},
            )
    return case.go_on("budget", "pass")


Rule = Callable[[_Case], Judgement | None]
_ADDING: Sequence[Rule] = (_scan, _recall_loop, _exact, _key, _near, _standing, _authority, _budget)
_CHANGING: Sequence[Rule] = (_scan, _free_slot, _standing, _authority, _budget)


def check_open_proposals(tx: Tx, writer: Writer) -> None:
    """Raise `Exhausted` with `memory.budget` where a workspace has as many open proposals as it may."""
    if writer.person:
        return
    waiting = proposals.count_open(tx, writer.reach.workspace_id)
    if waiting >= writer.limits.pending:
        raise Exhausted(
            "memory.budget",
            f"{waiting} proposals wait for a person already.",
            remedy="Let a person settle some with memory_review, then propose again.",
            retryable=True,
            details={"pending": waiting, "most": writer.limits.pending},
        )


def _ends_before(case: _Case, holder: Memory) -> bool:
    """Tell whether the new statement is about a time that ended before the holder's began."""
    end = case.intent.draft.valid_to
    return end is not None and end <= holder.edition.valid_from


def _check_overlap(case: _Case, beside: Sequence[str]) -> None:
    """Refuse to say two things of one time in one slot: what is over is changed on purpose, never by the way."""
    intent = case.intent
    assert intent.key is not None
    other = find_overlap(
        case.tx,
        scope=intent.scope.id,
        memory_type=intent.type,
        key=intent.key,
        fork_id=case.writer.reach.fork_id,
        span=intent.span(case.tx.now_us),
        beside=beside,
    )
    if other is not None:
        raise Conflict(
            "memory.conflict",
            f"{other.id} says already what {intent.key!r} was at that time.",
            remedy=f"Give valid_from and valid_to beside its period, or retract {other.id} first.",
            details={"memory_id": other.id},
        )


def _slot_taken(intent: Intent, holder: Memory) -> Conflict:
    return Conflict(
        "memory.conflict",
        f"The slot {intent.key!r} of {holder.type} in {holder.scope} is taken by {holder.id}.",
        remedy=f"Supersede or archive {holder.id} first, or use another key.",
        details={"memory_id": holder.id},
    )


def _near_twin(case: _Case) -> str | None:
    intent, now = case.intent, case.tx.now_us
    question = read_question(intent.text)
    here = Filters(
        scopes=(intent.scope.id,),
        turns="",
        valid_at=now,
        known_at=now,
        fork_id=case.writer.reach.fork_id,
        types=(intent.type,),
    )
    best = search(case.tx, question.terms, question, here).candidates[:NEAR_CANDIDATES]
    known = load(case.tx, [each.memory_id for each in best])
    return next((each.memory_id for each in best if likeness.is_near(intent.text, known[each.memory_id].text)), None)


def _place_of(finding: Finding) -> dict[str, Any]:
    return {"rule": finding.rule, "action": finding.action, "start": finding.start, "end": finding.end}


def _refusal(finding: Finding) -> Refusal:
    where = f"characters {finding.start} to {finding.end}"
    if finding.rule == SECRET:
        return Refusal(
            "memory.secret",
            f"it holds what looks like a secret ({where})",
            "Leave it out, or send redact=true to have it removed; keep the secret itself in the secret store.",
            finding,
        )
    if finding.rule.startswith("hidden."):
        return Refusal(
            "memory.hidden_text",
            f"it holds characters that a reader cannot see ({finding.rule}, {where})",
            "Remove them and send the visible text.",
            finding,
        )
    return Refusal(
        "memory.refused",
        f"it reads like an order to agents from an untrusted source ({finding.rule}, {where})",
        "State the fact in plain words, or let the person add it.",
        finding,
    )
