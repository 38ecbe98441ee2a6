"""Threads and rooms as they grow: the first message opens them, each message keeps their counters and participants."""

from agentstead.network.rooms import open_room
from agentstead.network.routing import Routing
from agentstead.network.wire import Envelope
from agentstead.state import Tx

TITLE_CHARS = 120

_THREAD = """
INSERT INTO net_thread (workspace, channel, thread_id, title, root_seq, last_seq, messages, view)
VALUES (:workspace, :channel, :thread_id, :title, :seq, :seq, 1, 'open')
ON CONFLICT (workspace, channel, thread_id) DO UPDATE
SET last_seq = excluded.last_seq,
    messages = messages + 1
RETURNING messages
"""
_PARTICIPANT = """
INSERT INTO net_thread_peer (workspace, channel, thread_id, peer_id, first_seq)
VALUES (:workspace, :channel, :thread_id, :peer_id, :seq)
ON CONFLICT (workspace, channel, thread_id, peer_id) DO NOTHING
"""


def enter(tx: Tx, envelope: Envelope, routing: Routing, seq: int, *, title: str) -> None:
    """Put a stored message into its thread or room; discovery messages have none."""
    if envelope.surface == "thread":
        _enter_thread(tx, envelope, routing, seq, title)
    elif envelope.surface == "direct" and routing.target is not None:
        _enter_room(tx, envelope, routing)


def _enter_thread(tx: Tx, envelope: Envelope, routing: Routing, seq: int, title: str) -> None:
    at = {"workspace": envelope.workspace_id, "channel": envelope.channel, "thread_id": envelope.container_id}
    shown = tx.redact(title)[:TITLE_CHARS]
    if tx.value(_THREAD, **at, title=shown, seq=seq) == 1:
        body = {"channel": envelope.channel, "root_seq": seq, "title": shown}
        tx.journal(
            "network.thread.opened", subject=envelope.container_id or "", workspace=envelope.workspace_id, body=body
        )
    # Who was only reached as a member of the channel takes no part until named or heard.
    named = [each.peer_id for each in routing.recipients if each.reason != "member"]
    for peer_id in (envelope.sender, *named):
        tx.execute(_PARTICIPANT, **at, peer_id=peer_id, seq=seq)


def _enter_room(tx: Tx, envelope: Envelope, routing: Routing) -> None:
    assert routing.target is not None
    room = envelope.container_id or ""
    if open_room(tx, room, routing.sender, routing.target):
        tx.journal(
            "network.room.opened", subject=room, workspace=envelope.workspace_id, body={"channel": envelope.channel}
        )
