"""The loop guard: what was recalled a moment ago is not learned anew when it is written back."""

from dataclasses import dataclass

from agentstead.memory.likeness import is_repeated
from agentstead.memory.times import DAY_US
from agentstead.state import Reading

SESSION_US = DAY_US
WORKSPACE_US = 2 * 60 * 60 * 1_000_000
LOOKED_AT = 400

_SHOWN = """
SELECT i.recall_id, i.memory_id, t.body
FROM recalls r
JOIN recall_items i ON i.recall_id = r.id
JOIN memory_editions e ON e.id = i.edition_id
JOIN memory_texts t ON t.id = e.text_id
WHERE (r.session_id = :session AND r.session_id <> '' AND r.at > :session_since)
    OR (
        r.workspace_id = :workspace
        AND r.at > :workspace_since
        AND (r.workspace_id <> '' OR r.principal = :principal)
    )
GROUP BY i.edition_id
ORDER BY max(r.at) DESC
LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory that a recall returned."""

    recall_id: str
    memory_id: str


def repeated_recall(reading: Reading, text: str, *, principal: str, session_id: str, workspace_id: str) -> Shown | None:
    """Return the recalled memory that `text` repeats: shown to this session within a day, or here within two hours."""
    rows = reading.all(
        _SHOWN,
        session=session_id,
        workspace=workspace_id,
        principal=principal,
        session_since=reading.now_us - SESSION_US,
        workspace_since=reading.now_us - WORKSPACE_US,
        most=LOOKED_AT,
    )
    for row in rows:
        if is_repeated(text, row["body"]):
            return Shown(row["recall_id"], row["memory_id"])
    return None
