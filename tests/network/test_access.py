"""Who may read what, by every path there is: tools, resources, prompts, and what stands beside a message."""

from typing import Any

import pytest

from agentstead.identity import Principal
from agentstead.kit import Call, Home
from agentstead.network.exposing import catch_up, hand_over, read_container, read_inbox, read_status, read_work
from agentstead.network.service import (
    inbox_ack,
    inbox_read,
    message_send,
    network_view,
    peer_find,
    peer_join,
    work_update,
)
from agentstead.state import AgentsteadError, Denied, Invalid, NotFound
from tests.network.conftest import Meet, Someone

pytestmark = pytest.mark.anyio

WORDS = "Two scions looked diseased."


class Scene:
    """Ada and bob with a thread and a room that has work; cy in the channel; dee outside of it."""

    ada: Someone
    bob: Someone
    cy: Someone
    dee: Someone
    person: Someone
    workspace: str
    thread: str
    room: str
    room_message: str
    room_work: str
    thread_message: str

    def caller(self, name: str) -> Someone:
        found: Someone = getattr(self, name)
        return found

    def call(self, name: str) -> Call:
        caller = self.caller(name)
        principal = Principal.user() if name == "person" else Principal.host(name)
        return Call(caller.home, principal, cwd=caller.project)


@pytest.fixture
async def scene(meet: Meet, home: Home) -> Scene:
    made = Scene()
    made.ada, made.bob, made.cy, made.dee = [await meet(name) for name in ("ada", "bob", "cy", "dee")]
    made.person = await meet("user")
    for each in (made.ada, made.bob, made.cy):
        await each.join()
    bob = f"bob.{made.bob.session.lower()}"
    said = await made.ada(message_send, channel="pruning", text="In the open.", to=bob)
    told = await made.ada(message_send, channel="pruning", text=WORDS, room_with=bob, work="new")
    made.thread, made.thread_message = said.thread_id, said.message_id
    made.room, made.room_message, made.room_work = told.direct_id, told.message_id, told.work_id
    made.workspace = await home.state.read(lambda reading: reading.value("SELECT workspace FROM net_channel"))
    return made


@pytest.mark.parametrize("who", ["ada", "bob", "person"])
async def test_the_two_peers_and_the_person_of_the_home_read_a_room(scene: Scene, who: str) -> None:
    caller = scene.caller(who)
    messages = (await caller(network_view, ref=scene.room, view="messages")).items
    assert [each["body"]["text"] for each in messages] == [WORDS]
    for ref, view in ((scene.room_work, "steps"), (scene.room_message, "raw"), (scene.room_message, "why")):
        await caller(network_view, ref=ref, view=view)
    facts = (await caller(network_view, ref=scene.room)).facts
    assert facts["privacy"] == "restricted, not encrypted"
    assert len(facts["peers"]) == 2


@pytest.mark.parametrize(
    ("ref", "view"),
    [
        ("room", "brief"),
        ("room", "messages"),
        ("room_work", "brief"),
        ("room_work", "messages"),
        ("room_work", "steps"),
        ("room_message", "brief"),
        ("room_message", "raw"),
        ("room_message", "why"),
    ],
)
@pytest.mark.parametrize(("who", "code"), [("cy", "network.room_forbidden"), ("dee", "network.not_participating")])
async def test_nobody_else_reads_a_room_by_any_view(scene: Scene, ref: str, view: str, who: str, code: str) -> None:
    with pytest.raises(Denied) as caught:
        await scene.caller(who)(network_view, ref=getattr(scene, ref), view=view)
    assert caught.value.code == code
    assert WORDS not in str(caught.value.as_dict())


async def test_nobody_else_reads_a_room_by_a_resource_or_prompt(scene: Scene) -> None:
    for reading in (
        read_container(scene.call("cy"), scene.workspace, "pruning", scene.room),
        read_work(scene.call("cy"), scene.workspace, scene.room_work),
        read_inbox(scene.call("cy"), scene.workspace, f"bob.{scene.bob.session.lower()}"),
    ):
        with pytest.raises(Denied):
            await reading
    assert WORDS not in await catch_up(scene.call("cy"), "pruning")
    assert WORDS in await catch_up(scene.call("bob"), "pruning")
    assert WORDS in await read_container(scene.call("bob"), scene.workspace, "pruning", scene.room)


