"""Sending through the tool: containers, targets, keys, dry runs, limits; and that nothing refused leaves a trace."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.kit import Home
from agentstead.network.sending import INLINE_BYTES
from agentstead.network.service import inbox_read, message_send, network_view, work_update
from agentstead.network.wire import direct_id, parse
from agentstead.network.wire.grammar import DIRECT_ID, THREAD_ID
from agentstead.state import AgentsteadError, Conflict, Invalid, NotFound, Reading
from tests.network.conftest import Meet, Someone

pytestmark = pytest.mark.anyio

counter = iter(range(10**6))

Send = Callable[..., Awaitable[Any]]


async def pair(meet: Meet) -> tuple[Someone, Someone, str, Send]:
    """Return ada and bob in one channel, bob's peer id, and ada's way to send."""
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    peer = (await bob.join()).peer_id

    async def send(text: str = "hello", **arguments: Any) -> Any:
        return await ada(message_send, channel="pruning", text=text, **arguments)

    return ada, bob, peer, send


async def stored(home: Home) -> list[dict[str, Any]]:
    rows = await home.state.read(Reading.all, "SELECT raw FROM net_message WHERE kind = 'say' ORDER BY seq")
    return [parse(bytes(row["raw"])) for row in rows]


async def attempt(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except AgentsteadError as error:
        return error


async def code_of(awaitable: Awaitable[Any]) -> AgentsteadError:
    with pytest.raises(AgentsteadError) as caught:
        await awaitable
    assert caught.value.remedy
    return caught.value


async def test_a_message_is_an_envelope_of_the_protocol_from_the_callers_peer(meet: Meet, home: Home) -> None:
    ada, _, peer, send = await pair(meet)
    sent = await send(to=f" {peer} ", intent="question", reply_to="msg_0", artifacts=[{"type": "map"}], expires_in_s=60)
    (envelope,) = await stored(home)
    now = home.clock.now_us() // 1_000_000
    assert envelope == {
        "protocol": "compozy-network/v0",
        "id": sent.message_id,
        "workspace_id": envelope["workspace_id"],
        "kind": "say",
        "channel": "pruning",
        "surface": "thread",
        "thread_id": sent.thread_id,
        "from": f"ada.{ada.session.lower()}",
        "to": peer,
        "reply_to": "msg_0",
        "ts": now,
        "expires_at": now + 60,
        "body": {"text": "hello", "intent": "question", "artifacts": [{"type": "map"}]},
        "proof": None,
    }
    assert THREAD_ID.fullmatch(sent.thread_id)


async def test_a_thread_goes_on_and_keeps_its_title(meet: Meet) -> None:
    _, bob, _, send = await pair(meet)
    first = await send(title="Row 7")
    second = await send("more", thread_id=first.thread_id, title="ignored")
    assert second.thread_id == first.thread_id
    facts = (await bob(network_view, ref=first.thread_id)).facts
    assert (facts["title"], facts["messages"]) == ("Row 7", 2)


async def test_a_thread_id_may_be_chosen_by_its_opener(meet: Meet) -> None:
    _, _, _, send = await pair(meet)
    assert (await send(thread_id="thread_spring_2026")).thread_id == "thread_spring_2026"


async def test_a_room_is_named_by_its_peer_and_addressed_to_it(meet: Meet, home: Home) -> None:
    ada, bob, peer, send = await pair(meet)
    sent = await send(room_with=peer)
    (envelope,) = await stored(home)
    assert DIRECT_ID.fullmatch(sent.direct_id)
    assert sent.direct_id == direct_id(envelope["workspace_id"], "pruning", ada.session, bob.session)
    assert (sent.thread_id, envelope["to"]) == (None, peer)


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        ({"to": "nobody.here"}, Invalid, "network.rejected"),
        ({"to": "Not A Peer"}, Invalid, "network.rejected"),
        ({"to": "self"}, Invalid, "network.rejected"),
        ({"room_with": "nobody.here"}, NotFound, "network.peer_unknown"),
        ({"room_with": "self"}, Invalid, "tool.invalid_arguments"),
        ({"room_with": "bob", "thread_id": "thread_abc"}, Invalid, "tool.invalid_arguments"),
        ({"room_with": "bob", "to": "self"}, Invalid, "tool.invalid_arguments"),
        ({"thread_id": "thread_x"}, Invalid, "network.rejected"),
        ({"work": "new"}, Invalid, "network.rejected"),
        ({"work": "bad/id", "to": "bob"}, Invalid, "network.rejected"),
        ({"text": " \n "}, Invalid, "network.rejected"),
        ({"text": "\ud800"}, Invalid, "tool.invalid_arguments"),
        ({"mentions": ["@bob"]}, Invalid, "network.rejected"),
        ({"expires_in_s": 0}, Invalid, "tool.invalid_arguments"),
        ({"from": "x"}, Invalid, "tool.invalid_arguments"),
        ({"proof": {}}, Invalid, "tool.invalid_arguments"),
        ({"reply_to": "x" * 257}, Invalid, "tool.invalid_arguments"),
        ({"reply_to": "é" * 200}, Invalid, "network.rejected"),
    ],
)
async def test_what_cannot_be_sent_says_why_and_stores_nothing(
    meet: Meet, home: Home, arguments: dict[str, Any], kind: type[AgentsteadError], code: str
) -> None:
    ada, _, peer, send = await pair(meet)
    names = {"bob": peer, "self": f"ada.{ada.session.lower()}"}
    error = await code_of(send(**{key: names.get(str(value), value) for key, value in arguments.items()}))
    assert (type(error), error.code) == (kind, code)
    assert await stored(home) == []
    assert await home.state.read(Reading.value, "SELECT COUNT(*) FROM net_thread") == 0


async def test_a_refusal_by_the_protocol_is_on_record_and_one_of_the_arguments_is_not(meet: Meet, home: Home) -> None:
    _, _, _, send = await pair(meet)
    await code_of(send(to="nobody.here"))
    await code_of(send(expires_in_s=0))
    rows = await home.state.read(Reading.all, "SELECT reason_code, origin FROM net_reject")
    assert [tuple(row) for row in rows] == [("not_found", "local")]


async def test_a_secret_is_refused_and_appears_nowhere(meet: Meet, home: Home) -> None:
    secret = "ghp_" + "a1B2" * 9
    _, _, _, send = await pair(meet)
    for arguments in (
        {"text": f"use {secret}"},
        {"artifacts": [{"uri": secret}]},
        {"artifacts": [{secret: 1}]},
        {"intent": secret},
    ):
        error = await code_of(send(**arguments))
        assert error.details["local_code"] == "secret_material"
        assert secret not in json.dumps(error.as_dict())
    assert await stored(home) == []
    await home.state.maintain(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    for path in home.path.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


async def test_a_key_of_a_secrets_name_is_refused_too(meet: Meet) -> None:
    _, _, _, send = await pair(meet)
    error = await code_of(send(artifacts=[{"api_key": "x"}]))
    assert error.details["pointer"] == "/body/artifacts/0/api_key"


async def test_a_repeated_call_with_its_key_is_one_message(meet: Meet, home: Home) -> None:
    _, bob, peer, send = await pair(meet)
    once = await send(to=peer, work="new", idempotency_key="k")
    again = await send(to=peer, work="new", idempotency_key="k")
    assert again == once
    assert len(await stored(home)) == 1
    assert (await code_of(send("other", to=peer, work="new", idempotency_key="k"))).code == "key.conflict"
    assert (await bob(inbox_read)).unread == 1


async def test_a_dry_run_says_whom_it_would_reach_and_leaves_nothing(meet: Meet, home: Home) -> None:
    _, bob, peer, send = await pair(meet)
    head = await home.state.head()
    dry = await send(mentions=[peer, "nobody.here"], dry_run=True)
    assert [(each.peer_id, each.reason) for each in dry.delivered] == [(peer, "mentioned")]
    assert [(each.peer_id, each.reason) for each in dry.skipped] == [("nobody.here", "unknown")]
    assert dry.seq is None
    assert (await code_of(send(to="nobody.here", dry_run=True))).code == "network.rejected"
    assert (await home.state.head()).seq == head.seq
    assert (await bob(inbox_read)).unread == 0
    real = await send()
    assert real.seq is not None


async def test_work_goes_on_in_its_own_container_with_its_own_party(meet: Meet) -> None:
    ada, bob, peer, send = await pair(meet)
    opened = await send(room_with=peer, work="new")
    again = await bob(message_send, channel="pruning", text="How?", work=opened.work_id)
    assert (again.direct_id, again.delivered[0].peer_id) == (opened.direct_id, f"ada.{ada.session.lower()}")
    error = await code_of(send(thread_id="thread_other", work=opened.work_id))
    assert error.details["reason_code"] == "work_container_mismatch"


async def test_a_work_id_may_be_chosen_by_its_opener(meet: Meet) -> None:
    _, _, peer, send = await pair(meet)
    assert (await send(to=peer, work="row 7: graft")).work_id == "row 7: graft"


async def test_talk_into_closed_work_is_refused_as_such(meet: Meet) -> None:
    _, bob, peer, send = await pair(meet)
    opened = await send(to=peer, work="new")
    await bob(work_update, work_id=opened.work_id, action="complete")
    error = await code_of(send(work=opened.work_id))
    assert (type(error), error.code) == (Conflict, "network.work_closed")


async def test_large_text_arrives_whole_by_its_raw_view(meet: Meet, home: Home) -> None:
    _, bob, peer, send = await pair(meet)
    text = "grün " * 20_000
    sent = await send(text, to=peer)
    (item,) = (await bob(inbox_read)).items
    assert item.body is None
    facts = (await bob(network_view, ref=sent.message_id, view="raw")).facts
    assert facts["bytes"] > INLINE_BYTES
    assert parse(facts["raw"].encode())["body"] == {"text": text}


async def test_more_than_the_protocols_limit_is_refused(meet: Meet) -> None:
    _, _, _, send = await pair(meet)
    error = await code_of(send("€" * 262_144, artifacts=[{"type": "x" * 300_000}]))
    assert error.details["local_code"] == "envelope_too_large"


TEXTS = st.text(max_size=40) | st.sampled_from(["thread_abc", "direct_" + "0" * 32, "new", " ", "a", "pruning"])
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXTS,
        "to": TEXTS,
        "mentions": st.lists(TEXTS, max_size=3),
        "thread_id": TEXTS,
        "room_with": TEXTS,
        "title": TEXTS,
        "work": TEXTS,
        "reply_to": TEXTS,
        "intent": TEXTS,
        "artifacts": st.lists(st.dictionaries(TEXTS, st.floats() | TEXTS | st.integers(), max_size=2), max_size=2),
        "expires_in_s": st.integers(-5, 10**7),
        "dry_run": st.booleans(),
    },
)


@given(ARGUMENTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_arguments_send_a_message_or_meet_a_coded_error(meet: Meet, arguments: dict[str, Any]) -> None:
    name = f"ada{next(counter)}"
    ada = await meet(name)
    await ada.join()
    outcome = await attempt(ada(message_send, channel="pruning", **{"text": "hello"} | arguments))
    if isinstance(outcome, AgentsteadError):
        assert outcome.code in {"tool.invalid_arguments", "network.rejected", "network.peer_unknown"}
        assert outcome.remedy
    else:
        assert (outcome.thread_id is None) != (outcome.direct_id is None)
