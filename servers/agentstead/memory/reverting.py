"""Undoing a decision: the opposite change, made from what the log says stood before."""

from agentstead.memory import decisions
from agentstead.memory.changes import ChangeOp, Draft
from agentstead.memory.decisions import Decision
from agentstead.memory.intents import Intent, touchable_scope, visible_target
from agentstead.memory.log import events_of
from agentstead.memory.scopes import Reach
from agentstead.memory.store import Memory, load, load_editions
from agentstead.memory.vocabulary import DecisionOp
from agentstead.state import Conflict, Invalid, NotFound, Reading

_OPPOSITE: dict[DecisionOp, ChangeOp] = {
    "add": "retract",
    "revise": "revise",
    "supersede": "restore",
    "retract": "restore",
    "archive": "restore",
}


def opposite(reading: Reading, draft: Draft, *, reach: Reach) -> Intent:
    """Return the change that undoes the decision that `draft` names.

    Raises `memory.not_found` where it is not known here, `memory.invalid` where it changed nothing that can be undone,
    `memory.revert_conflict` where the memory changed since.
    """
    decision = decisions.by_id(reading, draft.decision_id)
    memory = None if decision is None else load(reading, [decision.memory_id]).get(decision.memory_id)
    if decision is None or memory is None:
        raise NotFound(
            "memory.not_found",
            f"No decision {draft.decision_id[:40]!r} is known here.",
            remedy="Use an id from memory_write, or from memory_list(what=decisions).",
        )
    target = visible_target(memory, memory.id, reach)
    before = load_editions(reading, [decision.before_edition]).get(decision.before_edition)
    _check_unchanged(reading, decision, [target.id, *([before.id] if before else [])])
    return _intent(reading, draft, decision, target, before, reach)


def _intent(
    reading: Reading, draft: Draft, decision: Decision, target: Memory, before: Memory | None, reach: Reach
) -> Intent:
    op = _op(reading, decision, target)
    superseded = load(reading, [before.id])[before.id] if before and decision.op == "supersede" else None
    subject = superseded or target
    content = before if decision.op == "revise" and before else subject
    return Intent(
        draft=Draft(op=op, memory_id=subject.id, reason=draft.reason or f"reverts {decision.id}"),
        scope=touchable_scope(subject, reach),
        workspace_id=subject.edition.workspace_id,
        type=subject.type,
        target=subject,
        text=content.text,
        title=content.title,
        key=subject.edition.key,
        undoes=decision.id,
        also_retract=target if superseded else None,
        as_of=before if decision.op == "revise" else None,
    )


def _op(reading: Reading, decision: Decision, target: Memory) -> ChangeOp:
    if decision.verdict == "accepted":
        if decision.op == "pin":
            return "unpin" if target.pinned else "pin"
        if decision.op == "restore" and _was_archived(reading, decision):
            return "archive"
        if decision.op in _OPPOSITE:
            return _OPPOSITE[decision.op]
    raise Invalid(
        "memory.invalid",
        f"The decision {decision.id} ({decision.op}, {decision.verdict}) cannot be reverted.",
        remedy="Make the change that you want with memory_write.",
    )


def _was_archived(reading: Reading, decision: Decision) -> bool:
    """Tell whether a restored memory had been archived, not retracted or superseded."""
    states = [event for event in events_of(reading, decision.memory_id) if event.op in ("archive", "restore")]
    return len(states) >= 2 and states[-2].op == "archive" and states[-1].at == decision.at


def _check_unchanged(reading: Reading, decision: Decision, memory_ids: list[str]) -> None:
    later = decisions.later_than(reading, decision.id, memory_ids)
    if decision.reverted_by or later:
        raise Conflict(
            "memory.revert_conflict",
            f"The memory of decision {decision.id} changed afterwards.",
            remedy="Revert the later decisions first, newest first, or make the change that you want.",
            details={"later": later, "reverted_by": decision.reverted_by},
        )