async def test_a_room_shows_in_no_list_of_others(scene: Scene) -> None:
    shown = [
        await scene.cy(network_view, ref="pruning", view="messages"),
        await scene.cy(network_view, ref="pruning"),
        await scene.cy(network_view, ref=scene.thread, view="messages"),
        await scene.cy(network_view),
        await scene.cy(inbox_read, only="all"),
        await scene.cy(peer_find),
    ]
    text = "".join(each.model_dump_json() for each in shown)
    assert WORDS not in text
    assert scene.room not in text
    assert scene.room_work not in text
    assert "In the open." in text


async def test_a_room_cannot_be_entered_or_its_work_moved_by_a_third(scene: Scene) -> None:
    with pytest.raises(Denied):
        await scene.cy(work_update, work_id=scene.room_work, action="progress")
    with pytest.raises(AgentsteadError):
        await scene.cy(message_send, channel="pruning", text="me too", work=scene.room_work)
    with pytest.raises(Invalid):
        await scene.cy(inbox_ack, message_ids=[scene.room_message])


async def test_a_thread_is_open_to_its_channel_and_to_nobody_else(scene: Scene) -> None:
    for ref, view in ((scene.thread, "messages"), (scene.thread_message, "raw"), ("pruning", "brief")):
        await scene.cy(network_view, ref=ref, view=view)
        with pytest.raises(Denied) as caught:
            await scene.dee(network_view, ref=ref, view=view)
        assert caught.value.code == "network.not_participating"


async def test_who_leaves_a_channel_no_longer_reads_it(scene: Scene) -> None:
    await scene.bob(peer_join, channel="pruning", session=scene.bob.session, leave=True)
    for ref in (scene.room, scene.thread):
        with pytest.raises(Denied):
            await scene.bob(network_view, ref=ref, view="messages")


async def test_another_channels_peer_learns_nothing_of_this_one(scene: Scene) -> None:
    await scene.dee.join("grafting")
    for ref in (scene.thread, scene.room, scene.room_message, "pruning", f"ada.{scene.ada.session.lower()}"):
        with pytest.raises(Denied) as caught:
            await scene.dee(network_view, ref=ref)
        assert caught.value.code == "network.not_participating"


async def test_a_participation_is_shown_to_its_session_and_the_person(scene: Scene) -> None:
    for caller in (scene.ada, scene.person):
        assert (await caller(network_view, ref=scene.ada.session)).kind == "owner"
    with pytest.raises(NotFound):
        await scene.bob(network_view, ref=scene.ada.session)


@pytest.mark.parametrize("ref", ["nothing", "thread_nowhere", "direct_" + "0" * 32, "msg_none", "ses_none", ""])
async def test_an_unknown_reference_is_not_found(scene: Scene, ref: str) -> None:
    with pytest.raises(NotFound) as caught:
        await scene.ada(network_view, ref=ref)
    assert caught.value.code == "ref.not_found"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("ref", "view"), [("status", "raw"), ("thread", "why"), ("room_work", "raw"), ("thread_message", "steps")]
)
async def test_a_view_that_a_reference_lacks_names_those_it_has(scene: Scene, ref: str, view: str) -> None:
    with pytest.raises(Invalid) as caught:
        await scene.ada(network_view, ref=getattr(scene, ref, ref), view=view)
    assert "brief" in caught.value.remedy


async def test_status_shows_where_the_caller_stands(scene: Scene) -> None:
    facts = (await scene.bob(network_view)).facts
    assert [(each["channel"], each["unread"]) for each in facts["you"]] == [("pruning", 3)]
    assert [each["work_id"] for each in facts["open_work"]] == [scene.room_work]
    assert "rejected_last_day" not in facts
    assert (await scene.person(network_view)).facts["rejected_last_day"] == 0
    assert (await scene.dee(network_view)).facts["you"] == []


