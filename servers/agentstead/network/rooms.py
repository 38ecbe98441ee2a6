"""Rooms of two: who they belong to, and that no third peer is ever let in."""

from agentstead.network.peers import Peer, Place
from agentstead.network.wire import Refused, direct_id
from agentstead.network.wire.grammar import is_handle
from agentstead.state import Reading, Tx

_OF_ID = """
SELECT direct_id, peer_a, peer_b
FROM net_room
WHERE workspace = :workspace
    AND channel = :channel
    AND direct_id = :direct_id
"""
_OF_PAIR = """
SELECT direct_id
FROM net_room
WHERE workspace = :workspace
    AND channel = :channel
    AND stable_a = :stable_a
    AND stable_b = :stable_b
"""
_OPEN = """
INSERT INTO net_room (workspace, channel, direct_id, peer_a, peer_b, stable_a, stable_b)
VALUES (:workspace, :channel, :direct_id, :peer_a, :peer_b, :stable_a, :stable_b)
ON CONFLICT (workspace, channel, direct_id) DO NOTHING
"""


def room_of(one: Peer, other: Peer) -> str:
    """Return the id of the room of two different peers of one channel."""
    return direct_id(one.workspace, one.channel, one.stable_id, other.stable_id)


def room_peers(reading: Reading, place: Place, room: str) -> frozenset[str]:
    """Return the two Peer IDs of a room; empty for a room that nobody opened."""
    row = reading.one(_OF_ID, workspace=place.workspace, channel=place.channel, direct_id=room)
    return frozenset() if row is None else frozenset({row["peer_a"], row["peer_b"]})


def check_room(reading: Reading, room: str, one: Peer, other: Peer) -> None:
    """Raise `Refused` with `direct_room_collision` unless `room` is the one of this pair.

    The id is computed where both stable ids are known; a pair that only another home could compute for is pinned to
    the first id it came with.
    """
    peers = room_peers(reading, one.place, room)
    known = _known_room(reading, one, other)
    fits = (
        one.stable_id != other.stable_id
        and peers in (frozenset(), {one.peer_id, other.peer_id})
        and known in (None, room)
        and (not (_is_computable(one) and _is_computable(other)) or room == room_of(one, other))
    )
    if not fits:
        raise Refused(
            "invalid_surface", "direct_room_collision", what="The room belongs to another pair.", pointer="/direct_id"
        )


def open_room(tx: Tx, room: str, one: Peer, other: Peer) -> bool:
    """Store the room of a pair; return whether it is new."""
    first, second = sorted((one, other), key=lambda each: each.stable_id.encode())
    opened = tx.execute(
        _OPEN,
        workspace=one.workspace,
        channel=one.channel,
        direct_id=room,
        peer_a=first.peer_id,
        peer_b=second.peer_id,
        stable_a=first.stable_id,
        stable_b=second.stable_id,
    )
    return opened == 1


def _known_room(reading: Reading, one: Peer, other: Peer) -> str | None:
    first, second = sorted((one.stable_id, other.stable_id), key=str.encode)
    found: str | None = reading.value(
        _OF_PAIR, workspace=one.workspace, channel=one.channel, stable_a=first, stable_b=second
    )
    return found


def _is_computable(peer: Peer) -> bool:
    return peer.kind != "foreign" or is_handle(peer.stable_id)
