"""Building, freezing and finding again the context pack of a session."""

import json
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from agentstead.memory.asking import Asking, filters_of, shown_filters
from agentstead.memory.pack import Pack, fill
from agentstead.memory.question import read_question
from agentstead.memory.recall import Answer, Item, Why, answer, items_of
from agentstead.memory.recording import Asked, record_recall
from agentstead.memory.scopes import Reach
from agentstead.memory.search import Filters, standing_editions
from agentstead.memory.store import load_editions
from agentstead.memory.vocabulary import MemoryType
from agentstead.state import Reading, References, Tx

KIND = "context"
TIER_MOST = 100
HINT_MOST = 20
USEFUL: tuple[MemoryType, ...] = ("fact", "choice", "procedure", "incident", "person", "reference")

_FROZEN = """
SELECT recall_id, blob, items, left_out, built_seq
FROM memory_packs
WHERE session_id = :session AND kind = :kind
"""
_FREEZE = """
INSERT INTO memory_packs (session_id, kind, recall_id, blob, items, left_out, built_seq, built_at)
VALUES (:session, :kind, :recall, :blob, :items, :left_out, :seq, :now)
ON CONFLICT (session_id, kind) DO UPDATE
SET recall_id = excluded.recall_id,
    blob = excluded.blob,
    items = excluded.items,
    left_out = excluded.left_out,
    built_seq = excluded.built_seq,
    built_at = excluded.built_at
WHERE :refresh
"""
_SEQ = "SELECT coalesce(max(seq), 0) FROM memory_events"
_NEWER = """
SELECT count(DISTINCT v.memory_id)
FROM memory_events v
JOIN memories m ON m.id = v.memory_id
WHERE v.seq > :seq
    AND m.scope IN (SELECT value FROM json_each(:scopes))
    AND m.fork_id IN ('', :fork)
"""


class Frozen(BaseModel):
    """A pack that a session keeps; its text lies in the blob store."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recall_id: str
    blob: str
    items: list[str]
    left_out: int
    built_seq: int

    @classmethod
    def of(cls, pack: Pack, *, recall_id: str, built_seq: int, blob: str = "") -> "Frozen":
        """Return what is kept of a pack."""
        items = [item.memory.id for item in pack.items]
        return cls(recall_id=recall_id, blob=blob, items=items, left_out=pack.left_out, built_seq=built_seq)


def build(
    reading: Reading, refs: References, reach: Reach, *, scope: str | None, hint: str, budget: int
) -> tuple[Pack, int, Filters]:
    """Return a fresh pack, the place in the log that it was built at, and the filters that it was built under."""
    filters = filters_of(reading, refs, Asking(hint, scope=scope), reach, now_us=reading.now_us)
    tiers = [
        [*_standing(reading, filters, pinned=True), *_standing(reading, filters, types=("instruction",))],
        _standing(reading, filters, types=("preference",)),
        _hinted(reading, filters, hint),
        _standing(reading, filters, doubtful=True),
        _standing(reading, filters, types=USEFUL),
    ]
    return fill(tiers, budget=budget), int(reading.value(_SEQ)), filters


def find(reading: Reading, session_id: str) -> Frozen | None:
    """Return the pack that a session keeps."""
    row = reading.one(_FROZEN, session=session_id, kind=KIND)
    return None if row is None else Frozen(**(dict(row) | {"items": json.loads(row["items"])}))


def freeze(tx: Tx, session_id: str, fresh: Frozen, *, refresh: bool) -> Frozen:
    """Keep a pack for a session; where another call was first and `refresh` is not asked, return that one's."""
    tx.execute(
        _FREEZE,
        session=session_id,
        kind=KIND,
        recall=fresh.recall_id,
        blob=fresh.blob,
        items=json.dumps(fresh.items),
        left_out=fresh.left_out,
        seq=fresh.built_seq,
        now=tx.now_us,
        refresh=refresh,
    )
    frozen = find(tx, session_id)
    assert frozen is not None
    return frozen


def count_newer(reading: Reading, built_seq: int, scopes: Sequence[str], fork_id: str) -> int:
    """Return how many memories in these scopes changed since a pack was built."""
    number: int = reading.value(_NEWER, seq=built_seq, scopes=json.dumps(list(scopes)), fork=fork_id)
    return number


def record(tx: Tx, reach: Reach, pack: Pack, filters: Filters, *, recall_id: str, hint: str) -> None:
    """Keep a pack as the recall that it is: what was shown is not learned anew."""
    asked = Asked(
        principal=reach.principal,
        workspace_id=reach.workspace_id,
        session_id=reach.session_id,
        query=hint,
        filters=shown_filters(filters),
        latency_us=0,
    )
    shown = Answer(
        items=pack.items,
        mode="lexical",
        weak=False,
        reason="",
        terms_used=(),
        terms_dropped=(),
        candidates=len(pack.items) + pack.left_out,
        hidden={},
        more=False,
    )
    record_recall(tx, asked, shown, recall_id=recall_id, offset=0)


def _hinted(reading: Reading, filters: Filters, hint: str) -> Sequence[Item]:
    question = read_question(hint)
    if not question.terms:
        return ()
    return answer(reading, question, filters, limit=HINT_MOST, scored_at=reading.now_us).items


def _standing(
    reading: Reading,
    filters: Filters,
    *,
    types: tuple[MemoryType, ...] = (),
    pinned: bool = False,
    doubtful: bool = False,
) -> list[Item]:
    chosen = standing_editions(reading, replace(filters, types=types), most=TIER_MOST, pinned=pinned, doubtful=doubtful)
    memories = load_editions(reading, chosen)
    why = Why((), (), {})
    return items_of(reading, [Item(memories[edition_id], 0.0, why, memories[edition_id].text) for edition_id in chosen])
