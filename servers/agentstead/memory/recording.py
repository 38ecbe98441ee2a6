"""Keeping what a recall returned: for the loop guard, for replay, and for counting what came of it.

A recall stays a read: this is written after the answer, without a journal entry, and may be missing.
"""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentstead.memory.recall import Answer, Item, Why
from agentstead.memory.scopes import Reach
from agentstead.memory.store import Memory, load_editions, readable
from agentstead.memory.times import DAY_US
from agentstead.state import NotFound, Reading, Tx, sha256_hex

KEPT_DAYS = 30

_RECALL = """
INSERT INTO recalls (id, principal, workspace_id, session_id, query_hash, query, filters, mode, complete, weak,
    latency_us, at)
VALUES (:id, :principal, :workspace, :session, :query_hash, :query, :filters, :mode, 1, :weak, :latency_us, :now)
"""
_ITEM = """
INSERT INTO recall_items (recall_id, rank, memory_id, edition_id, score, signals)
VALUES (:recall, :rank, :memory, :edition, :score, :signals)
"""
_RECORDED = "SELECT workspace_id, filters, mode, weak FROM recalls WHERE id = :id"
_ITEMS = "SELECT edition_id, score, signals FROM recall_items WHERE recall_id = :id ORDER BY rank"
_OLD_ITEMS = "DELETE FROM recall_items WHERE recall_id IN (SELECT id FROM recalls WHERE at < :before)"
_OLD = "DELETE FROM recalls WHERE at < :before"
_REJECTED_TEXTS = """
UPDATE memory_texts
SET title = '',
    body = ''
WHERE body <> ''
    AND id IN (
        SELECT t.value
        FROM proposals p, json_each(p.text_ids) t
        WHERE p.state IN ('rejected', 'withdrawn', 'replaced', 'expired') AND p.expires_at < :now
    )
    AND id NOT IN (SELECT text_id FROM memory_editions)
"""


_REJECTED = """
UPDATE proposals
SET operations = '[]',
    text_ids = '[]'
WHERE state IN ('rejected', 'withdrawn', 'replaced', 'expired') AND expires_at < :now AND operations <> '[]'
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked what, as it is kept."""

    principal: str
    workspace_id: str
    session_id: str
    query: str
    filters: Mapping[str, Any]
    latency_us: int


def record_recall(tx: Tx, asked: Asked, answer: Answer, *, recall_id: str, offset: int) -> None:
    """Keep a recall with its items; ranks go on behind earlier pages."""
    query = tx.redact(asked.query.encode("utf-8", "replace").decode())
    tx.execute(
        _RECALL,
        id=recall_id,
        principal=asked.principal,
        workspace=asked.workspace_id,
        session=asked.session_id,
        query_hash=sha256_hex(query.encode()),
        query=query,
        filters=json.dumps(
            {
                "filters": dict(asked.filters),
                "terms_used": answer.terms_used,
                "terms_dropped": answer.terms_dropped,
                "candidates": answer.candidates,
                "hidden": dict(answer.hidden),
                "reason": answer.reason,
            }
        ),
        mode=answer.mode,
        weak=int(answer.weak),
        latency_us=asked.latency_us,
        now=tx.now_us,
    )
    for rank, item in enumerate(answer.items, offset + 1):
        tx.execute(
            _ITEM,
            recall=recall_id,
            rank=rank,
            memory=item.memory.id,
            edition=item.memory.edition_id,
            score=item.score,
            signals=json.dumps(
                {"terms": item.why.terms, "columns": item.why.columns, "signals": dict(item.why.signals)}
            ),
        )


def replay(reading: Reading, recall_id: str, reach: Reach) -> tuple[Answer, dict[str, Any]]:
    """Return a recorded answer as it was, and its filters.

    Raises `memory.not_found` alike for one that is unknown and one of another workspace.
    """
    row = reading.one(_RECORDED, id=recall_id)
    if row is None or not (reach.person or row["workspace_id"] in ("", reach.workspace_id)):
        raise NotFound(
            "memory.not_found",
            f"No recall {recall_id[:40]!r} is known here; recalls are kept for {KEPT_DAYS} days.",
            remedy="Use the recall_id of an earlier answer in this workspace, or ask again.",
        )
    kept = json.loads(row["filters"])
    items = reading.all(_ITEMS, id=recall_id)
    memories = load_editions(reading, [item["edition_id"] for item in items])
    shown = [_replayed(item, memories[item["edition_id"]]) for item in items if item["edition_id"] in memories]
    answer = Answer(
        items=tuple(item for item in shown if readable(item.memory, reach, reach.scopes())),
        mode=row["mode"],
        weak=bool(row["weak"]),
        reason=kept["reason"],
        terms_used=tuple(kept["terms_used"]),
        terms_dropped=tuple(kept["terms_dropped"]),
        candidates=kept["candidates"],
        hidden=kept["hidden"],
        more=False,
    )
    return answer, kept["filters"]


def _replayed(row: sqlite3.Row, memory: Memory) -> Item:
    why = json.loads(row["signals"])
    return Item(memory, row["score"], Why(tuple(why["terms"]), tuple(why["columns"]), why["signals"]), memory.text)


def sweep(tx: Tx) -> dict[str, int]:
    """Drop recalls after thirty days, and what proposals said that were not accepted; return the counts."""
    before = tx.now_us - KEPT_DAYS * DAY_US
    tx.execute(_OLD_ITEMS, before=before)
    counts = {"recalls": tx.execute(_OLD, before=before), "texts": tx.execute(_REJECTED_TEXTS, now=tx.now_us)}
    counts["proposals"] = tx.execute(_REJECTED, now=tx.now_us)
    if any(counts.values()):
        tx.journal("memory.store.swept", subject="memory", body=counts)
    return counts
