"""What subscribers are told, what the self-check finds, and what a core list costs."""

import json
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.network.exposing import changes, verify
from agentstead.network.server import SERVER
from agentstead.network.service import inbox_ack, inbox_read, message_send, work_update
from agentstead.network.wire import REASONS, schema
from agentstead.network.wire.grammar import KINDS, WORK_STATES
from agentstead.state import State
from tests.network.conftest import STEWARD, Meet, Orchard
from tests.network.test_routing import say

pytestmark = pytest.mark.anyio


async def changed(state: State, after: int) -> set[str]:
    """Return the last part of each URI that the entries behind `after` changed."""
    entries = await state.wait(after, timeout_s=0)
    return {
        uri.partition("/inbox/")[2] or uri.partition("/c/")[2] or uri for entry in entries for uri in changes(entry)
    }


async def test_each_change_names_the_inboxes_and_conversations_that_it_touched(meet: Meet, home: Home) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    target = (await bob.join()).peer_id
    before = (await home.state.head()).seq
    sent = await ada(message_send, channel="pruning", text="hi", to=target, work="new")
    workspace = (await home.state.wait(before, timeout_s=0))[0].workspace_id
    assert await changed(home.state, before) == {
        target,
        f"pruning/{sent.thread_id}",
        f"net://{workspace}/work/{sent.work_id}",
    }
    before = (await home.state.head()).seq
    await bob(inbox_ack, upto_seq=sent.seq)
    assert await changed(home.state, before) == {target}
    before = (await home.state.head()).seq
    await bob.join(leave=True)
    assert await changed(home.state, before) == {f"net://{workspace}/status"}


async def test_every_uri_that_changes_is_one_of_the_declared_resources(meet: Meet, home: Home) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    target = (await bob.join()).peer_id
    sent = await ada(message_send, channel="pruning", text="hi", room_with=target, work="new")
    await bob(work_update, work_id=sent.work_id, action="complete")
    await ada(inbox_ack, upto_seq=(await ada(inbox_read)).items[-1].seq)
    uris = {uri for entry in await home.state.wait(0, timeout_s=0) for uri in changes(entry)}
    assert len(uris) >= 5
    assert all(any(each.match(uri) for each in SERVER.resources) for uri in uris)


BREAK_BYTES = "UPDATE net_message SET raw = CAST(replace(raw, 'hello', 'howdy') AS BLOB) WHERE kind = 'say'"
BREAK_JSON = "UPDATE net_message SET raw = CAST('{' AS BLOB) WHERE kind = 'say'"
BREAK_WORK = "UPDATE net_work SET state = 'working'"


@pytest.mark.parametrize(
    ("change", "undo", "finding"),
    [
        (BREAK_BYTES, BREAK_BYTES.replace("'hello', 'howdy'", "'howdy', 'hello'"), "message 3 no longer has the bytes"),
        (BREAK_WORK, "UPDATE net_work SET state = 'submitted'", "its last step led to submitted"),
    ],
)
async def test_the_self_check_finds_what_was_changed_behind_our_back(
    meet: Meet, home: Home, change: str, undo: str, finding: str
) -> None:
    ada, bob = await meet("ada"), await meet("bob")
    await ada.join()
    target = (await bob.join()).peer_id
    await ada(message_send, channel="pruning", text="hello", to=target, work="new")
    assert await verify(home) == []
    await home.state.write(lambda tx: tx.execute(change))
    (found,) = await verify(home)
    assert finding in found
    await home.state.write(lambda tx: tx.execute(undo))


async def test_bytes_that_are_no_longer_json_are_found_too(orchard: Orchard) -> None:
    message = say(STEWARD)
    await orchard.take(message)
    await orchard.home.state.write(lambda tx: tx.execute(BREAK_JSON))
    assert len(await verify(orchard.home)) == 1
    await orchard.home.state.write(
        lambda tx: tx.execute("UPDATE net_message SET raw = :raw", raw=json.dumps(message).encode())
    )


def test_only_tools_that_work_are_listed_and_each_is_in_the_core_set() -> None:
    names = {operation.name for operation in SERVER.tools("full")}
    assert names == set(SERVER.toolsets["core"])
    assert "wake_claim" not in names
    assert len(SERVER.instructions.encode()) <= 1536


def test_the_risk_of_each_operation_is_what_it_does() -> None:
    risks = {each.name: (each.risk, each.idempotent, each.open_world) for each in SERVER.tools("full")}
    assert risks == {
        "peer_join": ("write", True, False),
        "peer_find": ("read", True, False),
        "message_send": ("write", False, True),
        "inbox_read": ("read", True, False),
        "inbox_ack": ("write", True, False),
        "work_update": ("write", True, True),
        "network_view": ("read", True, False),
    }


def test_the_schemas_closed_sets_are_those_of_the_code() -> None:
    document: dict[str, Any] = schema.load_schema()
    assert tuple(document["properties"]["kind"]["enum"]) == KINDS
    assert tuple(document["$defs"]["reason"]["enum"][1:]) == REASONS
    states = document["$defs"]["content"]["allOf"][-1]["then"]["properties"]["body"]["properties"]["state"]["enum"]
    assert tuple(states) == WORK_STATES
