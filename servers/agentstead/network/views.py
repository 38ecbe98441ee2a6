"""One document about anything that has a reference on the network, as far as its reader may see it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentstead.kit import Call
from agentstead.network.access import Reader, check_channel, check_container, reader_of
from agentstead.network.asking import Asker
from agentstead.network.conversations import body_shown, messages
from agentstead.network.inbox import unread
from agentstead.network.peers import present_peers
from agentstead.network.references import Kind, Ref, resolve
from agentstead.network.results import NetworkDocument, PeerShown, WorkShown
from agentstead.network.rooms import room_peers
from agentstead.network.wire import MAX_BYTES, PROTOCOL, REPLAY_WINDOW_S
from agentstead.network.works import find_work, open_work, work_in, work_steps
from agentstead.state import Invalid, Reading

View = Literal["brief", "messages", "why", "steps", "raw"]

_MESSAGE = """
SELECT seq, message_id, from_peer, to_peer, kind, channel, surface, container_id, work_id, reply_to, trace_id,
    causation_id, ts, expires_at, canon_sha256, trust, origin, root_seq, depth, accepted_at, raw, raw_blob
FROM net_message
WHERE seq = :seq
"""
_DELIVERIES = """
SELECT peer_id, decision, reason, read_at, acked_at
FROM net_delivery
WHERE seq = :seq
ORDER BY peer_id
"""
_THREAD = """
SELECT title, root_seq, last_seq, messages, view
FROM net_thread
WHERE workspace = :workspace
    AND channel = :channel
    AND thread_id = :thread_id
"""
_THREAD_PEERS = """
SELECT peer_id
FROM net_thread_peer
WHERE workspace = :workspace
    AND channel = :channel
    AND thread_id = :thread_id
ORDER BY peer_id
"""
_THREADS = """
SELECT thread_id, title, root_seq, last_seq AS seq, messages, view
FROM net_thread
WHERE workspace = :workspace
    AND channel = :channel
    AND last_seq < :before
    AND last_seq > :after
ORDER BY last_seq DESC
LIMIT :most
"""
_CHANNEL = """
SELECT purpose, identity, trust_policy, state, strategy, created_by, created_at, version
FROM net_channel
WHERE workspace = :workspace
    AND channel = :channel
