"""Coming into a channel and leaving it: under which Peer ID, with which card, and what was held meanwhile."""

import getpass
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentstead.identity import Principal
from agentstead.network.machines import PeerKind
from agentstead.network.participation import Participation, resolve
from agentstead.network.peers import Place, peer_of_identity, session_of
from agentstead.network.wire.grammar import is_reserved
from agentstead.state import Conflict, Denied, Exhausted, Invalid, NotFound, Reading, References, RefFacts, Tx

_CHANNEL = "SELECT state FROM net_channel WHERE workspace = :workspace AND channel = :channel"
_CHANNELS = "SELECT COUNT(*) FROM net_channel WHERE workspace = :workspace"
_MAKE_CHANNEL = """
INSERT INTO net_channel (
    workspace, channel, purpose, identity, trust_policy, state, strategy, created_by, created_at, version
)
VALUES (:workspace, :channel, '', 'plain', 'flag', 'open', 'named', :principal, :now, 1)
"""
_JOINED = """
SELECT COUNT(*)
FROM net_peer
WHERE workspace = :workspace
    AND channel = :channel
    AND left_at IS NULL
"""
_JOIN = """
INSERT INTO net_peer (
    workspace, channel, peer_id, stable_id, kind, session_id, owner_kind, owner_id, principal, peering, card, key_id,
    presence, last_seen, joined_at, left_at
)
VALUES (
    :workspace, :channel, :peer_id, :stable_id, :kind, :session_id, :owner_kind, :session_id, :principal, '', :card,
    '', 'joined', :now, :now, NULL
)
ON CONFLICT (workspace, channel, peer_id) DO UPDATE
SET principal = excluded.principal,
    card = excluded.card,
    presence = 'joined',
    last_seen = excluded.last_seen,
    joined_at = CASE WHEN net_peer.left_at IS NULL THEN net_peer.joined_at ELSE excluded.joined_at END,
    left_at = NULL
"""
_LEAVE = """
UPDATE net_peer
SET presence = 'left',
    last_seen = :now,
    left_at = :now
WHERE workspace = :workspace
    AND channel = :channel
    AND peer_id = :peer_id
    AND left_at IS NULL
"""
_DROP_LAPSED = """
UPDATE net_delivery
SET decision = 'ignore'
WHERE peer_id = :peer_id
    AND decision = 'deliver'
    AND reason = 'held'
    AND read_at IS NULL
    AND EXISTS (
        SELECT 1
        FROM net_message AS m
        WHERE m.seq = net_delivery.seq
            AND m.workspace = :workspace
            AND m.channel = :channel
            AND (m.expires_at <= :now_s OR m.accepted_at < :held_since)
    )
"""

