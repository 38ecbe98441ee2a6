"""What a reference names: its form decides the kind, else the first of work, message, peer and channel that has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agentstead.network.access import Reader
from agentstead.network.peers import PEER_COLUMNS, Peer, Place, peer_of
from agentstead.network.works import find_work
from agentstead.state import Denied, NotFound, Reading

Kind = Literal["status", "channel", "thread", "room", "work", "message", "peer", "owner"]

_WORKSPACES = "SELECT DISTINCT workspace FROM net_channel ORDER BY workspace"
_THREAD = "SELECT channel FROM net_thread WHERE workspace = :workspace AND thread_id = :ref ORDER BY channel"
_ROOM = "SELECT channel FROM net_room WHERE workspace = :workspace AND direct_id = :ref ORDER BY channel"
_MESSAGE = """
SELECT seq, channel, surface, container_id
FROM net_message
WHERE workspace = :workspace
    AND message_id = :ref
ORDER BY seq
"""
_CHANNEL = "SELECT channel FROM net_channel WHERE workspace = :workspace AND channel = :ref"
_PEER = f"""
SELECT {PEER_COLUMNS}
FROM net_peer
WHERE workspace = :workspace
    AND peer_id = :ref
ORDER BY channel
"""
_OWNER = "SELECT 1 FROM net_participation WHERE owner_kind = 'session' AND owner_id = :ref"
_CHARS_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference that names something; what its kind does not have is empty."""

    kind: Kind
    workspace: str
    channel: str = ""
    surface: str | None = None
    container_id: str = ""
    work_id: str = ""
    seq: int = 0
    owner_id: str = ""
    peers: tuple[Peer, ...] = ()

    @property
    def place(self) -> Place:
        """Return the channel that it belongs to."""
        return Place(self.workspace, self.channel)


Look = Callable[[Reading, str, str], list[Ref]]


def resolve(reading: Reading, reader: Reader, here: str | None, text: str) -> Ref:
    """Return what `text` names in the reader's workspaces, the one it calls from first.

    A thread or peer that several channels have is taken from one that the reader is in. Raises `Denied` for a reader
    that takes part nowhere, `NotFound` with `ref.not_found` for a name that nothing has.
    """
    if text == "status":
        return Ref("status", here or "")
    if text.startswith("ses_"):
        return _owner(reading, reader, text)
    for workspace in _workspaces(reading, reader, here):
        found = [ref for look in _looks(text) for ref in look(reading, workspace, text)]
        own = [ref for ref in found if reader.peers_in(ref.place)]
        if found:
            return (own or found)[0]
    raise NotFound(
        "ref.not_found",
        f"Nothing on the network is called {text[:_CHARS_SHOWN]!r}.",
        remedy="Use an id that a network tool returned, a channel's name, or status.",
    )


def _workspaces(reading: Reading, reader: Reader, here: str | None) -> Sequence[str]:
    if reader.is_person:
        known = [row["workspace"] for row in reading.all(_WORKSPACES)]
    else:
        known = sorted({each.workspace for each in reader.own})
    if not known and not reader.is_person:
        raise Denied(
            "network.not_participating", "You are a peer of no channel.", remedy="Call peer_join(channel=...) first."
        )
    return sorted(known, key=lambda workspace: workspace != here)


def _owner(reading: Reading, reader: Reader, text: str) -> Ref:
    mine = reader.is_person or any(each.session_id == text for each in reader.own)
    if not mine or reading.one(_OWNER, ref=text) is None:
        raise NotFound(
            "ref.not_found", f"Session {text[:_CHARS_SHOWN]!r} has no participation of yours.", remedy="Use your own."
        )
    return Ref("owner", "", owner_id=text)


def _looks(text: str) -> tuple[Look, ...]:
    if text.startswith("thread_"):
        return (_threads,)
    if text.startswith("direct_"):
        return (_rooms,)
    return (_works, _messages, _peers, _channels)


def _threads(reading: Reading, workspace: str, text: str) -> list[Ref]:
    rows = reading.all(_THREAD, workspace=workspace, ref=text)
    return [Ref("thread", workspace, row["channel"], surface="thread", container_id=text) for row in rows]


def _rooms(reading: Reading, workspace: str, text: str) -> list[Ref]:
    rows = reading.all(_ROOM, workspace=workspace, ref=text)
    return [Ref("room", workspace, row["channel"], surface="direct", container_id=text) for row in rows]


def _works(reading: Reading, workspace: str, text: str) -> list[Ref]:
    work = find_work(reading, workspace, text)
    if work is None:
        return []
    return [Ref("work", workspace, work.channel, surface=work.surface, container_id=work.container_id, work_id=text)]


def _messages(reading: Reading, workspace: str, text: str) -> list[Ref]:
    rows = reading.all(_MESSAGE, workspace=workspace, ref=text)
    return [
        Ref("message", workspace, row["channel"], row["surface"], row["container_id"] or "", seq=row["seq"])
        for row in rows
    ]


def _peers(reading: Reading, workspace: str, text: str) -> list[Ref]:
    peers = tuple(peer_of(row) for row in reading.all(_PEER, workspace=workspace, ref=text))
    return [Ref("peer", workspace, each.channel, peers=(each, *peers)) for each in peers]


def _channels(reading: Reading, workspace: str, text: str) -> list[Ref]:
    rows = reading.all(_CHANNEL, workspace=workspace, ref=text)
    return [Ref("channel", workspace, row["channel"]) for row in rows]
