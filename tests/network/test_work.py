"""Work between two parties: what moves it, who may, and that its end is final."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.network.machines import TERMINAL, next_work_state, work_event
from agentstead.network.service import inbox_read, message_send, network_view, work_update
from agentstead.network.wire import Envelope, Refused, examine
from agentstead.state import AgentsteadError, Conflict, Denied, Invalid
from tests.network.conftest import GRAFTER, NOW, SCOUT, STEWARD, Meet, Orchard

pytestmark = pytest.mark.anyio

count = iter(range(10**6))
WORK = "work_row7"


def message(sender: str, to: str | None, kind: str, body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    fields = {
        "protocol": "compozy-network/v0",
        "id": f"msg_{next(count)}",
        "workspace_id": "ws_orchard",
        "kind": kind,
        "channel": "pruning",
        "surface": "thread",
        "thread_id": "thread_spring",
        "from": sender,
        "to": to,
        "work_id": WORK,
        "ts": NOW,
        "body": body,
        "proof": None,
    }
    return fields | changes


def opening(**changes: Any) -> dict[str, Any]:
    return message(STEWARD, GRAFTER, "say", {"text": "Graft row 7."}, **changes)


def talk(sender: str, to: str | None) -> dict[str, Any]:
    return message(sender, to, "say", {"text": "more"})


def receipt(status: str, sender: str = GRAFTER, to: str = STEWARD, **changes: Any) -> dict[str, Any]:
    body = {"for_id": "msg_0", "status": status}
    if status not in ("accepted", "canceled"):
        body["reason_code"] = "busy"
    return message(sender, to, "receipt", body, **changes)


def trace(state: str, sender: str = GRAFTER, to: str | None = STEWARD, **changes: Any) -> dict[str, Any]:
    return message(sender, to, "trace", {"state": state}, **changes)


async def codes(orchard: Orchard, fields: dict[str, Any]) -> tuple[str, str | None]:
    before = await orchard.snapshot()
    with pytest.raises(Refused) as caught:
        await orchard.take(fields)
    assert await orchard.snapshot() == before
    return caught.value.reason, caught.value.local


async def test_opening_fixes_state_parties_and_container(orchard: Orchard) -> None:
    accepted = await orchard.take(opening())
    rows = await orchard.rows(
        "SELECT channel, surface, container_id, initiator, target, state, opened_seq, closed_seq, version FROM net_work"
    )
    assert rows == [("pruning", "thread", "thread_spring", STEWARD, GRAFTER, "submitted", accepted.seq, None, 1)]


@pytest.mark.parametrize("fields", [receipt("accepted"), trace("working")], ids=["receipt", "trace"])
async def test_nothing_but_talk_creates_work(orchard: Orchard, fields: dict[str, Any]) -> None:
    assert await codes(orchard, fields) == ("not_found", "work_not_found")


async def test_the_whole_way_leaves_a_step_for_each_message(orchard: Orchard) -> None:
    way = [
        opening(),
        receipt("accepted"),
        trace("needs_input"),
        talk(GRAFTER, STEWARD),
        talk(STEWARD, GRAFTER),
        trace("completed"),
    ]
    for fields in way:
        await orchard.take(fields)
    rows = await orchard.rows("SELECT event, from_state, to_state, actor FROM net_work_step ORDER BY seq")
    assert rows == [
        ("opened", "", "submitted", STEWARD),
        ("receipt_accepted", "submitted", "working", GRAFTER),
        ("trace_needs_input", "working", "needs_input", GRAFTER),
        ("talk_by_target", "needs_input", "needs_input", GRAFTER),
        ("talk_by_initiator", "needs_input", "working", STEWARD),
        ("trace_completed", "working", "completed", GRAFTER),
    ]
    kinds = [entry.kind for entry in await orchard.home.state.wait(0, kinds=("network.work.*",), timeout_s=0)]
    assert kinds == ["network.work.opened", *["network.work.moved"] * 3, "network.work.closed"]


@pytest.mark.parametrize("end", ["completed", "failed", "canceled"])
@pytest.mark.parametrize(
    "late",
    [
        talk(STEWARD, GRAFTER),
        talk(GRAFTER, STEWARD),
        receipt("accepted"),
        receipt("canceled", STEWARD, GRAFTER),
        trace("working"),
        trace("completed"),
        trace("submitted"),
    ],
    ids=["initiator", "target", "accept", "cancel", "working", "completed", "submitted"],
)
async def test_an_end_is_final(orchard: Orchard, end: str, late: dict[str, Any]) -> None:
    await orchard.take(opening())
    last = trace(end)
    await orchard.take(last)
    assert await codes(orchard, late) == ("work_closed", None)
    assert (await orchard.take(last)).duplicate


async def test_submitted_never_applies_to_work_that_exists(orchard: Orchard) -> None:
    await orchard.take(opening())
    assert await codes(orchard, trace("submitted")) == ("malformed", "invalid_transition")


@pytest.mark.parametrize(
    "fields",
    [
        talk(SCOUT, GRAFTER),
        receipt("accepted", SCOUT, STEWARD),
        trace("completed", SCOUT),
        talk(STEWARD, SCOUT),
        talk(GRAFTER, SCOUT),
    ],
    ids=["talk", "receipt", "trace", "to a third", "target to a third"],
)
async def test_a_third_peer_moves_nothing(orchard: Orchard, fields: dict[str, Any]) -> None:
    await orchard.take(opening())
    assert await codes(orchard, fields) == ("not_target", "work_actor_not_allowed")


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"thread_id": "thread_other"},
        {"channel": "grafting"},
        {"surface": "direct", "direct_id": "direct_34e0a8dbdfb71e43f6b2347e98e082c1", "thread_id": None},
    ],
    ids=["thread", "channel", "room"],
)
async def test_work_never_leaves_its_container(orchard: Orchard, elsewhere: dict[str, Any]) -> None:
    await orchard.take(opening())
    assert await codes(orchard, trace("working", **elsewhere)) == ("work_container_mismatch", None)
    await orchard.take(trace("completed"))
    assert await codes(orchard, trace("working", **elsewhere)) == ("work_container_mismatch", None)


async def test_container_comes_before_actor_and_end_before_actor(orchard: Orchard) -> None:
    await orchard.take(opening())
    stranger = trace("working", SCOUT, thread_id="thread_other")
    assert (await codes(orchard, stranger))[0] == "work_container_mismatch"
    await orchard.take(trace("failed"))
    assert (await codes(orchard, trace("working", SCOUT)))[0] == "work_closed"


EVENTS = st.sampled_from(
    [
        lambda: talk(STEWARD, GRAFTER),
        lambda: talk(GRAFTER, STEWARD),
        *(lambda status=status: receipt(status) for status in ("accepted", "rejected", "canceled", "expired")),
        *(
            lambda state=state: trace(state)
            for state in ("submitted", "working", "needs_input", "completed", "failed", "canceled")
        ),
    ]
)


def checked(fields: dict[str, Any]) -> Envelope:
    return examine(json.dumps(fields).encode(), now=NOW, is_secret=lambda _: False)


@given(st.lists(EVENTS, max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_stored_work_follows_the_machine_through_any_history(orchard: Orchard, history: list[Any]) -> None:
    work_id = f"work_{next(count)}"
    await orchard.take(opening(work_id=work_id))
    state = "submitted"
    for make in history:
        fields = make() | {"work_id": work_id}
        event = work_event(checked(fields), by_initiator=fields["from"] == STEWARD)
        try:
            state = next_work_state(state, event)  # type: ignore[arg-type]
            assert (await orchard.take(fields)).work_state == state
        except Refused:
            with pytest.raises(Refused):
                await orchard.take(fields)
    assert await orchard.work(work_id) == state
    closed = await orchard.rows("SELECT closed_seq IS NOT NULL FROM net_work WHERE work_id = :w", w=work_id)
    assert closed == [(state in TERMINAL,)]


async def hand_over(meet: Meet) -> tuple[Any, Any, Any]:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    target = await bob.join()
    sent = await ada(message_send, channel="pruning", text="Graft row 7.", to=target.peer_id, work="new")
    return ada, bob, sent


async def test_a_hand_over_ends_in_a_receipt_and_a_completed_trace(meet: Meet) -> None:
    ada, bob, sent = await hand_over(meet)
    accepted = await bob(work_update, work_id=sent.work_id, action="accept")
    assert (accepted.state, accepted.version) == ("working", 2)
    asked = await bob(work_update, work_id=sent.work_id, action="need_input", message="Which end?")
    assert asked.state == "needs_input"
    await ada(message_send, channel="pruning", text="The north end.", work=sent.work_id)
    done = await bob(work_update, work_id=sent.work_id, action="complete", result={"tied": 6})
    assert (done.state, done.version) == ("completed", 5)
    kinds = [(each.kind, each.body.get("state", each.body.get("status"))) for each in (await ada(inbox_read)).items]
    assert kinds[1:] == [("receipt", "accepted"), ("trace", "needs_input"), ("trace", "completed")]
    steps = (await ada(network_view, ref=sent.work_id, view="steps")).items
    assert [each["to_state"] for each in steps] == ["submitted", "working", "needs_input", "working", "completed"]


@pytest.mark.parametrize(
    ("who", "action", "more", "state", "kind"),
    [
        ("bob", "refuse", {"reason_code": "busy", "message": "Later."}, "failed", "receipt"),
        ("bob", "progress", {"message": "Half."}, "working", "trace"),
        ("bob", "fail", {"message": "Frost."}, "failed", "trace"),
        ("bob", "cancel", {}, "canceled", "trace"),
        ("ada", "cancel", {"reason_code": "internal"}, "canceled", "receipt"),
    ],
)
async def test_each_action_is_the_receipt_or_trace_of_its_side(
    meet: Meet, who: str, action: str, more: dict[str, Any], state: str, kind: str
) -> None:
    ada, bob, sent = await hand_over(meet)
    actor, other = (bob, ada) if who == "bob" else (ada, bob)
    assert (await actor(work_update, work_id=sent.work_id, action=action, **more)).state == state
    last = (await other(inbox_read)).items[-1]
    assert (last.kind, last.work_state) == (kind, state)
    assert sent.message_id in (last.reply_to, last.causation_id)


@pytest.mark.parametrize(
    ("action", "more"),
    [
        ("refuse", {}),
        ("accept", {"reason_code": "busy"}),
        ("accept", {"result": {"a": 1}}),
        ("progress", {"reason_code": "busy"}),
        ("cancel", {"reason_code": "busy"}),
    ],
)
async def test_an_action_with_what_it_cannot_carry_is_refused(meet: Meet, action: str, more: dict[str, Any]) -> None:
    _, bob, sent = await hand_over(meet)
    with pytest.raises(Invalid) as caught:
        await bob(work_update, work_id=sent.work_id, action=action, **more)
    assert caught.value.code == "tool.invalid_arguments"


async def test_a_reason_outside_of_the_protocols_set_is_refused_by_its_code(meet: Meet) -> None:
    _, bob, sent = await hand_over(meet)
    with pytest.raises(Invalid) as caught:
        await bob(work_update, work_id=sent.work_id, action="refuse", reason_code="tired")
    assert caught.value.code == "network.rejected"
    assert caught.value.details["pointer"] == "/body/reason_code"


@pytest.mark.parametrize(
    ("case", "kind", "code"),
    [
        ("closed", Conflict, "network.work_closed"),
        ("stranger", Denied, "network.work_not_yours"),
        ("unknown", Invalid, "network.rejected"),
        ("outsider", Denied, "network.not_participating"),
    ],
)
async def test_work_that_cannot_be_moved_says_why(
    meet: Meet, case: str, kind: type[AgentsteadError], code: str
) -> None:
    _, bob, sent = await hand_over(meet)
    stranger = await meet("cy")
    if case == "closed":
        await bob(work_update, work_id=sent.work_id, action="complete")
    if case == "stranger":
        await stranger.join()
    actor = stranger if case in ("stranger", "outsider") else bob
    work_id = "work_of_nobody" if case == "unknown" else sent.work_id
    with pytest.raises(kind) as caught:
        await actor(work_update, work_id=work_id, action="progress")
    assert caught.value.code == code
    assert caught.value.remedy


async def test_a_repeated_call_with_its_key_moves_work_once(meet: Meet) -> None:
    _, bob, sent = await hand_over(meet)
    once = await bob(work_update, work_id=sent.work_id, action="complete", idempotency_key="k")
    again = await bob(work_update, work_id=sent.work_id, action="complete", idempotency_key="k")
    assert again == once
