"""The one way in: a checked envelope becomes a stored message, its deliveries and its effect on work, or nothing.

Local sends, carriers and imports all pass here; what came before (size, form, freshness) is `wire.examine`.
"""

import sqlite3
from dataclasses import dataclass

from agentstead.network import works
from agentstead.network.containers import enter
from agentstead.network.machines import Origin
from agentstead.network.routing import Recipient, Routing, Skipped, route
from agentstead.network.wire import Envelope, Refused
from agentstead.state import Tx

_KNOWN = """
SELECT seq, canon_sha256
FROM net_message
WHERE workspace = :workspace
    AND from_peer = :sender
    AND message_id = :message_id
"""
_CAUSE = """
SELECT root_seq, depth
FROM net_message
WHERE workspace = :workspace
    AND message_id = :message_id
ORDER BY seq
LIMIT 1
"""
_INSERT = """
INSERT INTO net_message (
    workspace, from_peer, message_id, kind, channel, surface, container_id, to_peer, work_id, reply_to, trace_id,
    causation_id, ts, expires_at, canon_sha256, raw, raw_blob, trust, flags, origin, peering, root_seq, depth,
    accepted_at
)
VALUES (
    :workspace, :sender, :message_id, :kind, :channel, :surface, :container_id, :to_peer, :work_id, :reply_to,
    :trace_id, :causation_id, :ts, :expires_at, :canon_sha256, :raw, :raw_blob, :trust, '[]', :origin, :peering,
    :root_seq, :depth, :now
)
RETURNING seq
"""
_OWN_ROOT = "UPDATE net_message SET root_seq = seq WHERE seq = :seq"
_DELIVER = """
INSERT INTO net_delivery (seq, peer_id, decision, reason, read_at, acked_at)
VALUES (:seq, :peer_id, 'deliver', :reason, NULL, NULL)
"""
_DELIVERED = "SELECT peer_id, reason FROM net_delivery WHERE seq = :seq ORDER BY peer_id"
_STEP_STATE = """
SELECT s.to_state, w.version
FROM net_work_step AS s
JOIN net_work AS w ON w.workspace = s.workspace AND w.work_id = s.work_id
WHERE s.seq = :seq
"""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where an envelope came from, and where its bytes lie if they are too large for a row."""

    origin: Origin = "local"
    peering: str = ""
    raw_blob: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a message; `duplicate` where it had been accepted before, with the same bytes."""

    seq: int
    duplicate: bool
    delivered: tuple[Recipient, ...]
    skipped: tuple[Skipped, ...]
    work_state: str | None
    work_version: int | None


def accept(tx: Tx, envelope: Envelope, arrival: Arrival = Arrival()) -> Accepted:
    """Store a message with all that follows from it in this one transaction.

    Raises `Refused` from deduplication, routing or work; nothing is changed then.
    """
    known = tx.one(_KNOWN, workspace=envelope.workspace_id, sender=envelope.sender, message_id=envelope.id)
    if known is not None:
        return _repeated(tx, envelope, known)
    routing = route(tx, envelope)
    move = works.judge(tx, envelope)
    seq = _store(tx, envelope, arrival)
    for recipient in routing.recipients:
        tx.execute(_DELIVER, seq=seq, peer_id=recipient.peer_id, reason=recipient.reason)
    enter(tx, envelope, routing, seq, title=arrival.title)
    _tell(tx, envelope, routing, seq)
    version = works.apply(tx, envelope, move, seq) if move else None
    return Accepted(seq, False, routing.recipients, routing.skipped, move.state if move else None, version)


def _repeated(tx: Tx, envelope: Envelope, known: sqlite3.Row) -> Accepted:
    if known["canon_sha256"] != envelope.canon_sha256:
        raise Refused(
            "duplicate", "id_conflict", what="The sender used this message id for other content.", pointer="/id"
        )
    seq = known["seq"]
    delivered = tuple(Recipient(row["peer_id"], row["reason"]) for row in tx.all(_DELIVERED, seq=seq))
    step = tx.one(_STEP_STATE, seq=seq)
    state, version = (None, None) if step is None else (step["to_state"], step["version"])
    return Accepted(seq, True, delivered, (), state, version)


def _store(tx: Tx, envelope: Envelope, arrival: Arrival) -> int:
    root, depth = _causation(tx, envelope)
    seq: int = tx.value(
        _INSERT,
        workspace=envelope.workspace_id,
        sender=envelope.sender,
        message_id=envelope.id,
        kind=envelope.kind,
        channel=envelope.channel,
        surface=envelope.surface,
        container_id=envelope.container_id,
        to_peer=envelope.to,
        work_id=envelope.work_id,
        reply_to=envelope.reply_to,
        trace_id=envelope.trace_id,
        causation_id=envelope.causation_id,
        ts=envelope.ts,
        expires_at=envelope.expires_at,
        canon_sha256=envelope.canon_sha256,
        raw=None if arrival.raw_blob else envelope.raw,
        raw_blob=arrival.raw_blob,
        trust=envelope.trust,
        origin=arrival.origin,
        peering=arrival.peering,
        root_seq=root or 0,
        depth=depth,
        now=tx.now_us,
    )
    if root is None:
        tx.execute(_OWN_ROOT, seq=seq)
    return seq


def _causation(tx: Tx, envelope: Envelope) -> tuple[int | None, int]:
    """Return the root's sequence (None: the message itself) and how many messages lie between them."""
    if envelope.causation_id is None:
        return None, 0
    cause = tx.one(_CAUSE, workspace=envelope.workspace_id, message_id=envelope.causation_id)
    # An unknown cause may be a real one that another home holds: such a message is never depth 0.
    return (None, 1) if cause is None else (cause["root_seq"], cause["depth"] + 1)


def _tell(tx: Tx, envelope: Envelope, routing: Routing, seq: int) -> None:
    body = {
        "seq": seq,
        "kind": envelope.kind,
        "channel": envelope.channel,
        "container": envelope.container_id or "",
        "work_id": envelope.work_id or "",
        "from": envelope.sender,
        "to": [recipient.peer_id for recipient in routing.recipients],
        "canon_sha256": envelope.canon_sha256,
    }
    tx.journal("network.message.accepted", subject=envelope.id, workspace=envelope.workspace_id, body=body)