PEERS_A_CHANNEL: Final = 256
CHANNELS_A_WORKSPACE: Final = 1000
HELD_DAYS: Final = 7
_DAY_US: Final = 86_400_000_000
_NAME_CHARS: Final = 40


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Who wants to be in a channel: identity, Peer ID, and the session behind it ('' for a person)."""

    place: Place
    peer_id: str
    stable_id: str
    kind: PeerKind
    session_id: str
    principal: str
    card_before: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Joined:
    """A peer that is in the channel now; `news` where others are to be told."""

    participation: Participation | None
    news: bool


def newcomer(
    reading: Reading,
    refs: References,
    principal: Principal,
    place: Place,
    *,
    session_id: str,
    is_leaving: bool = False,
) -> Newcomer:
    """Return the peer that a caller is or would be in a channel; a closed session can leave, but not join.

    Raises `NotFound` (`session.not_found`), `Denied` (`network.peer_not_yours` for another's session,
    `network.participation_denied` for a session that cannot join here, or a host that names none).
    """
    proven = session_of(principal)
    if proven and session_id not in ("", proven):
        raise _not_yours(session_id)
    session_id = proven or session_id
    if session_id:
        facts = _session(reading, refs, session_id, principal, is_proven=bool(proven))
        if not is_leaving:
            _refuse_unfit(session_id, facts, place)
        name = facts.facts.get("agent") or principal.name.partition("@")[0]
        return _known_or(reading, place, principal, f"{_cleaned(name)}.{session_id.lower()}", session_id, "session")
    if principal.kind == "user":
        return _known_or(reading, place, principal, f"human.{_person()}", "", "human")
    raise Denied(
        "network.participation_denied",
        "A host takes part as one of its sessions, and this call names none.",
        remedy="Open one with session_open, then call peer_join(session=<its id>).",
    )


def join(tx: Tx, who: Newcomer, card: Mapping[str, Any], *, bounds: Mapping[str, float] | None) -> Joined:
    """Bring a peer into its channel, making the channel where it is missing; joining twice changes nothing.

    Raises `Conflict` (`network.channel_archived`, `network.participation_fixed`) or `Exhausted` (`network.busy`).
    """
    _ensure_channel(tx, who.place)
    known = peer_of_identity(tx, who.place, who.stable_id)
    is_new = known is None or not known.is_present
    if is_new:
        _refuse_full(tx, who.place)
    participation = None
    if who.session_id == "" and bounds is not None:
        raise Invalid(
            "network.bounds_invalid", "A person has no bounds: nothing wakes one.", remedy="Leave participation out."
        )
    if who.session_id:
        participation = resolve(tx, who.place, session_id=who.session_id, asked=bounds)
    if known is not None and not is_new and (known.card, known.principal) == (card, who.principal):
        return Joined(participation, news=False)
    _store(tx, who, card)
    if is_new:
        _drop_lapsed(tx, who)
        tx.journal("network.peer.joined", subject=who.peer_id, workspace=who.place.workspace, body=_body(who))
    else:
        tx.journal("network.peer.updated", subject=who.peer_id, workspace=who.place.workspace, body=_body(who))
    return Joined(participation, news=True)


def leave(tx: Tx, who: Newcomer) -> bool:
    """Take a peer out of its channel; return whether it was in."""
    place = who.place
    left = tx.execute(_LEAVE, workspace=place.workspace, channel=place.channel, peer_id=who.peer_id, now=tx.now_us)
    if left:
        tx.journal("network.peer.left", subject=who.peer_id, workspace=place.workspace, body=_body(who))
    return bool(left)


def _session(reading: Reading, refs: References, session_id: str, principal: Principal, *, is_proven: bool) -> RefFacts:
    facts = refs.look(reading, session_id) if session_id.startswith("ses_") else RefFacts(exists=False)
    if not facts.exists:
        raise NotFound(
            "session.not_found", f"No session {session_id[:40]!r} is known.", remedy="session_open makes one."
        )
    if not is_proven and facts.facts.get("client") not in ("", None, principal.text):
        raise _not_yours(session_id)
    return facts


def _refuse_unfit(session_id: str, facts: RefFacts, place: Place) -> None:
    if facts.state != "open" or facts.workspace not in ("", place.workspace):
        raise Denied(
            "network.participation_denied",
            f"Session {session_id} is {facts.state} and belongs to workspace {facts.workspace or 'of the home'}.",
            remedy="Only an open session of the channel's own workspace joins it.",
        )


def _not_yours(session_id: str) -> Denied:
    return Denied(
        "network.peer_not_yours",
        f"Session {session_id[:40]} was opened by another principal.",
        remedy="Open a session of your own with session_open.",
    )


def _known_or(
    reading: Reading, place: Place, principal: Principal, peer_id: str, session_id: str, kind: PeerKind
) -> Newcomer:
    """Return the peer that this identity had before, so that what was held for it reaches it, else a new one."""
    stable_id = session_id or peer_id
    known = peer_of_identity(reading, place, stable_id)
    return Newcomer(
        place,
        known.peer_id if known else peer_id,
        stable_id,
        kind,
        session_id,
        principal.text,
        known.card if known else {},
    )


def _ensure_channel(tx: Tx, place: Place) -> None:
    state = tx.value(_CHANNEL, workspace=place.workspace, channel=place.channel)
    if state == "archived":
        raise Conflict(
            "network.channel_archived", f"Channel {place.channel!r} is archived.", remedy="Join another channel."
        )
    if state is None:
        if tx.value(_CHANNELS, workspace=place.workspace) >= CHANNELS_A_WORKSPACE:
            raise _full(f"The workspace has {CHANNELS_A_WORKSPACE} channels.")
        tx.execute(
            _MAKE_CHANNEL, workspace=place.workspace, channel=place.channel, principal=tx.principal, now=tx.now_us
        )
        tx.journal("network.channel.created", subject=place.channel, workspace=place.workspace, body={})


def _refuse_full(tx: Tx, place: Place) -> None:
    if tx.value(_JOINED, workspace=place.workspace, channel=place.channel) >= PEERS_A_CHANNEL:
        raise _full(f"Channel {place.channel!r} has {PEERS_A_CHANNEL} peers.")


def _full(what: str) -> Exhausted:
    return Exhausted("network.busy", what, remedy="Retry when a peer has left, or use another channel.", retryable=True)


def _store(tx: Tx, who: Newcomer, card: Mapping[str, Any]) -> None:
    tx.execute(
        _JOIN,
        workspace=who.place.workspace,
        channel=who.place.channel,
        peer_id=who.peer_id,
        stable_id=who.stable_id,
        kind=who.kind,
        session_id=who.session_id,
        owner_kind="session" if who.session_id else "",
        principal=who.principal,
        card=json.dumps(card, ensure_ascii=False),
        now=tx.now_us,
    )


def _drop_lapsed(tx: Tx, who: Newcomer) -> None:
    tx.execute(
        _DROP_LAPSED,
        workspace=who.place.workspace,
        channel=who.place.channel,
        peer_id=who.peer_id,
        now_s=tx.now_us // 1_000_000,
        held_since=tx.now_us - HELD_DAYS * _DAY_US,
    )


def _body(who: Newcomer) -> dict[str, Any]:
    return {"channel": who.place.channel, "kind": who.kind, "session_id": who.session_id}


def _cleaned(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")[:_NAME_CHARS].rstrip("-_") or "agent"


def _person() -> str:
    try:
        name = _cleaned(getpass.getuser())
    except (KeyError, OSError, ImportError):
        name = "owner"
    # A person must not look like a runtime, whatever the account is called.
    return f"{name}_" if is_reserved(f"human.{name}") else name
