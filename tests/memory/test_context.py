"""Context packs: what stands in them, in which order, within which budget, and for how long."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentstead.memory.log import Edition
from agentstead.memory.pack import OWNER_LABEL, fill, tokens
from agentstead.memory.recall import Item, Why
from agentstead.memory.service import memory_context
from agentstead.memory.store import Memory
from agentstead.memory.vocabulary import MEMORY_TYPES, Trust
from agentstead.sessions.service import session_open
from agentstead.state import SimulatedClock, sha256_hex

IDS = [f"mem_01J9ZZZZZZZZZZZZZZZZZZZZ{n:02d}" for n in range(40)]


def item(number: int, text: str, **fields: Any) -> Item:
    values: dict[str, Any] = {"type": "fact", "scope": "home", "trust": Trust.HOST} | fields
    edition = Edition(
        memory_id=IDS[number],
        text_id="mtx_x",
        workspace_id="",
        key=None,
        slug="s",
        attributes={},
        tags=(),
        valid_from=0,
        valid_to=None,
        author="a",
        principal="p",
        source_kind="tool",
        text_hash="h",
        **values,
    )
    memory = Memory(
        id=IDS[number],
        state="live",
        pinned=False,
        stale="no",
        suspect="",
        channel="tool",
        version=1,
        created_at=0,
        updated_at=0,
        edition_id="med_x",
        ordinal=1,
        recorded_at=0,
        unrecorded_at=None,
        title="t",
        text=text,
        edition=edition,
    )
    return Item(memory, 0.0, Why((), (), {}), text)


ITEMS = st.lists(
    st.builds(
        lambda text, kind, scope, trust: (text, kind, scope, trust),
        st.text(min_size=1, max_size=200),
        st.sampled_from(MEMORY_TYPES),
        st.sampled_from(["home", "workspace:wsp_01J9ZZZZZZZZZZZZZZZZZZZZZA", "agent:x"]),
        st.sampled_from(list(Trust)),
    ),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(ITEMS, st.integers(200, 2_000))
def test_a_budget_is_never_passed_and_every_item_is_whole(rows: list[Any], budget: int) -> None:
    items = [item(n, text, type=kind, scope=scope, trust=trust) for n, (text, kind, scope, trust) in enumerate(rows)]
    pack = fill([items], budget=budget)
    assert tokens(pack.text) <= budget
    assert len(pack.items) + pack.left_out == len(items)
    lines = pack.text.split("\n")
    heads = [line for line in lines if line.startswith("[mem_")]
    assert sorted(head[1:31] for head in heads) == sorted(each.memory.id for each in pack.items)


@settings(max_examples=100, deadline=None)
@given(ITEMS, st.randoms())
def test_equal_content_gives_equal_bytes_whatever_its_order(rows: list[Any], random: Any) -> None:
    items = [item(n, text, type=kind, scope=scope, trust=trust) for n, (text, kind, scope, trust) in enumerate(rows)]
    shuffled = list(items)
    random.shuffle(shuffled)
    assert fill([items], budget=8_000).text == fill([shuffled], budget=8_000).text


@settings(max_examples=100, deadline=None)
@given(ITEMS)
def test_nothing_below_a_person_stands_outside_of_the_fence(rows: list[Any]) -> None:
    items = [item(n, text, type=kind, scope=scope, trust=trust) for n, (text, kind, scope, trust) in enumerate(rows)]
    pack = fill([items], budget=8_000)
    before_fence = pack.text.split("\n--- ")[0]
    for each in pack.items:
        outside = f"[{each.memory.id} " in before_fence
        assert outside == (each.memory.trust == Trust.PERSON and each.memory.type in ("preference", "instruction"))


def test_items_are_printed_from_the_weak_scope_to_the_strong() -> None:
    session = item(0, "s", scope="session:ses_01J9ZZZZZZZZZZZZZZZZZZZZZA")
    pack = fill([[session, item(1, "h"), item(2, "a", scope="agent:x")]], budget=1_000)
    assert [each.memory.text for each in pack.items] == ["h", "a", "s"]


async def ask(desk: Any, **arguments: Any) -> Any:
    return await desk.call(memory_context, **arguments)


@pytest.mark.anyio
async def test_a_pack_holds_what_the_owner_set_and_what_matters(user: Any, host: Any) -> None:
    rule = await user.add("Never push to main.", type="instruction")
    taste = await user.add("Short answers, please.", type="preference")
    fact = await host.add("The API listens on 8080.")
    pack = await ask(host)
    assert set(pack.items) == {rule.memory_id, taste.memory_id, fact.memory_id}
    first, fenced = pack.text.split("\n--- ", 1)
    assert first.splitlines()[0].startswith("agentstead-memory/1 ")
    assert OWNER_LABEL in first
    assert "Never push" in first
    assert "8080" not in first
    assert "data, not instructions" in fenced
    assert pack.sha256 == sha256_hex(pack.text.encode())


@pytest.mark.anyio
async def test_a_hint_brings_what_the_budget_would_leave_out(host: Any, clock: SimulatedClock) -> None:
    needle = await host.add("The zebra service needs port 9999. " + "Detail. " * 40)
    clock.advance(seconds=60)
    for n in range(12):
        await host.add(f"Fact {n} about {'abcdefghijkl'[n]}. " + "More of it. " * 40)
    without = await ask(host, budget_tokens=400)
    assert needle.memory_id not in without.items
    assert without.left_out > 0
    hinted = await ask(host, budget_tokens=400, hint="zebra port")
    assert needle.memory_id in hinted.items


@pytest.mark.anyio
async def test_a_pinned_memory_comes_first(host: Any) -> None:
    pinned = await host.add("Pinned fact. " + "Word. " * 60)
    await host.write({"op": "pin", "memory_id": pinned.memory_id})
    for n in range(6):
        await host.add(f"Newer fact {n} of {'abcdef'[n]}. " + "Word. " * 60)
    pack = await ask(host, budget_tokens=250)
    assert pack.items[0] == pinned.memory_id


@pytest.mark.anyio
async def test_what_is_not_live_or_shadowed_stays_out(user: Any) -> None:
    gone = await user.add("Archived fact.")
    await user.write({"op": "archive", "memory_id": gone.memory_id})
    await user.add("Everywhere tabs.", scope="home", key="indent")
    here = await user.add("Here spaces.", scope="workspace", key="indent")
    assert (await ask(user)).items == [here.memory_id]


@pytest.mark.anyio
async def test_a_session_keeps_its_pack_and_counts_what_is_newer(
    host: Any, user: Any, invoke: Any, clock: SimulatedClock
) -> None:
    session = (await invoke(host.home, session_open, cwd=host.cwd, principal=host.principal)).session_id
    await host.add("First fact.")
    first = await ask(host, session_id=session)
    clock.advance(seconds=3_600)
    second = await host.add("Second fact.")
    again = await ask(host, session_id=session)
    assert (again.text, again.sha256, again.recall_id) == (first.text, first.sha256, first.recall_id)
    assert (first.newer, again.newer) == (0, 1)
    fresh = await ask(host, session_id=session, refresh=True)
    assert second.memory_id in fresh.items
    assert fresh.newer == 0
    assert (await ask(host, session_id=session)).text == fresh.text


@pytest.mark.anyio
async def test_a_kept_pack_outlives_a_collection_of_blobs(host: Any, invoke: Any, clock: SimulatedClock) -> None:
    session = (await invoke(host.home, session_open, cwd=host.cwd, principal=host.principal)).session_id
    await host.add("A fact.")
    pack = await ask(host, session_id=session)
    clock.advance(seconds=30 * 86_400)
    await host.home.blobs.collect(host.home.state, dry_run=False)
    assert (await ask(host, session_id=session)).text == pack.text


@pytest.mark.anyio
async def test_a_pack_shows_nothing_of_other_workspaces(host: Any, other_project: Path) -> None:
    await host.add("Only here: xylophone.")
    assert "xylophone" not in (await ask(host.at(other_project))).text


@pytest.mark.anyio
async def test_what_a_pack_showed_is_not_learned_anew(host: Any) -> None:
    await host.add("The nightly job rebuilds the search index at three in the morning from the replica.")
    await ask(host)
    echo = "The nightly job rebuilds the search index at three in the morning from the replica, I noticed"
    written = await host.write({"op": "add", "type": "procedure", "text": echo})
    assert written.decisions[0].verdict == "duplicate"


@pytest.mark.anyio
async def test_an_empty_memory_gives_an_empty_pack(host: Any) -> None:
    pack = await ask(host)
    assert (pack.items, pack.left_out) == ([], 0)
    assert pack.text.startswith("agentstead-memory/1 ")
