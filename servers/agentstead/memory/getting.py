"""One memory whole, with what was asked along: its editions, evidence, links, decisions and uses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from agentstead.memory import decisions
from agentstead.memory.evidence import evidence_of
from agentstead.memory.intents import visible_target
from agentstead.memory.scopes import Reach
from agentstead.memory.store import Memory, load, load_editions
from agentstead.memory.times import show_instant, show_or_none
from agentstead.memory.views import MemoryView, decision_row, memory_view
from agentstead.state import Invalid, Reading

With = Literal["history", "evidence", "links", "decisions", "uses"]

_EDITIONS = "SELECT id FROM memory_editions WHERE memory_id = :memory_id ORDER BY ordinal"
_LINKS = """
SELECT from_id, to_id, kind, state, rule, at
FROM links
WHERE from_id = :id OR to_id = :id
ORDER BY at, from_id, to_id
"""
_USES = """
SELECT count(*) AS surfaced, coalesce(sum(used), 0) AS used, coalesce(sum(outcome = 'helped'), 0) AS helped,
    coalesce(sum(outcome = 'misled'), 0) AS misled
FROM recall_items
WHERE memory_id = :id
"""


def known_parts(given: Sequence[str] | None) -> tuple[With, ...]:
    """Return what more to show, by name; raises `Invalid` for a name that there is not."""
    unknown = [name for name in given or () if name not in _MORE]
    if unknown:
        raise Invalid("memory.invalid", f"{unknown[0][:40]!r} is nothing to add.", remedy=f"Use {', '.join(_MORE)}.")
    return tuple(name for name in _MORE if name in (given or ()))


def get_memories(reading: Reading, ids: Sequence[str], with_: Sequence[With], reach: Reach) -> list[MemoryView]:
    """Return memories in the order asked; raises `memory.not_found` for one that is not seen here."""
    known = load(reading, ids)
    found = [visible_target(known.get(memory_id), memory_id, reach) for memory_id in dict.fromkeys(ids)]
    return [memory_view(memory, **{name: _MORE[name](reading, memory) for name in with_}) for memory in found]


def _history(reading: Reading, memory: Memory) -> list[dict[str, Any]]:
    ids = [row["id"] for row in reading.all(_EDITIONS, memory_id=memory.id)]
    editions = load_editions(reading, ids)
    return [_edition(editions[edition_id]) for edition_id in ids]


def _edition(memory: Memory) -> dict[str, Any]:
    edition = memory.edition
    return {
        "edition_id": memory.edition_id,
        "ordinal": memory.ordinal,
        "title": memory.title,
        "text": memory.text,
        "tags": list(edition.tags),
        "trust": edition.trust.word,
        "principal": edition.principal,
        "valid_from": show_instant(edition.valid_from),
        "valid_to": show_or_none(edition.valid_to),
        "recorded_at": show_instant(memory.recorded_at),
        "unrecorded_at": show_or_none(memory.unrecorded_at),
    }


def _evidence(reading: Reading, memory: Memory) -> list[dict[str, Any]]:
    return [
        {"ref": row.ref, "kind": row.kind, "state": row.state, "observed_at": show_instant(row.observed_at)}
        for row in evidence_of(reading, memory.edition_id)
    ]


def _links(reading: Reading, memory: Memory) -> list[dict[str, Any]]:
    rows = reading.all(_LINKS, id=memory.id)
    return [dict(row) | {"at": show_instant(row["at"])} for row in rows]


def _decisions(reading: Reading, memory: Memory) -> list[dict[str, Any]]:
    return [decision_row(each) for each in decisions.of_memory(reading, memory.id)]


def _uses(reading: Reading, memory: Memory) -> dict[str, int]:
    row = reading.one(_USES, id=memory.id)
    return json_counts(dict(row) if row else {})


def json_counts(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return counts as whole numbers."""
    return {name: int(value) for name, value in counts.items()}


_MORE: Mapping[With, Callable[[Reading, Memory], Any]] = {
    "history": _history,
    "evidence": _evidence,
    "links": _links,
    "decisions": _decisions,
    "uses": _uses,
}
