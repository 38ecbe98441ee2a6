"""A draft in its place: scope chosen, target found and in the right state, text complete. Nothing is judged here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.memory import normal
from agentstead.memory.attributes import read_attributes
from agentstead.memory.changes import ChangeOp, Draft, check_text
from agentstead.memory.evidence import Evidence, check_evidence
from agentstead.memory.scopes import Reach, Scope, read_scope, resolve_scope
from agentstead.memory.store import Memory, load, readable
from agentstead.memory.vocabulary import MemoryState, MemoryType
from agentstead.state import Conflict, Denied, NotFound, Reading, References, check_version

_FROM: Mapping[str, tuple[MemoryState, ...]] = {
    "revise": ("live",),
    "supersede": ("live",),
    "confirm": ("live",),
    "retract": ("live",),
    "archive": ("live",),
    "pin": ("live",),
    "unpin": ("live",),
    "restore": ("superseded", "retracted", "archived", "expired", "merged"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One change, complete: what it acts on, where, and the content that it would leave.

    One that undoes a decision names it; undoing a supersession also retracts its successor, undoing a revision goes
    back to a memory `as_of` an earlier edition.
    """

    draft: Draft
    scope: Scope
    workspace_id: str
    type: MemoryType
    target: Memory | None = None
    text: str = ""
    title: str = ""
    key: str | None = None
    attributes: Mapping[str, Any] | None = None
    evidence: tuple[Evidence, ...] = ()
    undoes: str = ""
    also_retract: Memory | None = None
    as_of: Memory | None = None

    @property
    def op(self) -> ChangeOp:
        """Return the operation."""
        return self.draft.op

    def new_texts(self) -> list[str]:
        """Return text and title as they would be said anew: what stands already was looked at when it came."""
        known = () if self.target is None else (self.target.text, self.target.title)
        return [text for text in (self.text, self.title) if text not in known]

    def span(self, now_us: int) -> tuple[int, int | None]:
        """Return the time in the world that it would speak of, from now on unless it says otherwise."""
        draft, before = self.draft, self.as_of or self.target
        if before is None or draft.op in ("add", "supersede"):
            return (now_us if draft.valid_from is None else draft.valid_from), draft.valid_to
        start = before.edition.valid_from if draft.valid_from is None else draft.valid_from
        if draft.op == "restore":
            # An archived memory kept its end; whatever else comes back is believed without one.
            return start, before.edition.valid_to if before.state == "archived" else None
        return start, before.edition.valid_to if draft.valid_to is None else draft.valid_to

    @property
    def text_hash(self) -> str:
        """Return the hash of what would be said."""
        return normal.text_hash(self.text)


def read_intents(
    reading: Reading, refs: References, drafts: Sequence[Draft], *, reach: Reach, names: Mapping[str, str]
) -> list[Intent]:
    """Place every draft; `names` maps scopes that were given by a workspace's name to their ids.

    Raises for the first that has no place: `memory.not_found`, `memory.state`, `version.conflict`,
    `memory.edit_not_unique`, `memory.workspace_required`, `memory.scope_denied`, `ref.not_found`, `ref.foreign`.
    """
    wanted = [draft.memory_id for draft in drafts if draft.memory_id]
    known = load(reading, wanted) if wanted else {}
    return [_place(reading, refs, draft, known.get(draft.memory_id), reach, names) for draft in drafts]


def visible_target(memory: Memory | None, memory_id: str, reach: Reach) -> Memory:
    """Return the memory; raises `NotFound` alike for one that is unknown, erased, or another's."""
    if memory is None or memory.state == "erased" or not readable(memory, reach, reach.scopes()):
        raise NotFound(
            "memory.not_found",
            f"No memory {memory_id[:40]!r} is known here.",
            remedy="Use an id that memory_recall or memory_list returned in this workspace.",
        )
    return memory


