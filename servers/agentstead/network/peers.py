"""Participants of channels, and which of them a caller may act as: those that its own principal joined, no other."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.identity import Principal
from agentstead.network.machines import PRESENT, PeerKind, Presence
from agentstead.state import Conflict, Denied, NotFound, Reading

PEER_COLUMNS = """
workspace, channel, peer_id, stable_id, kind, session_id, owner_kind, owner_id, principal, card, presence, joined_at
"""
_NAMED = f"""
SELECT {PEER_COLUMNS}
FROM net_peer
WHERE workspace = :workspace
    AND channel = :channel
    AND peer_id = :peer_id
"""
_OF_STABLE_ID = f"""
SELECT {PEER_COLUMNS}
FROM net_peer
WHERE workspace = :workspace
    AND channel = :channel
    AND stable_id = :stable_id
ORDER BY left_at IS NULL DESC, joined_at DESC
LIMIT 1
"""
_PRESENT = f"""
SELECT {PEER_COLUMNS}
FROM net_peer
WHERE workspace = :workspace
    AND channel = :channel
    AND presence IN ('joined', 'fresh')
ORDER BY peer_id
"""
_PRESENT_IDS = """
SELECT peer_id
FROM net_peer
WHERE workspace = :workspace
    AND channel = :channel
    AND presence IN ('joined', 'fresh')
"""
_OF_PRINCIPAL = f"""
SELECT {PEER_COLUMNS}
FROM net_peer
WHERE left_at IS NULL
    AND principal = :principal
ORDER BY workspace, channel, peer_id
"""
_OF_SESSION = f"""
SELECT {PEER_COLUMNS}
FROM net_peer
WHERE left_at IS NULL
    AND session_id = :session
ORDER BY workspace, channel, peer_id
"""
_KNOWN_ANYWHERE = "SELECT 1 FROM net_peer WHERE peer_id = :peer_id LIMIT 1"
_CANDIDATES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Place:
    """A channel of a workspace."""

    workspace: str
    channel: str


@dataclass(frozen=True, slots=True)
class Peer:
    """One participant of one channel; its card is a claim that gives no right."""

    workspace: str
    channel: str
    peer_id: str
    stable_id: str
    kind: PeerKind
    session_id: str
    owner_kind: str
    owner_id: str
    principal: str
    card: Mapping[str, Any]
    presence: Presence
    joined_at: int

    @property
    def place(self) -> Place:
        """Return the channel that the peer is in."""
        return Place(self.workspace, self.channel)

    @property
    def is_present(self) -> bool:
        """Tell whether messages reach it now."""
        return self.presence in PRESENT

    @property
    def display_name(self) -> str:
        """Return the name that its card claims, or ''."""
        return str(self.card.get("display_name") or "")

    @property
    def capabilities(self) -> list[str]:
        """Return the capabilities that its card claims."""
        return list(self.card["capabilities"])


def peer_named(reading: Reading, place: Place, peer_id: str) -> Peer | None:
    """Return a peer of a channel, also one that left."""
    row = reading.one(_NAMED, workspace=place.workspace, channel=place.channel, peer_id=peer_id)
    return None if row is None else peer_of(row)


def peer_of_identity(reading: Reading, place: Place, stable_id: str) -> Peer | None:
    """Return the peer that a stable id has, or last had, in a channel."""
    row = reading.one(_OF_STABLE_ID, workspace=place.workspace, channel=place.channel, stable_id=stable_id)
    return None if row is None else peer_of(row)


def present_peers(reading: Reading, place: Place) -> list[Peer]:
    """Return who is in a channel now, by Peer ID."""
    return [peer_of(row) for row in reading.all(_PRESENT, workspace=place.workspace, channel=place.channel)]


def present_ids(reading: Reading, place: Place) -> set[str]:
    """Return the Peer IDs of who is in a channel now."""
    return {row["peer_id"] for row in reading.all(_PRESENT_IDS, workspace=place.workspace, channel=place.channel)}


def own_peers(reading: Reading, principal: Principal) -> list[Peer]:
    """Return the peers that a caller may act as: those of its proven session, else those that it joined as."""
    session = session_of(principal)
    if session:
        return [peer_of(row) for row in reading.all(_OF_SESSION, session=session)]
    return [peer_of(row) for row in reading.all(_OF_PRINCIPAL, principal=principal.text)]


def usable_peers(
    reading: Reading, principal: Principal, *, peer: str | None = None, channel: str | None = None
) -> list[Peer]:
    """Return the caller's own peers that fit what a call names.

    Raises `Denied` (`network.not_participating`, `network.peer_not_yours`) or `NotFound` (`network.peer_unknown`)
    where none does.
    """
    own = own_peers(reading, principal)
    fitting = [each for each in own if peer in (None, each.peer_id) and channel in (None, each.channel)]
    if not fitting:
        raise _no_peer(reading, own, peer=peer, channel=channel)
    return fitting


def choose(fitting: Sequence[Peer]) -> list[Peer]:
    """Return the peers if they are one identity in one workspace; raises `Conflict` with `network.peer_ambiguous`."""
    if len({(each.workspace, each.stable_id) for each in fitting}) > 1:
        raise _ambiguous(fitting)
    return list(fitting)


def session_of(principal: Principal) -> str:
    """Return the session that a verified session or agent principal belongs to, else ''."""
    return principal.name.rpartition("@")[2] if principal.kind in ("session", "agent") else ""


def peer_of(row: sqlite3.Row) -> Peer:
    """Return the peer in a row of `net_peer`."""
    return Peer(**{**dict(row), "card": json.loads(row["card"])})


def _ambiguous(fitting: Sequence[Peer]) -> Conflict:
    names = [f"{each.peer_id} in {each.channel}" for each in fitting[:_CANDIDATES_SHOWN]]
    return Conflict(
        "network.peer_ambiguous",
        f"You are {len(fitting)} peers: {', '.join(names)}.",
        remedy="Pass peer=<one of them>, and channel where it is in several workspaces.",
        details={"candidates": [{"peer": each.peer_id, "channel": each.channel} for each in fitting]},
    )


def _no_peer(reading: Reading, own: Sequence[Peer], *, peer: str | None, channel: str | None) -> Denied | NotFound:
    if peer is None or any(each.peer_id == peer for each in own):
        where = f"in channel {channel}" if channel else "in any channel"
        return Denied(
            "network.not_participating", f"You are no peer {where}.", remedy="Call peer_join(channel=...) first."
        )
    if reading.one(_KNOWN_ANYWHERE, peer_id=peer) is None:
        return unknown_peer(peer)
    return Denied(
        "network.peer_not_yours",
        f"Peer {peer} was joined by another principal.",
        remedy="Leave `peer` out to act as your own peer, or join with peer_join.",
    )


def unknown_peer(peer: str) -> NotFound:
    """Return the error for a Peer ID that nobody has here."""
    return NotFound(
        "network.peer_unknown", f"No peer {peer[:80]!r} is known here.", remedy="peer_find lists who is there."
    )
