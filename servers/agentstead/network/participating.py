"""Operations on participation: join or leave a channel, find peers and channels."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agentstead.kit import Call, operation
from agentstead.network import finding, inbox
from agentstead.network.acceptance import Arrival, accept
from agentstead.network.joining import Newcomer, join, leave, newcomer
from agentstead.network.machines import Mode, Presence
from agentstead.network.parameters import OBJECT, Channel, Cursor, Limit, PeerId, SomeChannel, Workspace
from agentstead.network.participation import find_participation
from agentstead.network.peers import Place, peer_named, present_peers
from agentstead.network.results import PeerJoined, PeersFound, PeerShown, WorkShown
from agentstead.network.sending import Submission, greeting, submit
from agentstead.network.wire import Envelope, card
from agentstead.network.works import open_work
from agentstead.state import Conflict, Reading, Tx

SESSION_VARIABLE = "AGENTSTEAD_SESSION"
SHOWN = 50


class ParticipationAsked(BaseModel):
    """How a session takes part."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "live"
    bounds: dict[str, float] = Field(default_factory=dict)


@operation("peer_join", action="network.peer_join", risk="write", title="Join a channel", idempotent=True)
async def peer_join(
    call: Call,
    *,
    channel: Channel,
    workspace: Workspace = None,
    session: Annotated[str | None, Field(description="ses_... that a host joins as.", max_length=40)] = None,
    display_name: Annotated[str | None, Field(description="Shown.", max_length=80)] = None,
    capabilities: Annotated[list[PeerId] | None, Field(description="What you offer.", max_length=64)] = None,
    participation: Annotated[
        ParticipationAsked | None, OBJECT, Field(description="{bounds: {max_wakes: 4}}; fixed once.")
    ] = None,
    leave: Annotated[bool, Field(description="Leave instead.")] = False,
) -> PeerJoined:
    """Call before talking to other agents: makes you a peer of a channel. Returns peer_id, who is there, open work."""
    session_id = session or call.environ.get(SESSION_VARIABLE, "")
    found = await call.workspace(workspace, session_id=session_id or None)
    place = Place(found.id, channel)
    who = await call.read(
        newcomer, call.home.state.refs, call.principal, place, session_id=session_id, is_leaving=leave
    )
    if leave:
        return await call.write(_leave, who, found.note)
    bounds = _bounds(participation)
    shown = _card(who, display_name, capabilities)
    return await submit(call, Submission(greeting(call, who, shown)), _join, who, shown, bounds, found.note)


@operation("peer_find", action="network.peer_find", risk="read", title="Find peers and channels")
async def peer_find(
    call: Call,
    *,
    workspace: Workspace = None,
    channel: SomeChannel = None,
    query: Annotated[str | None, Field(description="Part of id or name.", max_length=128)] = None,
    capability: Annotated[str | None, Field(description="Exact.", max_length=128)] = None,
    presence: Annotated[Presence | None, Field(description="State.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> PeersFound:
    """Find peers and channels of a workspace. Cards are claims."""
    place = await call.workspace(workspace)
    wanted = finding.Wanted(place.id, channel, query, capability, presence)
    filters = {"peers": wanted.filters()}
    after = call.home.state.cursors.open(cursor, filters)["after"] if cursor else None
    peers, channels = await call.read(finding.find, wanted, after=after, most=limit + 1)
    page = peers[:limit]
    last = [page[-1].channel, page[-1].peer_id] if len(peers) > limit else None
    return PeersFound(
        peers=[PeerShown.of(each) for each in page],
        channels=channels,
        next_cursor=call.home.state.cursors.seal({"after": last}, filters) if last else None,
        note=place.note or None,
    )


def _bounds(asked: ParticipationAsked | None) -> Mapping[str, float] | None:
    if asked is None:
        return None
    if asked.mode == "local":
        raise Conflict(
            "network.strategy_channel_conflict",
            "Mode local takes part in no channel, and peer_join names one.",
            remedy="Leave participation out, or do not join.",
        )
    return asked.bounds


def _card(who: Newcomer, display_name: str | None, capabilities: list[str] | None) -> dict[str, Any]:
    """Return the card to show: what was not given stays as it was."""
    before = who.card_before
    return card(
        who.peer_id,
        display_name=before.get("display_name") if display_name is None else display_name,
        capabilities=before.get("capabilities", ()) if capabilities is None else capabilities,
    )


def _join(
    tx: Tx,
    greet: Envelope,
    arrival: Arrival,
    who: Newcomer,
    shown: Mapping[str, Any],
    bounds: Mapping[str, float] | None,
    note: str,
) -> PeerJoined:
    if join(tx, who, shown, bounds=bounds).news:
        accept(tx, greet, arrival)
    return _standing(tx, who, note)


def _leave(tx: Tx, who: Newcomer, note: str) -> PeerJoined:
    leave(tx, who)
    return _standing(tx, who, note)


def _standing(reading: Reading, who: Newcomer, note: str) -> PeerJoined:
    """Return how a peer stands in its channel now."""
    place, peer = who.place, peer_named(reading, who.place, who.peer_id)
    participation = find_participation(reading, "session", who.session_id) if who.session_id else None
    is_present = peer is not None and peer.is_present
    others = [each for each in present_peers(reading, place) if each.peer_id != who.peer_id] if is_present else []
    works = open_work(reading, place.workspace, place.channel, who.peer_id, most=SHOWN) if is_present else []
    return PeerJoined(
        peer_id=who.peer_id,
        mode=participation.mode if participation else "live",
        bounds=dict(participation.bounds) if participation else {},
        peers=[PeerShown.of(each) for each in others[:SHOWN]],
        unread=inbox.unread(reading, [peer]) if peer and is_present else 0,
        open_work=[WorkShown.of(work) for work in works],
        note=note or None,
    )
