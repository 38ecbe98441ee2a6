"""Who gets a message: threads, rooms, single targets, mentions, and peers that are away."""

from typing import Any

import pytest

from agentstead.network.acceptance import Accepted
from agentstead.network.wire import Refused, direct_id
from agentstead.network.wire.grammar import DISCOVERY_KINDS
from tests.network.conftest import GRAFTER, NOW, SCOUT, STEWARD, Orchard

pytestmark = pytest.mark.anyio

count = iter(range(10**6))


def say(sender: str, **changes: Any) -> dict[str, Any]:
    plain = {
        "protocol": "compozy-network/v0",
        "id": f"msg_{next(count)}",
        "workspace_id": "ws_orchard",
        "kind": "say",
        "channel": "pruning",
        "surface": "thread",
        "thread_id": "thread_spring",
        "from": sender,
        "to": None,
        "ts": NOW,
        "body": {"text": "hello"},
        "proof": None,
    }
    return plain | changes


def room(sender: str, to: str, *, channel: str = "pruning", **changes: Any) -> dict[str, Any]:
    stable = [peer.partition(".")[2] or peer for peer in (sender, to)]
    fields = say(sender, to=to, surface="direct", direct_id=direct_id("ws_orchard", channel, *stable), channel=channel)
    del fields["thread_id"]
    return fields | changes


def reached(accepted: Accepted) -> dict[str, str]:
    return {each.peer_id: each.reason for each in accepted.delivered}


def passed_over(accepted: Accepted) -> dict[str, str]:
    return {each.peer_id: each.reason for each in accepted.skipped}


async def away(orchard: Orchard, peer_id: str) -> None:
    await orchard.home.state.write(
        lambda tx: tx.execute("UPDATE net_peer SET presence = 'left', left_at = 5 WHERE peer_id = :p", p=peer_id)
    )


async def test_a_new_thread_reaches_everybody_present_but_its_author(orchard: Orchard) -> None:
    assert reached(await orchard.take(say(STEWARD))) == {GRAFTER: "member", SCOUT: "member"}


async def test_a_thread_that_has_participants_reaches_them_alone(orchard: Orchard) -> None:
    await orchard.take(say(STEWARD))
    assert reached(await orchard.take(say(GRAFTER))) == {STEWARD: "participant"}
    assert reached(await orchard.take(say(STEWARD))) == {GRAFTER: "participant"}


async def test_an_author_alone_in_its_thread_speaks_to_the_channel_again(orchard: Orchard) -> None:
    await orchard.take(say(STEWARD))
    assert set(reached(await orchard.take(say(STEWARD)))) == {GRAFTER, SCOUT}


async def test_who_was_addressed_or_mentioned_takes_part_from_then_on(orchard: Orchard) -> None:
    await orchard.take(say(STEWARD, to=GRAFTER))
    await orchard.take(say(STEWARD, mentions=[SCOUT]))
    assert reached(await orchard.take(say(STEWARD))) == {GRAFTER: "participant", SCOUT: "participant"}


async def test_the_recipients_are_those_of_before_the_message(orchard: Orchard) -> None:
    await orchard.take(say(STEWARD, to=GRAFTER))
    assert reached(await orchard.take(say(SCOUT))) == {STEWARD: "participant", GRAFTER: "participant"}


async def test_a_target_gets_the_message_alone_even_on_a_thread(orchard: Orchard) -> None:
    await orchard.take(say(STEWARD))
    accepted = await orchard.take(say(STEWARD, to=GRAFTER, mentions=[SCOUT, GRAFTER]))
    assert reached(accepted) == {GRAFTER: "addressed"}
    assert passed_over(accepted) == {SCOUT: "addressed_elsewhere"}


async def test_mentions_are_added_and_those_in_vain_are_reported(orchard: Orchard) -> None:
    await away(orchard, SCOUT)
    await orchard.take(say(STEWARD, to=GRAFTER))
    accepted = await orchard.take(say(STEWARD, mentions=[GRAFTER, SCOUT, STEWARD, "nobody.here"]))
    assert reached(accepted) == {GRAFTER: "mentioned"}
    assert passed_over(accepted) == {SCOUT: "absent", STEWARD: "self", "nobody.here": "unknown"}


async def test_only_the_array_mentions_and_no_text(orchard: Orchard) -> None:
    await orchard.take(say(STEWARD, to=GRAFTER))
    accepted = await orchard.take(say(STEWARD, body={"text": f"@{SCOUT} {SCOUT}"}))
    assert reached(accepted) == {GRAFTER: "participant"}


