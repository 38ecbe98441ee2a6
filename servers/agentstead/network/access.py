"""The one rule of who may read what: peers of a channel read its threads, two peers a room, a person of the home all.

Every reading path passes here: tools, resources, and what is shown beside a message.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentstead.identity import Principal
from agentstead.network.peers import Peer, Place, own_peers
from agentstead.network.rooms import room_peers
from agentstead.state import Denied, Reading


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: its own peers, and whether it is the person of this home, whose reading is the audit path."""

    own: Sequence[Peer]
    is_person: bool

    def peers_in(self, place: Place) -> frozenset[str]:
        """Return the Peer IDs that the reader has in a channel."""
        return frozenset(each.peer_id for each in self.own if each.place == place)


def reader_of(reading: Reading, principal: Principal) -> Reader:
    """Return a caller as a reader."""
    return Reader(own_peers(reading, principal), principal.kind == "user")


def check_channel(reader: Reader, place: Place) -> None:
    """Raise `Denied` with `network.not_participating` for a channel that the reader is not in."""
    if not reader.is_person and not reader.peers_in(place):
        raise Denied(
            "network.not_participating",
            f"You are no peer of channel {place.channel!r}.",
            remedy="Call peer_join(channel=...) first.",
        )


def check_container(
    reading: Reading, reader: Reader, place: Place, *, surface: str | None, container_id: str | None
) -> None:
    """Raise `Denied` for a container that the reader may not read: `network.room_forbidden` for a room of others."""
    check_channel(reader, place)
    if surface != "direct" or reader.is_person:
        return
    if not reader.peers_in(place) & room_peers(reading, place, container_id or ""):
        raise Denied(
            "network.room_forbidden", "A room is read by its two peers alone.", remedy="Ask one of them to tell you."
        )
