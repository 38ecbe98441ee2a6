"""What the next host needs to know of a session, bounded: a pure function of its events and open rows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentstead.sessions import events, tasks
from agentstead.sessions.sessions import Session
from agentstead.state import Reading

BYTES: Mapping[str, int] = {"brief": 8 * 1024, "full": 24 * 1024}
_TEXT_CHARS: Mapping[str, int] = {"brief": 280, "full": 900}
_LATEST: Mapping[str, int] = {"brief": 8, "full": 24}
FILES = 32

Detail = Literal["brief", "full"]

_LAST_TOLD = """
SELECT seq, kind, body
FROM events
WHERE session_id = :session_id
    AND archived = 0
    AND kind IN ('prompt', 'reply', 'plan', 'marker', 'note', 'question', 'answer', 'error')
ORDER BY seq DESC
LIMIT :most
"""
_FILES = """
SELECT DISTINCT json_extract(body, '$.path') AS path
FROM events
WHERE session_id = :session_id
    AND archived = 0
    AND kind IN ('tool_call', 'tool_result')
    AND json_extract(body, '$.path') IS NOT NULL
ORDER BY path
LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Recap:
    """The goal (first prompt), what was said last (oldest first), files touched, and the workspace's open tasks."""

    goal: str
    latest: tuple[Mapping[str, Any], ...]
    files: tuple[str, ...]
    open_tasks: tuple[Mapping[str, str], ...]
    events: int


def recap(reading: Reading, session: Session, *, detail: Detail = "brief") -> Recap:
    """Return the recap of a session; the same events and rows give the same value."""
    first = events.page(reading, session.id, kinds=("prompt",), most=1)
    rows = reading.all(_LAST_TOLD, session_id=session.id, most=_LATEST[detail])
    told = events_of(rows, _TEXT_CHARS[detail])
    return Recap(
        goal=_clip(_text(first[0].body) if first else "", _TEXT_CHARS[detail]),
        latest=_bounded(told, BYTES[detail]),
        files=tuple(row["path"] for row in reading.all(_FILES, session_id=session.id, most=FILES)),
        open_tasks=tuple(_open_tasks(reading, session)),
        events=session.last_seq,
    )


def events_of(rows: list[Any], chars: int) -> list[Mapping[str, Any]]:
    """Return told events, oldest first, each with its sequence and clipped text."""
    return [
        {"seq": row["seq"], "kind": row["kind"], "text": _clip(_text_of(row["body"]), chars)} for row in reversed(rows)
    ]


def _open_tasks(reading: Reading, session: Session) -> list[Mapping[str, str]]:
    found: list[Mapping[str, str]] = []
    for status in ("needs_attention", "in_progress", "ready", "blocked"):
        rows = tasks.list_tasks(reading, workspace=session.workspace_id, status=status, most=8)
        found += [{"task_id": task.id, "title": task.title, "status": task.status} for task in rows]
    return found[:12]


def _bounded(told: list[Mapping[str, Any]], limit: int) -> tuple[Mapping[str, Any], ...]:
    """Keep the newest that fit."""
    kept: list[Mapping[str, Any]] = []
    used = 0
    for each in reversed(told):
        used += len(each["text"].encode()) + 40
        if used > limit:
            break
        kept.append(each)
    return tuple(reversed(kept))


def _text_of(body: str | None) -> str:
    if body is None:
        return "(a large event; read it with session_events)"
    return _text(json.loads(body))


def _text(body: Mapping[str, Any] | None) -> str:
    if body is None:
        return "(a large event; read it with session_events)"
    text = body.get("text")
    return text if isinstance(text, str) else ", ".join(f"{key}={value}" for key, value in sorted(body.items()))


def _clip(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1].rstrip() + "…"
