"""A peer's inbox: in the order of acceptance, marked by nobody but its owner, and never by reading."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentstead.network.peers import Peer
from agentstead.network.results import InboxItem
from agentstead.network.wire import parse
from agentstead.state import Invalid, Reading, Tx

Only = Literal["unread", "unacked", "addressed", "all"]
Level = Literal["read", "ack"]

_DELIVERED = """
SELECT m.seq, m.message_id, m.from_peer, m.to_peer, m.kind, m.channel, m.surface, m.container_id, m.work_id,
    m.reply_to, m.trace_id, m.causation_id, m.ts, m.expires_at, m.trust, m.flags, m.raw, m.raw_blob, m.accepted_at,
    d.reason, d.read_at, d.acked_at, w.state AS work_state
FROM net_delivery AS d
JOIN net_message AS m ON m.seq = d.seq
LEFT JOIN net_work AS w ON w.workspace = m.workspace AND w.work_id = m.work_id
WHERE d.peer_id = :peer_id
    AND d.decision = 'deliver'
    AND d.seq > :after
    AND m.workspace = :workspace
    AND m.channel IN (SELECT value FROM json_each(:channels))
    AND (:only <> 'unread' OR d.read_at IS NULL)
    AND (:only <> 'addressed' OR d.reason IN ('addressed', 'mentioned', 'held'))
"""
_ITEMS = f"""
{_DELIVERED}
ORDER BY d.seq
LIMIT :most
"""
# What is open is read by its own index, however long the history behind it is.
_OPEN_ITEMS = f"""
{_DELIVERED}
    AND d.acked_at IS NULL
ORDER BY d.seq
LIMIT :most
"""
_UNREAD = """
SELECT COUNT(*)
FROM net_delivery AS d
JOIN net_message AS m ON m.seq = d.seq
WHERE d.peer_id = :peer_id
    AND d.decision = 'deliver'
    AND d.acked_at IS NULL
    AND d.read_at IS NULL
    AND m.workspace = :workspace
    AND m.channel = :channel
"""
_OF_ID = """
SELECT d.seq
FROM net_delivery AS d
JOIN net_message AS m ON m.seq = d.seq
WHERE d.peer_id = :peer_id
    AND d.decision = 'deliver'
    AND m.workspace = :workspace
    AND m.channel = :channel
    AND m.message_id = :message_id
"""
_MARK = """
UPDATE net_delivery
SET read_at = COALESCE(read_at, :now),
    acked_at = CASE WHEN :level = 'ack' THEN COALESCE(acked_at, :now) ELSE acked_at END
WHERE peer_id = :peer_id
    AND decision = 'deliver'
    AND acked_at IS NULL
    AND (:level = 'ack' OR read_at IS NULL)
    AND (seq <= :upto OR seq IN (SELECT value FROM json_each(:seqs)))
    AND EXISTS (
        SELECT 1
        FROM net_message AS m
        WHERE m.seq = net_delivery.seq
            AND m.workspace = :workspace
            AND m.channel = :channel
    )
"""
_FIRST_OPEN = """
SELECT d.seq
FROM net_delivery AS d
JOIN net_message AS m ON m.seq = d.seq
WHERE d.peer_id = :peer_id
    AND d.decision = 'deliver'
    AND d.acked_at IS NULL
    AND (:level = 'ack' OR d.read_at IS NULL)
    AND m.workspace = :workspace
    AND m.channel = :channel
ORDER BY d.seq
LIMIT 1
"""
_LAST_BEFORE = """
SELECT d.seq
FROM net_delivery AS d
JOIN net_message AS m ON m.seq = d.seq
WHERE d.peer_id = :peer_id
    AND d.decision = 'deliver'
    AND d.seq < :first_open
    AND m.workspace = :workspace
    AND m.channel = :channel
ORDER BY d.seq DESC
LIMIT 1
"""
_CURSOR = """
INSERT INTO net_cursor (workspace, stable_id, channel, peek_seq, read_seq, ack_seq)
VALUES (:workspace, :stable_id, :channel, :read_seq, :read_seq, :ack_seq)
ON CONFLICT (workspace, stable_id, channel) DO UPDATE
SET peek_seq = MAX(peek_seq, excluded.peek_seq),
    read_seq = MAX(read_seq, excluded.read_seq),
    ack_seq = MAX(ack_seq, excluded.ack_seq)