def _place(
    reading: Reading,
    refs: References,
    draft: Draft,
    known: Memory | None,
    reach: Reach,
    names: Mapping[str, str],
) -> Intent:
    evidence = check_evidence(reading, refs, draft.evidence or (), reach=reach)
    if draft.op == "add":
        assert draft.type is not None
        scope = resolve_scope(names.get(draft.scope or "", draft.scope), reach, draft.type)
        home = _workspace_of(reading, refs, scope, reach)
        return _added(draft, scope, home, draft.type, draft.key, evidence)
    target = visible_target(known, draft.memory_id, reach)
    _check_state(draft, target)
    check_version(target.version, draft.expected_version, noun="memory", ref=target.id)
    _check_fork(draft, target, reach)
    own_scope = touchable_scope(target, reach)
    if draft.op == "supersede":
        named = names.get(draft.scope or "", draft.scope)
        scope = resolve_scope(named, reach) if named else own_scope
        home = _workspace_of(reading, refs, scope, reach)
        key = draft.key or target.edition.key
        return _added(draft, scope, home, draft.type or target.type, key, evidence, target)
    text = _revised_text(draft, target)
    attributes = None if draft.attributes is None else read_attributes(target.type, draft.attributes)
    return Intent(
        draft=draft,
        scope=own_scope,
        workspace_id=target.edition.workspace_id,
        type=target.type,
        target=target,
        text=text,
        title=_revised_title(draft, target, text),
        key=target.edition.key,
        attributes=attributes,
        evidence=evidence,
    )


def _added(
    draft: Draft,
    scope: Scope,
    workspace_id: str,
    memory_type: MemoryType,
    key: str | None,
    evidence: tuple[Evidence, ...],
    target: Memory | None = None,
) -> Intent:
    text = draft.text or ""
    return Intent(
        draft=draft,
        scope=scope,
        workspace_id=workspace_id,
        type=memory_type,
        target=target,
        text=text,
        title=draft.title or normal.title_of(text),
        key=key,
        attributes=read_attributes(memory_type, draft.attributes or {}),
        evidence=evidence,
    )


def _workspace_of(reading: Reading, refs: References, scope: Scope, reach: Reach) -> str:
    """Return the workspace of a scope; a session's is asked of its owner, and must be the caller's."""
    if scope.kind != "session":
        return scope.workspace_id
    facts = refs.look(reading, scope.session_id)
    if not facts.exists:
        raise NotFound(
            "session.not_found",
            f"No session {scope.session_id} is known.",
            remedy="Use an id that session_open returned, or another scope.",
        )
    if facts.workspace not in ("", reach.workspace_id) and not reach.person:
        raise Denied(
            "memory.scope_denied",
            f"The session {scope.session_id} belongs to another workspace.",
            remedy="Use a session of the workspace that you work in.",
        )
    return facts.workspace


def _check_state(draft: Draft, target: Memory) -> None:
    allowed = _FROM[draft.op]
    if target.state not in allowed:
        legal = sorted(op for op, states in _FROM.items() if target.state in states)
        raise Conflict(
            "memory.state",
            f"{target.id} is {target.state}, so it cannot take {draft.op}.",
            remedy=f"In this state it takes {', '.join(legal)}." if legal else "Add a new memory instead.",
            details={"state": target.state, "legal": legal},
        )


def touchable_scope(target: Memory, reach: Reach) -> Scope:
    """Return the scope of a memory that this caller changes; raises `Denied` where it only reads it."""
    scope = read_scope(target.scope)
    if not reach.may_touch(scope):
        raise Denied(
            "memory.scope_denied",
            f"{target.id} lies in {target.scope}, which {reach.principal} reads but does not change.",
            remedy="Pass the session_id of that session, or add a new memory.",
        )
    return scope


def _check_fork(draft: Draft, target: Memory, reach: Reach) -> None:
    if reach.fork_id and target.edition.fork_id != reach.fork_id:
        raise Conflict(
            "memory.state",
            f"{target.id} is outside of the fork {reach.fork_id}, where {draft.op} is asked for.",
            remedy="Add what the fork learned as a new memory, or change this one from the workspace.",
        )


def _revised_text(draft: Draft, target: Memory) -> str:
    text = target.text if draft.text is None else draft.text
    for old, new in draft.edits:
        count = text.count(old)
        if count != 1:
            raise Conflict(
                "memory.edit_not_unique",
                f"An edit's old_text occurs {count} times in {target.id}.",
                remedy="Give more of the text around it, so that it occurs exactly once.",
                details={"count": count},
            )
        text = text.replace(old, new)
    return check_text(text, what="The edited text") if draft.edits else text


def _revised_title(draft: Draft, target: Memory, text: str) -> str:
    if draft.title is not None:
        return draft.title or normal.title_of(text)
    made = target.title == normal.title_of(target.text)
    return normal.title_of(text) if made else target.title
