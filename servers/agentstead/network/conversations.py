"""The messages of a thread, a room, a work or a channel, shown in order and within a limit of bytes."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from agentstead.network.inbox import body_of, preview
from agentstead.network.references import Ref
from agentstead.state import Reading

_MESSAGE_COLUMNS = "seq, message_id, from_peer, to_peer, kind, work_id, reply_to, ts, raw, trust"
_IN_CONTAINER = f"""
SELECT {_MESSAGE_COLUMNS}
FROM net_message
WHERE workspace = :workspace
    AND channel = :channel
    AND surface = :surface
    AND container_id = :container_id
    AND seq < :before
    AND seq > :after
ORDER BY seq DESC
LIMIT :most
"""
_OF_WORK = f"""
SELECT {_MESSAGE_COLUMNS}
FROM net_message
WHERE workspace = :workspace
    AND work_id = :work_id
    AND seq < :before
    AND seq > :after
ORDER BY seq DESC
LIMIT :most
"""
_IN_CHANNEL = f"""
SELECT {_MESSAGE_COLUMNS}
FROM net_message
WHERE workspace = :workspace
    AND channel = :channel
    AND (surface IS NULL OR surface <> 'direct')
    AND seq < :before
    AND seq > :after
ORDER BY seq DESC
LIMIT :most
"""

BODY_BYTES: Final = 65_536


def messages(reading: Reading, ref: Ref, *, before: int, after: int, most: int) -> list[dict[str, Any]]:
    """Return the newest messages between two sequences, oldest first; a channel's own list leaves its rooms out."""
    window = {"before": before, "after": after, "most": most}
    if ref.kind == "work":
        rows = reading.all(_OF_WORK, workspace=ref.workspace, work_id=ref.work_id, **window)
    elif ref.kind == "channel":
        rows = reading.all(_IN_CHANNEL, workspace=ref.workspace, channel=ref.channel, **window)
    else:
        at = {"workspace": ref.workspace, "channel": ref.channel, "container_id": ref.container_id}
        rows = reading.all(_IN_CONTAINER, surface=ref.surface, **at, **window)
    return _lines(rows)


def _lines(rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    """Show rows that come newest first, oldest first; where bodies pass the limit, older ones are previewed."""
    lines: list[dict[str, Any]] = []
    left = BODY_BYTES
    for row in rows:
        left -= len(row["raw"] or b"")
        facts = {name: row[name] for name in row.keys() if name != "raw"}  # noqa: SIM118 - a Row
        lines.append(facts | body_shown(row, fits=left >= 0))
    return lines[::-1]


def body_shown(row: sqlite3.Row, *, fits: bool = True) -> dict[str, Any]:
    """Return the body in a row's bytes, or how to read it where it is too large for a list or lies elsewhere."""
    body = None if row["raw"] is None else body_of(row["raw"])
    if body is None or not fits:
        return {"body_preview": preview(row["message_id"], body)}
    return {"body": body}
