"""Listing what memory holds: memories, proposals, decisions, conflicts and the log, page by page, inside the scopes."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentstead.memory import decisions, parking, proposals
from agentstead.memory.scopes import Reach
from agentstead.memory.store import load
from agentstead.memory.times import show_instant
from agentstead.memory.views import decision_row, memory_row, proposal_row
from agentstead.state import Reading

What = Literal["memories", "proposals", "decisions", "conflicts", "events"]
Order = Literal["newest", "oldest"]

_SEEN = """
(
    :everything
    OR {m}.scope IN (SELECT value FROM json_each(:scopes))
    OR (
        {m}.type = 'episode' AND {m}.scope LIKE 'session:%'
        AND {m}.workspace_id = :workspace AND :workspace <> ''
    )
) AND {m}.fork_id IN ('', :fork)
"""
_CHOSEN = """
(:types = '[]' OR m.type IN (SELECT value FROM json_each(:types)))
    AND (:states = '[]' OR m.state IN (SELECT value FROM json_each(:states)))
    AND (:memory_id = '' OR m.id = :memory_id)
"""
_MEMORIES = f"""
SELECT m.id AS place, m.id AS memory_id
FROM memories m
WHERE {_SEEN.format(m="m")} AND {_CHOSEN}
"""
_DECISIONS = f"""
SELECT d.id AS place, d.*
FROM decisions d
LEFT JOIN memories m ON m.id = d.memory_id
WHERE (:everything OR d.workspace_id IN ('', :workspace))
    AND (m.id IS NULL OR ({_SEEN.format(m="m")}))
    AND (:memory_id = '' OR d.memory_id = :memory_id)
    AND (:states = '[]' OR d.verdict IN (SELECT value FROM json_each(:states)))
    AND (:types = '[]' OR m.type IN (SELECT value FROM json_each(:types)))
"""
_PROPOSALS = """
SELECT p.id AS place, p.id AS proposal_id
FROM proposals p
WHERE (:everything OR p.workspace_id IN ('', :workspace))
    AND p.fork_id IN ('', :fork)
    AND (:states = '[]' OR p.state IN (SELECT value FROM json_each(:states)))
"""
_CONFLICTS = f"""
SELECT l.from_id || ' ' || l.to_id AS place, l.from_id, l.to_id, l.rule, l.at
FROM links l
JOIN memories m ON m.id = l.to_id
WHERE l.kind = 'contradicts' AND l.state = 'open' AND {_SEEN.format(m="m")}
    AND (:memory_id = '' OR :memory_id IN (l.from_id, l.to_id))
"""
_EVENTS = f"""
SELECT v.seq AS place, v.seq, v.memory_id, v.edition_id, v.op, v.detail, v.decision_id, v.at
FROM memory_events v
JOIN memories m ON m.id = v.memory_id
WHERE {_SEEN.format(m="m")} AND {_CHOSEN}
"""
_SOURCES: Mapping[What, str] = {
    "memories": _MEMORIES,
    "proposals": _PROPOSALS,
    "decisions": _DECISIONS,
    "conflicts": _CONFLICTS,
    "events": _EVENTS,
}
_PAGE = """
SELECT *
FROM ({source})
WHERE :after IS NULL OR place {beyond} :after
ORDER BY place {direction}
LIMIT :most
"""
_COUNT = "SELECT count(*) FROM ({source})"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to list: whose scopes, of which kinds, in which order, from where."""

    what: What
    scopes: Sequence[str]
    types: Sequence[str] = ()
    states: Sequence[str] = ()
    memory_id: str = ""
    order: Order = "newest"
    limit: int = 20
    everything: bool = False

    def params(self, reach: Reach) -> dict[str, Any]:
        """Return the parameters of the queries."""
        return {
            "everything": int(self.everything),
            "scopes": json.dumps(list(self.scopes)),
            "workspace": reach.workspace_id,
            "fork": reach.fork_id,
            "types": json.dumps(list(self.types)),
            "states": json.dumps(list(self.states)),
            "memory_id": self.memory_id,
        }


@dataclass(frozen=True, slots=True)
class Page:
    """Rows as they are shown, how many there are in all, and where the next page begins."""

    rows: list[dict[str, Any]]
    total: int
    next_place: str | int | None


def list_page(reading: Reading, wanted: Wanted, reach: Reach, *, after: str | int | None = None) -> Page:
    """Return one page."""
    source = _SOURCES[wanted.what]
    params = wanted.params(reach)
    newest = wanted.order == "newest"
    sql = _PAGE.format(source=source, beyond="<" if newest else ">", direction="DESC" if newest else "ASC")
    rows = reading.all(sql, after=after, most=wanted.limit + 1, **params)
    shown = rows[: wanted.limit]
    next_place = shown[-1]["place"] if len(rows) > wanted.limit else None
    return Page(_SHOWN[wanted.what](reading, shown), reading.value(_COUNT.format(source=source), **params), next_place)


def _memories(reading: Reading, rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    ids = [row["memory_id"] for row in rows]
    known = load(reading, ids)
    return [memory_row(known[memory_id]) for memory_id in ids]


def _proposals(reading: Reading, rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    found = [proposals.by_id(reading, row["proposal_id"]) for row in rows]
    return [
        proposal_row(each, parking.texts(reading, each), now_us=reading.now_us) for each in found if each is not None
    ]


def _decisions(_reading: Reading, rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    return [decision_row(decisions.read_row(row)) for row in rows]


def _conflicts(reading: Reading, rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    known = load(reading, [memory_id for row in rows for memory_id in (row["from_id"], row["to_id"])])
    return [
        {
            "from_id": row["from_id"],
            "memory_id": row["to_id"],
            "title": known[row["to_id"]].title,
            "rule": row["rule"],
            "at": show_instant(row["at"]),
        }
        for row in rows
    ]


def _events(_reading: Reading, rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    return [
        {
            "seq": row["seq"],
            "memory_id": row["memory_id"],
            "op": row["op"],
            "edition_id": row["edition_id"],
            "decision_id": row["decision_id"],
            "detail": json.loads(row["detail"]),
            "at": show_instant(row["at"]),
        }
        for row in rows
    ]


_SHOWN = {
    "memories": _memories,
    "proposals": _proposals,
    "decisions": _decisions,
    "conflicts": _conflicts,
    "events": _events,
}
