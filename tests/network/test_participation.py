"""Joining and leaving: under which identity, in which channel, within which bounds; and finding who is there."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.kit import Home
from agentstead.network import joining
from agentstead.network.participation import BOUNDS, resolve_bounds
from agentstead.network.service import message_send, network_view, peer_find, peer_join
from agentstead.network.wire.grammar import CHANNEL, PEER_ID, is_reserved
from agentstead.sessions.service import session_close, session_open
from agentstead.state import AgentsteadError, Conflict, Denied, Exhausted, Invalid, NotFound, Reading, is_id
from tests.network.conftest import Invoke, Meet

pytestmark = pytest.mark.anyio

DEFAULTS = {name: bound.default for name, bound in BOUNDS.items()}


async def test_a_session_joins_live_under_its_own_name_with_default_bounds(meet: Meet) -> None:
    ada = await meet("ada")
    joined = await ada.join()
    assert joined.peer_id == f"ada.{ada.session.lower()}"
    assert PEER_ID.fullmatch(joined.peer_id)
    assert (joined.mode, joined.bounds, joined.peers, joined.unread, joined.open_work) == ("live", DEFAULTS, [], 0, [])


async def test_a_person_joins_as_a_human(meet: Meet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "Ada Lovelace")
    joined = await (await meet("user")).join()
    assert joined.peer_id == "human.ada-lovelace"
    assert joined.bounds == {}


@pytest.mark.parametrize(("account", "peer_id"), [("runtime", "human.runtime_"), ("..", "human.agent")])
async def test_no_account_name_makes_a_person_look_like_something_else(
    meet: Meet, monkeypatch: pytest.MonkeyPatch, account: str, peer_id: str
) -> None:
    monkeypatch.setenv("LOGNAME", account)
    joined = await (await meet("user")).join()
    assert joined.peer_id == peer_id
    assert not is_reserved(joined.peer_id)


async def test_an_account_without_a_name_still_has_a_person(meet: Meet, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert (await (await meet("user")).join()).peer_id == "human.owner"


@given(st.text(max_size=80), st.text(alphabet="ABCDEFGHJKMNPQRSTVWXYZ0123456789", min_size=26, max_size=26))
def test_any_agent_name_gives_a_peer_id(name: str, ulid: str) -> None:
    peer_id = f"{joining._cleaned(name)}.ses_{ulid}".lower()
    assert PEER_ID.fullmatch(peer_id)
    assert not is_reserved(peer_id)


async def test_the_environment_of_a_shim_may_name_the_session(home: Home, invoke: Invoke, project: Path) -> None:
    opened = await invoke(home, session_open, principal="host:ada", cwd=project, agent="ada")
    environ = {"AGENTSTEAD_SESSION": opened.session_id}
    joined = await invoke(home, peer_join, principal="host:ada", cwd=project, environ=environ, channel="pruning")
    assert joined.peer_id.endswith(opened.session_id.lower())


@pytest.mark.parametrize(
    ("case", "kind", "code"),
    [
        ("no session", Denied, "network.participation_denied"),
        ("unknown session", NotFound, "session.not_found"),
        ("no session id", NotFound, "session.not_found"),
        ("another's session", Denied, "network.peer_not_yours"),
        ("closed session", Denied, "network.participation_denied"),
        ("proven other", Denied, "network.peer_not_yours"),
    ],
)
async def test_who_cannot_join_is_told_why(
    meet: Meet, home: Home, invoke: Invoke, project: Path, case: str, kind: type[AgentsteadError], code: str
) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    session = {
        "no session": None,
        "unknown session": "ses_01MCC5RM001TP2BCDE2ADX275B",
        "no session id": "tsk_01MCC5RM001TP2BCDE2ADX275B",
        "another's session": bob.session,
        "closed session": ada.session,
        "proven other": bob.session,
    }[case]
    if case == "closed session":
        await ada(session_close, session_id=ada.session)
    principal = f"session:{ada.session}" if case == "proven other" else "host:ada"
    with pytest.raises(kind) as caught:
        await invoke(home, peer_join, principal=principal, cwd=project, channel="pruning", session=session)
    assert caught.value.code == code
    assert caught.value.remedy
    assert await home.state.read(Reading.all, "SELECT * FROM net_channel") == []


async def test_a_proven_session_acts_as_its_own_peer(meet: Meet, home: Home, invoke: Invoke, project: Path) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    await bob.join()
    sent = await invoke(
        home, message_send, principal=f"agent:ada@{ada.session}", cwd=project, channel="pruning", text="me"
    )
    shown = await bob(network_view, ref=sent.message_id)
    assert shown.facts["from_peer"] == f"ada.{ada.session.lower()}"


async def test_leaving_and_coming_back_keeps_the_peer_id(meet: Meet, home: Home) -> None:
    ada = await meet("ada")
    joined = await ada.join(display_name="Ada", capabilities=["graft-branch"])
    for _ in range(2):
        left = await ada.join(leave=True)
        assert (left.peer_id, left.peers, left.unread) == (joined.peer_id, [], 0)
    with pytest.raises(Denied):
        await ada(message_send, channel="pruning", text="gone")
    back = await ada.join()
    assert back.peer_id == joined.peer_id
    (shown,) = (await ada(peer_find)).peers
    assert (shown.display_name, shown.capabilities, shown.presence) == ("Ada", ["graft-branch"], "joined")
    kinds = [entry.kind for entry in await home.state.wait(0, kinds=("network.peer.*",), timeout_s=0)]
    assert kinds == ["network.peer.joined", "network.peer.left", "network.peer.joined"]


async def test_a_closed_session_can_still_leave(meet: Meet) -> None:
    ada = await meet("ada")
    await ada.join()
    await ada(session_close, session_id=ada.session)
    await ada.join(leave=True)
    assert [each.presence for each in (await ada(peer_find)).peers] == ["left"]


async def test_a_session_takes_part_in_one_channel_for_good(meet: Meet) -> None:
    ada = await meet("ada")
    await ada.join("pruning")
    with pytest.raises(Conflict) as caught:
        await ada.join("grafting")
    assert caught.value.code == "network.participation_fixed"
    assert caught.value.details["channel"] == "pruning"


async def test_bounds_are_fixed_at_the_first_join(meet: Meet) -> None:
    ada = await meet("ada")
    asked: dict[str, Any] = {"participation": {"bounds": {"max_wakes": 4}}}
    assert (await ada.join(**asked)).bounds == DEFAULTS | {"max_wakes": 4}
    assert (await ada.join()).bounds["max_wakes"] == 4
    assert (await ada.join(**asked)).bounds["max_wakes"] == 4
    with pytest.raises(Conflict) as caught:
        await ada.join(participation={"bounds": {"max_wakes": 5}})
    assert caught.value.code == "network.participation_fixed"
    facts = (await ada(network_view, ref=ada.session)).facts
    assert facts["snapshot"]["version"] == "network-participation/v1"
    assert facts["snapshot"]["bounds"]["max_wakes"] == 4
    assert facts["source"] == "explicit_request"


async def test_local_takes_part_in_no_channel(meet: Meet) -> None:
    with pytest.raises(Conflict) as caught:
        await (await meet("ada")).join(participation={"mode": "local"})
    assert caught.value.code == "network.strategy_channel_conflict"


@pytest.mark.parametrize("name", BOUNDS)
def test_a_ceiling_is_allowed_and_nothing_above_it(name: str) -> None:
    ceiling = BOUNDS[name].ceiling
    with_room = {"max_total_wall_time": 7200.0} if name == "max_wake_wall_time" else {}
    assert resolve_bounds({name: ceiling} | with_room)[name] == ceiling
    with pytest.raises(Invalid) as caught:
        resolve_bounds({name: ceiling + 1})
    assert caught.value.code == "network.bounds_exceed_ceiling"
    assert set(caught.value.details["allowed"]) == set(BOUNDS)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("value", [0, -1, -0.5, float("-inf")])
def test_zero_and_less_are_never_unlimited(name: str, value: float) -> None:
    with pytest.raises(Invalid) as caught:
        resolve_bounds({name: value})
    assert caught.value.code == "network.bounds_invalid"


@pytest.mark.parametrize(
    "asked",
    [
        {"max_wakes": 1.5},
        {"max_everything": 1},
        {"max_wake_wall_time": 600, "max_total_wall_time": 300},
        {"max_wakes": float("nan")},
    ],
)
def test_what_is_no_bound_is_refused(asked: dict[str, float]) -> None:
    with pytest.raises(Invalid) as caught:
        resolve_bounds(asked)
    assert caught.value.code == "network.bounds_invalid"


def test_a_window_below_its_floor_is_out_of_range() -> None:
    with pytest.raises(Invalid) as caught:
        resolve_bounds({"coalesce_window": 0.05})
    assert caught.value.code == "network.bounds_exceed_ceiling"


async def test_an_archived_channel_cannot_be_joined(meet: Meet, home: Home) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    await home.state.write(lambda tx: tx.execute("UPDATE net_channel SET state = 'archived'"))
    with pytest.raises(Conflict) as caught:
        await bob.join()
    assert caught.value.code == "network.channel_archived"


@pytest.mark.parametrize("limit", ["PEERS_A_CHANNEL", "CHANNELS_A_WORKSPACE"])
async def test_a_full_place_says_so_and_is_left_alone(meet: Meet, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    monkeypatch.setattr(joining, limit, 1)
    with pytest.raises(Exhausted) as caught:
        await bob.join("pruning" if limit == "PEERS_A_CHANNEL" else "grafting")
    assert caught.value.code == "network.busy"
    assert caught.value.retryable
    assert (await ada(peer_find)).channels[0].peers == 1


@pytest.mark.parametrize("name", ["Pruning", "-x", "a b", "", "pruning\n", "x" * 65])
async def test_a_channel_has_a_name_of_the_protocol(meet: Meet, home: Home, name: str) -> None:
    assert CHANNEL.fullmatch(name) is None
    with pytest.raises(Invalid):
        await (await meet("ada")).join(name)
    assert await home.state.read(Reading.all, "SELECT * FROM net_peer") == []


async def test_a_secret_in_a_card_keeps_the_peer_out(meet: Meet, home: Home) -> None:
    secret = "ghp_" + "a1B2" * 9
    with pytest.raises(Invalid) as caught:
        await (await meet("ada")).join(display_name=f"ada {secret}")
    assert caught.value.details["local_code"] == "secret_material"
    dump = await home.state.read(Reading.all, "SELECT from_claim, id_claim, pointer FROM net_reject")
    assert secret not in json.dumps([dict(row) for row in dump])
    assert await home.state.read(Reading.all, "SELECT * FROM net_peer") == []


async def test_peers_are_found_by_what_they_claim(meet: Meet) -> None:
    ada, bob, cy = await meet("ada"), await meet("bob"), await meet("cy")
    await ada.join(display_name="The 100% Pruner", capabilities=["prune"])
    await bob.join(display_name="Grafter", capabilities=["prune", "graft-branch"])
    await cy.join("grafting")
    await bob.join(leave=True)

    async def found(**filters: Any) -> list[str]:
        return [each.peer_id.partition(".")[0] for each in (await cy(peer_find, **filters)).peers]

    assert await found() == ["cy", "ada", "bob"]
    assert await found(channel="pruning") == ["ada", "bob"]
    assert await found(capability="graft-branch") == ["bob"]
    assert await found(capability="graft") == []
    assert await found(query="gRAFT") == ["bob"]
    assert await found(query="0% p") == ["ada"]
    assert await found(query="%") == ["ada"]
    assert await found(presence="joined", channel="pruning") == ["ada"]
    channels = (await cy(peer_find)).channels
    assert [(each.channel, each.peers, each.state) for each in channels] == [
        ("grafting", 1, "open"),
        ("pruning", 1, "open"),
    ]


async def test_finding_goes_page_by_page(meet: Meet) -> None:
    people = [await meet(name) for name in ("ada", "bob", "cy")]
    for each in people:
        await each.join()
    one = await people[0](peer_find, limit=2)
    two = await people[0](peer_find, limit=2, cursor=one.next_cursor)
    assert [len(one.peers), len(two.peers), two.next_cursor] == [2, 1, None]
    assert not two.channels
    with pytest.raises(Invalid) as caught:
        await people[0](peer_find, limit=2, cursor=one.next_cursor, presence="left")
    assert caught.value.code == "cursor.foreign"


async def test_joining_shows_who_is_there_and_what_waits(meet: Meet) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join(display_name="Ada")
    target = await bob.join()
    assert [each.display_name for each in target.peers] == ["Ada"]
    sent = await ada(message_send, channel="pruning", text="Graft row 7.", to=target.peer_id, work="new")
    again = await bob.join()
    assert again.unread == 1
    assert [(each.work_id, each.state) for each in again.open_work] == [(sent.work_id, "submitted")]


async def test_channels_of_two_workspaces_are_two(meet: Meet, home: Home, invoke: Invoke, tmp_path: Path) -> None:
    ada = await meet("ada")
    mine = await ada.join()
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    opened = await invoke(home, session_open, principal="host:bob", cwd=other, agent="bob")
    theirs = await invoke(
        home, peer_join, principal="host:bob", cwd=other, channel="pruning", session=opened.session_id
    )
    assert (mine.peers, theirs.peers) == ([], [])
    assert is_id(opened.session_id, "ses_")
    with pytest.raises(Denied) as caught:
        await invoke(
            home,
            peer_join,
            principal="host:bob",
            cwd=other,
            channel="pruning",
            session=opened.session_id,
            workspace=str(ada.project),
        )
    assert caught.value.code == "network.participation_denied"
