"""Finding peers by what their cards claim, and channels by name."""

from dataclasses import asdict, dataclass
from typing import Any

from agentstead.network.machines import Presence
from agentstead.network.peers import PEER_COLUMNS, Peer, peer_of
from agentstead.network.results import ChannelShown
from agentstead.state import Reading

_PEERS = f"""
SELECT {PEER_COLUMNS}
FROM net_peer
WHERE workspace = :workspace
    AND (:channel = '' OR channel = :channel)
    AND (:presence = '' OR presence = :presence)
    AND (
        :query = ''
        OR peer_id LIKE :like ESCAPE '\\'
        OR json_extract(card, '$.display_name') LIKE :like ESCAPE '\\'
    )
    AND (
        :capability = ''
        OR EXISTS (SELECT 1 FROM json_each(card, '$.capabilities') AS c WHERE c.value = :capability)
    )
    AND (channel, peer_id) > (:after_channel, :after_peer)
ORDER BY channel, peer_id
LIMIT :most
"""
_CHANNELS = """
SELECT c.channel, c.purpose, c.identity, c.state, COUNT(p.peer_id) AS peers
FROM net_channel AS c
LEFT JOIN net_peer AS p ON p.workspace = c.workspace AND p.channel = c.channel AND p.left_at IS NULL
WHERE c.workspace = :workspace
    AND (:channel = '' OR c.channel = :channel)
GROUP BY c.channel
ORDER BY c.channel
LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; None leaves a filter out."""

    workspace: str
    channel: str | None
    query: str | None
    capability: str | None
    presence: Presence | None

    def filters(self) -> dict[str, Any]:
        """Return the filters that a cursor is bound to."""
        return asdict(self)


def find(
    reading: Reading, wanted: Wanted, *, after: tuple[str, str] | None, most: int
) -> tuple[list[Peer], list[ChannelShown]]:
    """Return up to `most` peers behind (channel, peer id), and up to 100 channels on the first page."""
    query = wanted.query or ""
    escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = reading.all(
        _PEERS,
        workspace=wanted.workspace,
        channel=wanted.channel or "",
        presence=wanted.presence or "",
        query=query,
        like=f"%{escaped}%",
        capability=wanted.capability or "",
        after_channel=after[0] if after else "",
        after_peer=after[1] if after else "",
        most=most,
    )
    return [peer_of(row) for row in rows], [] if after else _channels(reading, wanted)


def _channels(reading: Reading, wanted: Wanted) -> list[ChannelShown]:
    rows = reading.all(_CHANNELS, workspace=wanted.workspace, channel=wanted.channel or "", most=100)
    return [ChannelShown(**dict(row)) for row in rows]