async def test_a_participant_that_left_is_skipped_and_the_rest_get_it(orchard: Orchard) -> None:
    await orchard.take(say(STEWARD, to=GRAFTER))
    await orchard.take(say(STEWARD, to=SCOUT))
    await away(orchard, GRAFTER)
    accepted = await orchard.take(say(STEWARD))
    assert reached(accepted) == {SCOUT: "participant"}
    assert passed_over(accepted) == {GRAFTER: "absent"}


async def test_a_message_to_a_known_absent_peer_is_held_for_it(orchard: Orchard) -> None:
    await away(orchard, GRAFTER)
    assert reached(await orchard.take(say(STEWARD, to=GRAFTER))) == {GRAFTER: "held"}


async def test_discovery_reaches_all_present_peers_or_its_one_target(orchard: Orchard) -> None:
    whois = say(STEWARD, kind="whois", body={"type": "request"})
    for name in ("surface", "thread_id"):
        del whois[name]
    assert whois["kind"] in DISCOVERY_KINDS
    assert reached(await orchard.take(whois)) == {GRAFTER: "member", SCOUT: "member"}
    assert reached(await orchard.take(whois | {"id": "msg_w", "to": SCOUT})) == {SCOUT: "addressed"}


async def test_one_channel_never_hears_another(orchard: Orchard) -> None:
    await orchard.enter("lone.sess-fig", "grafting")
    assert "lone.sess-fig" not in reached(await orchard.take(say(STEWARD)))
    assert "lone.sess-fig" in reached(await orchard.take(say(STEWARD, channel="grafting")))


async def test_a_pair_has_one_room_a_channel_in_either_direction(orchard: Orchard) -> None:
    there, back = room(STEWARD, GRAFTER), room(GRAFTER, STEWARD)
    assert there["direct_id"] == back["direct_id"]
    assert reached(await orchard.take(there)) == {GRAFTER: "addressed"}
    assert reached(await orchard.take(back)) == {STEWARD: "addressed"}
    await orchard.take(room(STEWARD, GRAFTER, channel="grafting"))
    rows = await orchard.rows("SELECT channel, peer_a, peer_b, stable_a < stable_b FROM net_room ORDER BY channel")
    assert rows == [("grafting", STEWARD, GRAFTER, 1), ("pruning", STEWARD, GRAFTER, 1)]
    kinds = [entry.kind for entry in await orchard.home.state.wait(0, kinds=("network.room.*",), timeout_s=0)]
    assert kinds == ["network.room.opened"] * 2


@pytest.mark.parametrize(
    "message",
    [
        room(STEWARD, GRAFTER, direct_id=room(STEWARD, SCOUT)["direct_id"]),
        room(SCOUT, GRAFTER, direct_id=room(STEWARD, GRAFTER)["direct_id"]),
        room(STEWARD, GRAFTER, direct_id=direct_id("ws_orchard", "grafting", "sess-apple", "sess-pear")),
    ],
    ids=["another pair's", "a third peer's", "another channel's"],
)
async def test_a_room_id_of_another_pair_is_refused(orchard: Orchard, message: dict[str, Any]) -> None:
    await orchard.take(room(STEWARD, GRAFTER))
    before = await orchard.snapshot()
    with pytest.raises(Refused) as caught:
        await orchard.take(message)
    assert (caught.value.reason, caught.value.local) == ("invalid_surface", "direct_room_collision")
    assert await orchard.snapshot() == before


async def test_a_room_that_only_another_home_could_compute_is_pinned_to_its_pair(orchard: Orchard) -> None:
    await orchard.enter("guest", kind="foreign")
    first, second = "direct_" + "1" * 32, "direct_" + "2" * 32
    await orchard.take(room("guest", STEWARD, direct_id=first))
    await orchard.take(room(STEWARD, "guest", direct_id=first))
    for wrong in (room("guest", STEWARD, direct_id=second), room("guest", GRAFTER, direct_id=first)):
        with pytest.raises(Refused) as caught:
            await orchard.take(wrong)
        assert caught.value.local == "direct_room_collision"


async def test_two_names_of_one_identity_have_no_room(orchard: Orchard) -> None:
    await orchard.home.state.write(
        lambda tx: tx.execute(
            "UPDATE net_peer SET stable_id = 'sess-apple', presence = 'left', left_at = 1 WHERE peer_id = :p", p=SCOUT
        )
    )
    with pytest.raises(Refused) as caught:
        await orchard.take(room(STEWARD, SCOUT, direct_id="direct_" + "3" * 32))
    assert caught.value.local == "direct_room_collision"


async def test_a_thread_counts_its_messages_and_keeps_its_root(orchard: Orchard) -> None:
    first = await orchard.take(say(STEWARD))
    last = await orchard.take(say(GRAFTER))
    rows = await orchard.rows("SELECT root_seq, last_seq, messages, view FROM net_thread")
    assert rows == [(first.seq, last.seq, 2, "open")]
