"""Who gets a message: decided before it is stored, from who was there before it came."""

from dataclasses import dataclass

from agentstead.network.machines import DeliveryReason, SkipReason
from agentstead.network.peers import Peer, Place, peer_named, present_ids
from agentstead.network.rooms import check_room
from agentstead.network.wire import Envelope, Refused
from agentstead.state import Reading

_CHANNEL_STATE = "SELECT state FROM net_channel WHERE workspace = :workspace AND channel = :channel"
_PARTICIPANTS = """
SELECT peer_id
FROM net_thread_peer
WHERE workspace = :workspace
    AND channel = :channel
    AND thread_id = :thread_id
    AND peer_id <> :sender
"""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A peer that gets the message, and why; `held` until an absent one joins."""

    peer_id: str
    reason: DeliveryReason


@dataclass(frozen=True, slots=True)
class Skipped:
    """A peer that was named and does not get the message."""

    peer_id: str
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Routing:
    """What a message reaches: the sender's row, recipients by Peer ID, and who was named in vain."""

    sender: Peer
    target: Peer | None
    recipients: tuple[Recipient, ...]
    skipped: tuple[Skipped, ...]


def route(reading: Reading, envelope: Envelope) -> Routing:
    """Return who gets a message.

    Raises `Refused`: `not_found` for an unknown channel, sender or target, `not_target` for a message to oneself,
    `invalid_surface` for a room of another pair.
    """
    place = Place(envelope.workspace_id, envelope.channel)
    if reading.value(_CHANNEL_STATE, workspace=place.workspace, channel=place.channel) != "open":
        raise Refused("not_found", what="No open channel has that name.", pointer="/channel")
    sender = peer_named(reading, place, envelope.sender)
    if sender is None or not sender.is_present:
        raise Refused("not_found", what="The sender is no present peer of the channel.", pointer="/from")
    if envelope.to is not None:
        return _directed(reading, envelope, sender)
    if not envelope.in_container:
        everybody = sorted(present_ids(reading, place) - {sender.peer_id})
        return Routing(sender, None, tuple(Recipient(peer_id, "member") for peer_id in everybody), ())
    return _to_thread(reading, envelope, sender)


def _directed(reading: Reading, envelope: Envelope, sender: Peer) -> Routing:
    if envelope.to == sender.peer_id:
        raise Refused("not_target", what="A message cannot be addressed to its sender.", pointer="/to")
    target = peer_named(reading, sender.place, envelope.to or "")
    if target is None:
        raise Refused("not_found", what="The target is no peer of the channel.", pointer="/to")
    if envelope.surface == "direct":
        check_room(reading, envelope.container_id or "", sender, target)
    recipient = Recipient(target.peer_id, "addressed" if target.is_present else "held")
    others = (peer_id for peer_id in envelope.mentions if peer_id != target.peer_id)
    return Routing(sender, target, (recipient,), tuple(Skipped(peer_id, "addressed_elsewhere") for peer_id in others))


def _to_thread(reading: Reading, envelope: Envelope, sender: Peer) -> Routing:
    present = present_ids(reading, sender.place)
    participants = _participants(reading, envelope)
    reached: dict[str, DeliveryReason] = dict.fromkeys(sorted(participants & present), "participant")
    if not participants:
        reached = dict.fromkeys(sorted(present - {sender.peer_id}), "member")
    skipped = [Skipped(peer_id, "absent") for peer_id in sorted(participants - present)]
    for peer_id in envelope.mentions:
        reason = _why_not(reading, peer_id, sender, present)
        if reason is None:
            reached[peer_id] = "mentioned"
        elif peer_id not in participants:
            skipped.append(Skipped(peer_id, reason))
    recipients = tuple(Recipient(peer_id, reason) for peer_id, reason in reached.items())
    return Routing(sender, None, recipients, tuple(skipped))


def _participants(reading: Reading, envelope: Envelope) -> set[str]:
    rows = reading.all(
        _PARTICIPANTS,
        workspace=envelope.workspace_id,
        channel=envelope.channel,
        thread_id=envelope.container_id,
        sender=envelope.sender,
    )
    return {row["peer_id"] for row in rows}


def _why_not(reading: Reading, peer_id: str, sender: Peer, present: set[str]) -> SkipReason | None:
    """Return why a mentioned peer is not reached, or None."""
    if peer_id == sender.peer_id:
        return "self"
    if peer_id in present:
        return None
    return "unknown" if peer_named(reading, sender.place, peer_id) is None else "absent"
