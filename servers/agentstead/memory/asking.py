"""What a caller asks for, read into the filters of a search: scopes that it may read, clocks, and the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.memory.scopes import Reach, Scope, read_scope, resolve_scope
from agentstead.memory.search import Filters
from agentstead.memory.times import read_instant, show_instant
from agentstead.memory.vocabulary import MEMORY_TYPES, MemoryType, Trust
from agentstead.state import AgentsteadError, Invalid, Reading, References

_TRUST: Mapping[str, Trust] = {trust.word: trust for trust in Trust}


@dataclass(frozen=True, slots=True)
class Asking:
    """A recall as it was asked."""

    query: str
    scope: str | None = None
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    author: str = ""
    thread: str = ""
    as_of: str | None = None
    valid_at: str | None = None
    known_at: str | None = None
    min_trust: str | None = None
    include: tuple[str, ...] = ()


def filters_of(reading: Reading, refs: References, asking: Asking, reach: Reach, *, now_us: int) -> Filters:
    """Return the filters of a recall; `now_us` is the present of its first page.

    Raises `memory.scope_denied` and `memory.workspace_required` as `resolve_scope` does, `memory.invalid` for a time.
    """
    valid_at = _instant(asking.valid_at or asking.as_of, "valid_at", now_us)
    known_at = _instant(asking.known_at or asking.as_of, "known_at", now_us)
    return Filters(
        scopes=scopes_of(reading, refs, asking.scope, reach),
        turns=reach.workspace_id if asking.scope is None else "",
        valid_at=valid_at,
        known_at=min(known_at, now_us),
        past=bool(asking.as_of or asking.valid_at or asking.known_at),
        fork_id=reach.fork_id,
        types=asking.types,
        tags=asking.tags,
        author=asking.author,
        thread=asking.thread,
        min_trust=_TRUST[asking.min_trust or "foreign"],
        include=asking.include,
    )


def known_types(given: Sequence[str] | None) -> tuple[MemoryType, ...]:
    """Return types by name; raises `Invalid` with `memory.type` for one that there is not."""
    unknown = [name for name in given or () if name not in MEMORY_TYPES]
    if unknown:
        raise Invalid(
            "memory.type",
            f"{unknown[0][:40]!r} is no type of memory.",
            remedy=f"Use {', '.join(MEMORY_TYPES)}.",
        )
    return tuple(known for known in MEMORY_TYPES if known in (given or ()))


def shown_filters(filters: Filters) -> dict[str, Any]:
    """Return filters as an answer names them: those that narrow it."""
    shown: dict[str, Any] = {"scopes": list(filters.scopes)}
    if filters.past:
        shown |= {"valid_at": show_instant(filters.valid_at), "known_at": show_instant(filters.known_at)}
    more = {
        "fork_id": filters.fork_id,
        "types": list(filters.types),
        "tags": list(filters.tags),
        "author": filters.author,
        "thread": filters.thread,
        "min_trust": filters.min_trust.word if filters.min_trust else "",
        "include": list(filters.include),
    }
    return shown | {name: value for name, value in more.items() if value}


def readable_scope(reading: Reading, refs: References, scope: str, reach: Reach) -> Scope:
    """Return a named scope that this caller reads: its own, or a past session's of its workspace."""
    try:
        return resolve_scope(scope, reach)
    except AgentsteadError as denied:
        if denied.code != "memory.scope_denied" or not scope.startswith("session:"):
            raise
        named = read_scope(scope)
        facts = refs.look(reading, named.session_id)
        if facts.exists and facts.workspace and facts.workspace == reach.workspace_id:
            return named
        raise


def scopes_of(reading: Reading, refs: References, scope: str | None, reach: Reach) -> tuple[str, ...]:
    """Return the scopes that a call reads, strongest first: the one it names, or all of the caller's."""
    return tuple(reach.scopes()) if scope is None else (readable_scope(reading, refs, scope, reach).id,)


def _instant(text: str | None, what: str, now_us: int) -> int:
    return now_us if text is None else read_instant(text, what=what)