"""
PREVIEW_CHARS: Final = 160
_NEVER: Final = 2**62


@dataclass(frozen=True, slots=True)
class Page:
    """Deliveries in order; `next_after` is where the next page goes on, or None at the end."""

    items: list[InboxItem]
    next_after: int | None
    unread: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """Up to where everything that was delivered is read, and acknowledged."""

    read_seq: int
    ack_seq: int


def page(reading: Reading, own: Sequence[Peer], *, only: Only, after: int, most: int, max_bytes: int) -> Page:
    """Return deliveries behind sequence `after`, oldest first, for one identity in its channels.

    Bodies stop at `max_bytes`; the first is previewed where it alone is larger.
    """
    rows = reading.all(
        _OPEN_ITEMS if only in ("unread", "unacked") else _ITEMS,
        workspace=own[0].workspace,
        peer_id=own[0].peer_id,
        channels=json.dumps([each.channel for each in own]),
        only=only,
        after=after,
        most=most + 1,
    )
    items: list[InboxItem] = []
    left = max_bytes
    for row in rows[:most]:
        size = len(row["raw"] or b"")
        if size > left and items:
            break
        items.append(_item(row, fits=size <= left))
        left -= size
    more = len(items) < len(rows)
    return Page(items, items[-1].seq if more else None, unread(reading, own))


def unread(reading: Reading, own: Sequence[Peer]) -> int:
    """Return how many deliveries are not marked as read."""
    return sum(int(reading.value(_UNREAD, **_scope(each))) for each in own)


def mark(tx: Tx, own: Sequence[Peer], *, upto_seq: int | None, message_ids: Sequence[str], level: Level) -> Cursor:
    """Mark deliveries as read or acknowledged; return up to where all channels meant are.

    Raises `Invalid` where nothing is named, a message was not delivered to this peer, or the sequence lies beyond
    what was: then nothing is marked.
    """
    if upto_seq is None and not message_ids:
        raise _invalid("name upto_seq or message_ids", "Use what inbox_read returned")
    seqs = [seq for message_id in message_ids for seq in _delivered(tx, own, message_id)]
    _refuse_future(tx, own, upto_seq)
    marked = {each.channel: _mark(tx, each, upto_seq or 0, seqs, level) for each in own}
    for each in own:
        _move_cursor(tx, each)
    if any(marked.values()):
        body = {"level": level, "marked": marked, "upto_seq": upto_seq or 0}
        tx.journal("network.inbox.acknowledged", subject=own[0].peer_id, workspace=own[0].workspace, body=body)
    return Cursor(_settled(tx, own, "read"), _settled(tx, own, "ack"))


def body_of(raw: bytes) -> dict[str, Any]:
    """Return the body inside of stored bytes."""
    body: dict[str, Any] = parse(raw)["body"]
    return body


def preview(message_id: str, body: dict[str, Any] | None) -> str:
    """Return the start of a body that is too large to show, and where the whole of it is."""
    text = str((body or {}).get("text", ""))[:PREVIEW_CHARS]
    return f"{text} ... (whole: network_view ref={message_id} view=raw)".lstrip()


def _mark(tx: Tx, peer: Peer, upto: int, seqs: Sequence[int], level: Level) -> int:
    return tx.execute(_MARK, **_scope(peer), upto=upto, seqs=json.dumps(seqs), level=level, now=tx.now_us)


def _delivered(tx: Tx, own: Sequence[Peer], message_id: str) -> list[int]:
    found = [row["seq"] for each in own for row in tx.all(_OF_ID, **_scope(each), message_id=message_id)]
    if not found:
        what = f"message_ids: {message_id[:80]!r} was not delivered to {own[0].peer_id}"
        raise _invalid(what, "Use message ids that inbox_read returned")
    return found


def _refuse_future(tx: Tx, own: Sequence[Peer], upto_seq: int | None) -> None:
    """Refuse a sequence that was never shown: it would mark what its reader has not seen."""
    newest = _last_before(tx, own, _NEVER)
    if upto_seq is not None and upto_seq > newest:
        raise _invalid(
            f"upto_seq: {upto_seq} lies beyond the newest delivery, {newest}", "Use a seq that inbox_read returned"
        )


def _invalid(what: str, remedy: str) -> Invalid:
    return Invalid("tool.invalid_arguments", f"{what}.", remedy=f"{remedy}; nothing was marked.")


def _move_cursor(tx: Tx, peer: Peer) -> None:
    tx.execute(
        _CURSOR,
        workspace=peer.workspace,
        stable_id=peer.stable_id,
        channel=peer.channel,
        read_seq=_settled(tx, [peer], "read"),
        ack_seq=_settled(tx, [peer], "ack"),
    )


def _settled(reading: Reading, own: Sequence[Peer], level: Level) -> int:
    """Return the last delivery before the first one that is not marked yet."""
    open_seqs = [reading.value(_FIRST_OPEN, **_scope(each), level=level) for each in own]
    return _last_before(reading, own, min((seq for seq in open_seqs if seq is not None), default=_NEVER))


def _last_before(reading: Reading, own: Sequence[Peer], first_open: int) -> int:
    return max(reading.value(_LAST_BEFORE, **_scope(each), first_open=first_open) or 0 for each in own)


def _scope(peer: Peer) -> dict[str, str]:
    return {"workspace": peer.workspace, "channel": peer.channel, "peer_id": peer.peer_id}


def _item(row: sqlite3.Row, *, fits: bool) -> InboxItem:
    body = body_of(row["raw"]) if row["raw"] is not None else None
    return InboxItem(
        seq=row["seq"],
        message_id=row["message_id"],
        from_peer=row["from_peer"],
        to_peer=row["to_peer"],
        kind=row["kind"],
        channel=row["channel"],
        thread_id=row["container_id"] if row["surface"] == "thread" else None,
        direct_id=row["container_id"] if row["surface"] == "direct" else None,
        work_id=row["work_id"],
        work_state=row["work_state"],
        reply_to=row["reply_to"],
        causation_id=row["causation_id"],
        ts=row["ts"],
        expires_at=row["expires_at"],
        trust=row["trust"],
        reason=row["reason"],
        read=row["read_at"] is not None,
        acked=row["acked_at"] is not None,
        body=body if fits else None,
        body_preview=None if body and fits else preview(row["message_id"], body),
    )