async def test_why_tells_for_each_recipient_what_became_of_a_message(scene: Scene) -> None:
    await scene.bob(inbox_ack, message_ids=[scene.thread_message], level="read")
    (row,) = (await scene.ada(network_view, ref=scene.thread_message, view="why")).items
    assert (row["decision"], row["reason"]) == ("deliver", "addressed")
    assert row["read_at"] is not None
    assert row["acked_at"] is None


async def test_messages_are_listed_by_windows(scene: Scene) -> None:
    for text in "abcde":
        await scene.ada(message_send, channel="pruning", text=text, thread_id=scene.thread)

    async def page(**window: Any) -> tuple[list[str], int | None]:
        shown = await scene.bob(network_view, ref=scene.thread, view="messages", **window)
        return [each["body"]["text"] for each in shown.items], shown.next_before

    newest, before = await page(limit=2)
    assert newest == ["d", "e"]
    older, before = await page(limit=2, before=before)
    assert older == ["b", "c"]
    assert (await page(limit=5, before=before))[0] == ["In the open.", "a"]
    last = (await scene.bob(network_view, ref=scene.thread, view="messages")).items[-1]["seq"]
    assert (await page(after=last - 1))[0] == ["e"]


async def test_a_long_conversation_is_shown_within_a_limit_of_bytes(scene: Scene) -> None:
    sent = [
        await scene.ada(message_send, channel="pruning", text=letter * 30_000, thread_id=scene.thread)
        for letter in "abc"
    ]
    shown = (await scene.bob(network_view, ref=scene.thread, view="messages")).items
    assert [("body" in each) for each in shown] == [False, False, True, True]
    assert shown[1]["body_preview"] == f"{'a' * 160} ... (whole: network_view ref={sent[0].message_id} view=raw)"
    whole = (await scene.bob(network_view, ref=sent[0].message_id)).facts
    assert whole["body"]["text"] == "a" * 30_000


async def test_work_shows_its_parties_and_its_messages(scene: Scene) -> None:
    shown = await scene.bob(network_view, ref=scene.room_work)
    assert (shown.kind, shown.facts["state"], shown.facts["closed_seq"]) == ("work", "submitted", None)
    assert shown.facts["target"] == f"bob.{scene.bob.session.lower()}"
    messages = (await scene.bob(network_view, ref=scene.room_work, view="messages")).items
    assert [each["body"]["text"] for each in messages] == [WORDS]


async def test_a_peer_shows_its_card_and_only_the_channels_that_its_reader_is_in(scene: Scene) -> None:
    me = await scene.person.join("pruning", display_name="Ada L.")
    await scene.person.join("grafting")
    shown = await scene.cy(network_view, ref=me.peer_id)
    assert (shown.facts["channel"], shown.facts["card"]["display_name"]) == ("pruning", "Ada L.")
    assert shown.items == []
    everywhere = await scene.person(network_view, ref=me.peer_id)
    assert {everywhere.facts["channel"], *(each["channel"] for each in everywhere.items)} == {"pruning", "grafting"}


async def test_steps_are_listed_by_windows(scene: Scene) -> None:
    for _ in range(3):
        await scene.ada(message_send, channel="pruning", text="more", work=scene.room_work)
    newest = await scene.bob(network_view, ref=scene.room_work, view="steps", limit=3)
    assert [each["event"] for each in newest.items] == ["talk_by_initiator"] * 3
    older = await scene.bob(network_view, ref=scene.room_work, view="steps", limit=3, before=newest.next_before)
    assert [each["event"] for each in older.items] == ["opened"]


async def test_resources_and_prompts_say_the_same_as_the_tools(scene: Scene) -> None:
    bob = f"bob.{scene.bob.session.lower()}"
    assert WORDS in await read_inbox(scene.call("bob"), scene.workspace, bob)
    assert '"to_state":"submitted"' in await read_work(scene.call("ada"), scene.workspace, scene.room_work)
    assert '"unread":3' in await read_status(scene.call("bob"), scene.workspace)
    brief = await catch_up(scene.call("bob"), "pruning")
    assert brief.startswith("Unread in channel pruning: 3.")
    assert "not an instruction" in brief
    assert "work='new'" in await hand_over(scene.call("ada"), "pruning", bob, "Graft row 7.")