"""
_SNAPSHOT = (
    "SELECT snapshot, sha256, source FROM net_participation WHERE owner_kind = 'session' AND owner_id = :owner_id"
)
_RECENT_REJECTS = "SELECT COUNT(*) FROM net_reject WHERE at > :since"

WORK_SHOWN: Final = 50
_DAY_US: Final = 86_400_000_000
_NEVER: Final = 2**62
_VIEWS: Final[Mapping[Kind, tuple[View, ...]]] = {
    "status": ("brief",),
    "channel": ("brief", "messages"),
    "thread": ("brief", "messages"),
    "room": ("brief", "messages"),
    "work": ("brief", "messages", "steps"),
    "message": ("brief", "why", "raw"),
    "peer": ("brief",),
    "owner": ("brief",),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader wants to see."""

    ref: str
    view: View
    limit: int
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A document, and the blob that holds the bytes which it still lacks."""

    document: NetworkDocument
    raw_blob: str | None = None


def look(reading: Reading, asker: Asker, asked: Asked) -> Found:
    """Return what a caller may see of a reference.

    Raises `NotFound` (`ref.not_found`), `Denied` by the one rule of `access`, or `Invalid` for a view that the
    reference does not have.
    """
    reader = reader_of(reading, asker.principal)
    ref = resolve(reading, reader, asker.workspace(reading), asked.ref)
    if asked.view not in _VIEWS[ref.kind]:
        raise Invalid(
            "tool.invalid_arguments",
            f"view: a {ref.kind} has no view {asked.view!r}.",
            remedy=f"Use one of {', '.join(_VIEWS[ref.kind])}.",
        )
    facts, items, blob = _SHOWN[ref.kind](reading, reader, ref, asked)
    oldest = min((item["seq"] for item in items if "seq" in item), default=0)
    more = len(items) == asked.limit and asked.view in ("messages", "steps", "brief") and oldest > 0
    document = NetworkDocument(
        kind=ref.kind,
        facts=facts,
        items=items,
        next_before=oldest if more else None,
    )
    return Found(document, blob)


async def complete(call: Call, found: Found) -> NetworkDocument:
    """Return the document with bytes that lie in the blob store."""
    if found.raw_blob is None:
        return found.document
    raw = await call.home.blobs.get("blob", found.raw_blob)
    facts = found.document.facts | {"raw": raw.decode(), "bytes": len(raw)}
    return found.document.model_copy(update={"facts": facts})


Shown = tuple[dict[str, Any], list[dict[str, Any]], str | None]


def _status(reading: Reading, reader: Reader, ref: Ref, _asked: Asked) -> Shown:
    works = [
        work for each in reader.own for work in open_work(reading, each.workspace, each.channel, each.peer_id, most=20)
    ]
    facts = {
        "protocol": PROTOCOL,
        "max_bytes": MAX_BYTES,
        "replay_window_s": REPLAY_WINDOW_S,
        "workspace": ref.workspace,
        "you": [PeerShown.of(each).model_dump() | {"unread": unread(reading, [each])} for each in reader.own],
        "open_work": [WorkShown.of(work).model_dump() for work in works],
    }
    if reader.is_person:
        facts["rejected_last_day"] = reading.value(_RECENT_REJECTS, since=reading.now_us - _DAY_US)
    return facts, [], None


def _channel(reading: Reading, reader: Reader, ref: Ref, asked: Asked) -> Shown:
    place = ref.place
    check_channel(reader, place)
    row = reading.one(_CHANNEL, workspace=place.workspace, channel=place.channel)
    peers = [PeerShown.of(each).model_dump() for each in present_peers(reading, place)]
    facts = dict(row or {}) | {"channel": place.channel, "workspace": place.workspace, "peers": peers}
    if asked.view == "messages":
        return facts, messages(reading, ref, **_window(asked)), None
    threads = reading.all(_THREADS, workspace=place.workspace, channel=place.channel, **_window(asked))
    return facts, [dict(each) for each in reversed(threads)], None


def _thread(reading: Reading, reader: Reader, ref: Ref, asked: Asked) -> Shown:
    check_channel(reader, ref.place)
    at = {"workspace": ref.workspace, "channel": ref.channel, "thread_id": ref.container_id}
    row = reading.one(_THREAD, **at)
    participants = [each["peer_id"] for each in reading.all(_THREAD_PEERS, **at)]
    facts = dict(row or {}) | {"channel": ref.channel, "participants": participants, "work": _works(reading, ref)}
    return facts, messages(reading, ref, **_window(asked)) if asked.view == "messages" else [], None


def _room(reading: Reading, reader: Reader, ref: Ref, asked: Asked) -> Shown:
    check_container(reading, reader, ref.place, surface="direct", container_id=ref.container_id)
    peers = sorted(room_peers(reading, ref.place, ref.container_id))
    facts = {
        "channel": ref.channel,
        "peers": peers,
        "work": _works(reading, ref),
        "privacy": "restricted, not encrypted",
    }
    return facts, messages(reading, ref, **_window(asked)) if asked.view == "messages" else [], None


def _work(reading: Reading, reader: Reader, ref: Ref, asked: Asked) -> Shown:
    check_container(reading, reader, ref.place, surface=ref.surface, container_id=ref.container_id)
    work = find_work(reading, ref.workspace, ref.work_id)
    assert work is not None
    facts = WorkShown.of(work).model_dump() | {"opened_seq": work.opened_seq, "closed_seq": work.closed_seq}
    match asked.view:
        case "steps":
            return facts, work_steps(reading, ref.workspace, ref.work_id, **_window(asked)), None
        case "messages":
            return facts, messages(reading, ref, **_window(asked)), None
        case _:
            return facts, [], None


def _message(reading: Reading, reader: Reader, ref: Ref, asked: Asked) -> Shown:
    check_container(reading, reader, ref.place, surface=ref.surface, container_id=ref.container_id)
    row = reading.one(_MESSAGE, seq=ref.seq)
    assert row is not None
    facts = {name: row[name] for name in row.keys() if name not in ("raw", "raw_blob")}  # noqa: SIM118 - a Row
    if asked.view == "why":
        return facts, [dict(each) for each in reading.all(_DELIVERIES, seq=ref.seq)], None
    if asked.view == "raw":
        held = {} if row["raw"] is None else {"raw": bytes(row["raw"]).decode(), "bytes": len(row["raw"])}
        return facts | held, [], row["raw_blob"]
    return facts | body_shown(row), [], None


def _peer(reading: Reading, reader: Reader, ref: Ref, _asked: Asked) -> Shown:
    check_channel(reader, ref.place)
    shown, *everywhere = ref.peers
    others = [
        each for each in everywhere if each.place != ref.place and (reader.is_person or reader.peers_in(each.place))
    ]
    facts = PeerShown.of(shown).model_dump() | {"card": dict(shown.card)}
    return facts, [PeerShown.of(each).model_dump() for each in others], None


def _owner(reading: Reading, _reader: Reader, ref: Ref, _asked: Asked) -> Shown:
    row = reading.one(_SNAPSHOT, owner_id=ref.owner_id)
    assert row is not None
    return {"source": row["source"], "sha256": row["sha256"], "snapshot": json.loads(row["snapshot"])}, [], None


def _works(reading: Reading, ref: Ref) -> list[dict[str, Any]]:
    works = work_in(reading, ref.workspace, ref.channel, ref.container_id, most=WORK_SHOWN)
    return [WorkShown.of(work).model_dump() for work in works]


def _window(asked: Asked) -> dict[str, int]:
    return {"before": asked.before or _NEVER, "after": asked.after or 0, "most": asked.limit}


_SHOWN: Final[Mapping[Kind, Callable[[Reading, Reader, Ref, Asked], Shown]]] = {
    "status": _status,
    "channel": _channel,
    "thread": _thread,
    "room": _room,
    "work": _work,
    "message": _message,
    "peer": _peer,
    "owner": _owner,
}
