"""Inboxes: in order, complete, marked by their owner alone, waiting without a timer."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.kit import Home
from agentstead.network import inbox
from agentstead.network.peers import Peer, Place, present_peers
from agentstead.network.service import inbox_ack, inbox_read, message_send, peer_join
from agentstead.state import Conflict, Denied, Invalid, NotFound
from tests.network.conftest import GRAFTER, STEWARD, Meet, Orchard, Someone
from tests.network.test_routing import say

pytestmark = pytest.mark.anyio


async def pair(meet: Meet) -> tuple[Someone, Someone, str]:
    """Return ada and bob in one channel, and bob's peer id; ada has already read bob's greeting."""
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    peer = await bob.join()
    await ada(inbox_ack, upto_seq=(await ada(inbox_read)).items[-1].seq)
    return ada, bob, peer.peer_id


async def tell(sender: Someone, to: str | None, *texts: str) -> list[Any]:
    return [await sender(message_send, channel="pruning", text=text, to=to) for text in texts]


def texts(read: Any) -> list[str]:
    return [each.body["text"] for each in read.items]


async def test_messages_come_in_the_order_of_acceptance(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    sent = await tell(ada, peer, "one", "two", "three")
    read = await bob(inbox_read)
    assert texts(read) == ["one", "two", "three"]
    assert [each.seq for each in read.items] == [each.seq for each in sent]
    assert read.unread == 3
    assert {each.trust for each in read.items} == {"unverified"}


async def test_reading_marks_nothing(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    await tell(ada, peer, "one")
    assert texts(await bob(inbox_read)) == texts(await bob(inbox_read)) == ["one"]


async def test_what_was_acknowledged_never_comes_as_new_again(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    first, second, third = await tell(ada, peer, "one", "two", "three")
    marked = await bob(inbox_ack, upto_seq=second.seq)
    assert (marked.read_seq, marked.ack_seq, marked.unread) == (second.seq, second.seq, 1)
    assert texts(await bob(inbox_read)) == ["three"]
    assert texts(await bob(inbox_read, only="unacked")) == ["three"]
    shown = (await bob(inbox_read, only="all")).items
    assert [(each.message_id, each.acked) for each in shown] == [
        (first.message_id, True),
        (second.message_id, True),
        (third.message_id, False),
    ]


async def test_read_and_acknowledged_are_two_marks(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    sent = await tell(ada, peer, "one", "two")
    marked = await bob(inbox_ack, upto_seq=sent[1].seq, level="read")
    assert (marked.read_seq, marked.ack_seq) == (sent[1].seq, 0)
    assert texts(await bob(inbox_read)) == []
    assert texts(await bob(inbox_read, only="unacked")) == ["one", "two"]
    marked = await bob(inbox_ack, upto_seq=sent[0].seq)
    assert (marked.read_seq, marked.ack_seq) == (sent[1].seq, sent[0].seq)


async def test_single_messages_can_be_marked_and_the_cursor_waits_for_the_gap(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    first, second, third = await tell(ada, peer, "one", "two", "three")
    marked = await bob(inbox_ack, message_ids=[first.message_id, third.message_id])
    assert (marked.ack_seq, marked.unread) == (first.seq, 1)
    assert texts(await bob(inbox_read)) == ["two"]
    marked = await bob(inbox_ack, message_ids=[second.message_id])
    assert (marked.ack_seq, marked.unread) == (third.seq, 0)


async def test_marking_twice_changes_nothing_and_tells_nobody(meet: Meet, home: Home) -> None:
    ada, bob, peer = await pair(meet)
    sent = await tell(ada, peer, "one")
    once = await bob(inbox_ack, upto_seq=sent[0].seq)
    head = await home.state.head()
    assert await bob(inbox_ack, upto_seq=sent[0].seq) == once
    assert (await home.state.head()).seq == head.seq


async def test_ones_reading_leaves_anothers_unread(meet: Meet) -> None:
    ada, bob, _ = await pair(meet)
    cy = await meet("cy")
    await cy.join()
    await tell(ada, None, "to all")
    await bob(inbox_ack, upto_seq=(await bob(inbox_read)).items[-1].seq)
    assert texts(await cy(inbox_read)) == ["to all"]


@pytest.mark.parametrize("how", ["beyond", "unknown", "of another", "nothing"])
async def test_only_what_was_delivered_to_the_caller_can_be_marked(meet: Meet, how: str) -> None:
    ada, bob, peer = await pair(meet)
    sent = await tell(ada, peer, "one")
    cy = await meet("cy")
    await cy.join()
    arguments: dict[str, Any] = {
        "beyond": {"upto_seq": sent[0].seq + 100},
        "unknown": {"message_ids": [sent[0].message_id, "msg_none"]},
        "of another": {"message_ids": [sent[0].message_id]},
        "nothing": {},
    }[how]
    with pytest.raises(Invalid) as caught:
        await (cy if how == "of another" else bob)(inbox_ack, **arguments)
    assert caught.value.code == "tool.invalid_arguments"
    assert texts(await bob(inbox_read, limit=1)) == ["one"]


async def test_addressed_shows_what_is_to_or_names_the_reader(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    await tell(ada, None, "for all")
    await tell(ada, peer, "for you")
    await ada(message_send, channel="pruning", text="naming you", mentions=[peer])
    assert texts(await bob(inbox_read, only="addressed")) == ["for you", "naming you"]


async def test_pages_go_on_where_they_ended_and_are_bound_to_their_filters(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    await tell(ada, peer, *"abcde")
    one = await bob(inbox_read, limit=2)
    two = await bob(inbox_read, limit=2, cursor=one.next_cursor)
    last = await bob(inbox_read, limit=2, cursor=two.next_cursor)
    assert [texts(page) for page in (one, two, last)] == [["a", "b"], ["c", "d"], ["e"]]
    assert last.next_cursor is None
    for wrong, code in (("x", "cursor.invalid"), (one.next_cursor, "cursor.foreign")):
        with pytest.raises(Invalid) as caught:
            await bob(inbox_read, only="all", cursor=wrong)
        assert caught.value.code == code


async def test_a_page_is_bounded_in_bytes_and_shows_the_start_of_what_is_too_large(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    await tell(ada, peer, "x" * 3000, "y" * 500, "z" * 90_000)
    one = await bob(inbox_read, max_bytes=2000)
    assert len(one.items) == 1
    assert one.items[0].body is None
    assert one.items[0].body_preview.startswith("x" * 160 + " ...")
    two = await bob(inbox_read, max_bytes=2000, cursor=one.next_cursor)
    assert [each.body for each in two.items] == [{"text": "y" * 500}, None]
    whole = await bob(inbox_read, max_bytes=65_536)
    assert [each.body is not None for each in whole.items] == [True, True, False]
    assert whole.items[2].message_id in whole.items[2].body_preview


async def test_a_waiting_reader_is_answered_by_the_next_message(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    waiting = asyncio.create_task(bob(inbox_read, wait_s=30))
    await asyncio.sleep(0)
    await tell(ada, peer, "at last")
    assert texts(await asyncio.wait_for(waiting, 10)) == ["at last"]


async def test_a_waiting_reader_sleeps_through_what_is_for_others(meet: Meet) -> None:
    ada, bob, _ = await pair(meet)
    cy = await meet("cy")
    other = await cy.join()
    await bob(inbox_ack, upto_seq=(await bob(inbox_read)).items[-1].seq)
    waiting = asyncio.create_task(bob(inbox_read, wait_s=1.0))
    await tell(ada, other.peer_id, "not yours")
    assert (await asyncio.wait_for(waiting, 10)).items == []


async def test_a_reader_that_waits_for_nothing_is_answered_at_once(meet: Meet) -> None:
    _, bob, _ = await pair(meet)
    assert (await asyncio.wait_for(bob(inbox_read), 5)).items == []


async def test_many_readers_wait_at_once_for_one_message(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    waiting = [asyncio.create_task(bob(inbox_read, wait_s=30)) for _ in range(50)]
    await asyncio.sleep(0)
    await tell(ada, peer, "all of you")
    for each in await asyncio.wait_for(asyncio.gather(*waiting), 30):
        assert texts(each) == ["all of you"]


async def test_a_message_to_an_absent_peer_waits_for_it(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    await bob.join(leave=True)
    sent = await tell(ada, peer, "when you are back")
    assert [each.reason for each in sent[0].delivered] == ["held"]
    with pytest.raises(Denied) as caught:
        await bob(inbox_read)
    assert caught.value.code == "network.not_participating"
    back = await bob.join()
    assert (back.peer_id, back.unread) == (peer, 1)
    assert texts(await bob(inbox_read)) == ["when you are back"]


@pytest.mark.parametrize(("expires_in_s", "days"), [(60, 0.01), (None, 8)])
async def test_what_was_held_lapses_with_its_end_or_after_a_week(
    meet: Meet, clock: Any, expires_in_s: int | None, days: float
) -> None:
    ada, bob, peer = await pair(meet)
    await bob.join(leave=True)
    lifetime = {} if expires_in_s is None else {"expires_in_s": expires_in_s}
    await ada(message_send, channel="pruning", text="soon", to=peer, **lifetime)
    clock.advance(seconds=days * 86_400)
    assert (await bob.join()).unread == 0
    assert (await bob(inbox_read)).items == []


async def test_a_person_reads_all_of_their_channels_in_one_inbox(meet: Meet) -> None:
    person, ada = await meet("user"), await meet("ada")
    await person.join("pruning")
    me = await person.join("grafting")
    await ada.join("grafting")
    await ada(message_send, channel="grafting", text="here", to=me.peer_id)
    other = await meet("bob")
    await other.join("pruning")
    await other(message_send, channel="pruning", text="there", to=me.peer_id)
    read = await person(inbox_read, only="addressed")
    assert [(each.channel, each.body["text"]) for each in read.items] == [("grafting", "here"), ("pruning", "there")]
    assert [each.channel for each in (await person(inbox_read, channel="pruning")).items] == ["pruning", "pruning"]
    marked = await person(inbox_ack, channel="grafting", upto_seq=read.items[0].seq)
    assert (marked.ack_seq, marked.unread) == (read.items[0].seq, 0)
    assert (await person(inbox_read)).unread == 2


async def test_a_host_with_two_peers_must_say_which(meet: Meet, invoke: Any, home: Home, project: Any) -> None:
    ada, twin = await meet("ada"), await meet("ada")
    first, second = await ada.join(), await twin.join()
    with pytest.raises(Conflict) as caught:
        await ada(inbox_read)
    assert caught.value.code == "network.peer_ambiguous"
    assert {each["peer"] for each in caught.value.details["candidates"]} == {first.peer_id, second.peer_id}
    assert [each.kind for each in (await ada(inbox_read, peer=first.peer_id)).items] == ["greet"]


async def test_nobody_reads_or_marks_as_another(meet: Meet) -> None:
    ada, bob, peer = await pair(meet)
    sent = await tell(ada, peer, "private enough")
    for fn, arguments in ((inbox_read, {}), (inbox_ack, {"upto_seq": sent[0].seq})):
        with pytest.raises(Denied) as caught:
            await ada(fn, peer=peer, **arguments)
        assert caught.value.code == "network.peer_not_yours"
    with pytest.raises(NotFound) as unknown:
        await bob(inbox_read, peer="nobody.here")
    assert unknown.value.code == "network.peer_unknown"


async def test_an_outsider_is_told_to_join(meet: Meet) -> None:
    ada = await meet("ada")
    with pytest.raises(Denied) as caught:
        await ada(inbox_read)
    assert caught.value.code == "network.not_participating"
    assert "peer_join" in caught.value.remedy


async def test_joining_tells_the_others_and_is_nothing_new_the_second_time(meet: Meet) -> None:
    ada, bob, _ = await pair(meet)
    await bob(peer_join, channel="pruning", session=bob.session)
    assert (await ada(inbox_read)).items == []
    await bob(peer_join, channel="pruning", session=bob.session, capabilities=["graft-branch"])
    (greeting,) = (await ada(inbox_read)).items
    assert greeting.body["peer_card"]["capabilities"] == ["graft-branch"]


class Model:
    """What an inbox owes its reader: everything delivered, in order, until it is marked."""

    def __init__(self) -> None:
        self.delivered: list[int] = []
        self.acked: set[int] = set()

    def open(self) -> list[int]:
        return [seq for seq in self.delivered if seq not in self.acked]

    def watermark(self) -> int:
        behind = [seq for seq in self.delivered if seq < min(self.open(), default=2**62)]
        return max(behind, default=0)


async def grafter(orchard: Orchard) -> Peer:
    place = Place("ws_orchard", "pruning")
    peers = await orchard.home.state.read(present_peers, place)
    return next(each for each in peers if each.peer_id == GRAFTER)


STEPS = st.lists(
    st.one_of(st.just(("send", 0)), st.tuples(st.sampled_from(["upto", "one"]), st.integers(0, 8))), max_size=15
)


@given(STEPS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_history_of_sends_and_marks_shows_each_open_message_once_in_order(
    orchard: Orchard, history: list[tuple[str, int]]
) -> None:
    state, me, model = orchard.home.state, await grafter(orchard), Model()
    start = (await orchard.take(say(STEWARD, to=GRAFTER))).seq
    await state.write(inbox.mark, [me], upto_seq=start, message_ids=(), level="ack")
    for step, index in history:
        if step == "send":
            model.delivered.append((await orchard.take(say(STEWARD, to=GRAFTER))).seq)
        elif model.delivered:
            seq = model.delivered[index % len(model.delivered)]
            ids = await orchard.rows("SELECT message_id FROM net_message WHERE seq = :seq", seq=seq)
            how: dict[str, Any] = {"upto_seq": seq} if step == "upto" else {"upto_seq": None}
            named = () if step == "upto" else (ids[0][0],)
            cursor = await state.write(inbox.mark, [me], message_ids=named, level="ack", **how)
            model.acked |= {each for each in model.delivered if each == seq or (step == "upto" and each <= seq)}
            assert cursor.ack_seq == (model.watermark() or start)
        page = await state.read(inbox.page, [me], only="unacked", after=start, most=100, max_bytes=10**6)
        assert [each.seq for each in page.items] == model.open()
