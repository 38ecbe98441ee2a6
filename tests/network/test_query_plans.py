"""Statements that run on every message use an index, so that a long history costs nothing."""

import re

import pytest

from agentstead.kit import Home
from agentstead.network import acceptance, conversations, inbox, joining, peers, works
from agentstead.state import Reading
from tests.network.conftest import GRAFTER, NOW, STEWARD, Orchard
from tests.network.test_routing import say

pytestmark = pytest.mark.anyio

HOT = {
    "a repeated message": acceptance._KNOWN,
    "the cause of a message": acceptance._CAUSE,
    "open inbox items": inbox._OPEN_ITEMS,
    "all inbox items": inbox._ITEMS,
    "the unread count": inbox._UNREAD,
    "the first open delivery": inbox._FIRST_OPEN,
    "the last delivery before it": inbox._LAST_BEFORE,
    "a delivery by message id": inbox._OF_ID,
    "marking": inbox._MARK,
    "what was held": joining._DROP_LAPSED,
    "the caller's peers": peers._OF_PRINCIPAL,
    "a proven session's peers": peers._OF_SESSION,
    "who is present": peers._PRESENT_IDS,
    "a conversation": conversations._IN_CONTAINER,
    "the messages of a work": conversations._OF_WORK,
    "a work": works._FIND,
    "the steps of a work": works._STEPS,
    "the work of a container": works._IN_CONTAINER,
    "the open work of a peer": works._OPEN_OF_PEER,
}
LARGE = ("net_message", "net_delivery", "net_work", "net_work_step", "net_peer", "m", "d", "s")


async def plan(home: Home, sql: str) -> list[str]:
    names = set(re.findall(r":(\w+)", sql))
    values = {name: "[]" if name in ("channels", "seqs") else "x" for name in names}
    rows = await home.state.read(Reading.all, f"EXPLAIN QUERY PLAN {sql}", **values)
    return [row["detail"] for row in rows]


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_never_scans_a_table_that_grows(home: Home, name: str) -> None:
    steps = await plan(home, HOT[name])
    assert steps
    assert [step for step in steps if step.startswith("SCAN") and step.split()[1] in LARGE] == []


async def test_an_inbox_with_a_long_past_reads_what_is_open_alone(orchard: Orchard) -> None:
    state = orchard.home.state
    for _ in range(60):
        await orchard.take(say(STEWARD, to=GRAFTER))
    me = await state.read(lambda reading: peers.peer_named(reading, peers.Place("ws_orchard", "pruning"), GRAFTER))
    assert me is not None
    await state.write(inbox.mark, [me], upto_seq=60, message_ids=(), level="ack")
    await orchard.take(say(STEWARD, to=GRAFTER))
    page = await state.read(inbox.page, [me], only="unread", after=0, most=10, max_bytes=10_000)
    assert [item.ts for item in page.items] == [NOW]
    steps = await plan(orchard.home, inbox._OPEN_ITEMS)
    assert any("net_delivery_unacked" in step for step in steps)
