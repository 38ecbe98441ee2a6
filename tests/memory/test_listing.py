"""Lists and single memories: pages, filters, and everything that can be asked along."""

from typing import Any

import pytest

from agentstead.memory.service import memory_get, memory_list
from agentstead.state import AgentsteadError

pytestmark = pytest.mark.anyio


async def test_pages_hold_every_row_once_in_either_order(host: Any) -> None:
    ids = [(await host.add(f"Fact about {word}.")).memory_id for word in ("ants", "bees", "cats", "dogs", "eels")]
    for order in ("newest", "oldest"):
        seen: list[str] = []
        cursor = None
        while True:
            page = await host.call(memory_list, what="memories", order=order, limit=2, cursor=cursor)
            assert page.counts == {"total": 5}
            seen += [row["memory_id"] for row in page.rows]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(seen) == sorted(ids)
        assert seen == sorted(seen, reverse=order == "newest")


async def test_a_cursor_belongs_to_its_filters(host: Any) -> None:
    for word in ("ants", "bees"):
        await host.add(f"Fact about {word}.")
    page = await host.call(memory_list, limit=1)
    with pytest.raises(AgentsteadError) as error:
        await host.call(memory_list, limit=1, order="oldest", cursor=page.next_cursor)
    assert error.value.code == "cursor.foreign"


async def test_memories_are_listed_by_type_state_and_scope(user: Any) -> None:
    fact = await user.add("A fact.", key="a/fact")
    taste = await user.add("A taste.", type="preference")
    await user.write({"op": "archive", "memory_id": fact.memory_id})
    await user.write({"op": "pin", "memory_id": taste.memory_id})

    async def listed(**arguments: Any) -> list[str]:
        return [row["memory_id"] for row in await user.list("memories", **arguments)]

    assert await listed(types=["fact"]) == [fact.memory_id]
    assert await listed(states=["archived"]) == [fact.memory_id]
    assert await listed(scope="home") == [taste.memory_id]
    assert await listed(scope="workspace") == [fact.memory_id]
    [row] = await user.list("memories", types=["preference"])
    assert (row["pinned"], row["state"], row["trust"], row["version"]) == (True, "live", "person", 2)
    [row] = await user.list("memories", types=["fact"])
    assert (row["key"], row["title"]) == ("a/fact", "A fact.")


async def test_the_log_of_a_memory_is_listed_in_its_order(host: Any) -> None:
    added = await host.add("A fact.")
    await host.write({"op": "pin", "memory_id": added.memory_id})
    await host.write({"op": "archive", "memory_id": added.memory_id})
    await host.add("Another.")
    events = await host.list("events", memory_id=added.memory_id, order="oldest")
    assert [event["op"] for event in events] == ["add", "pin", "archive"]
    assert events[1]["detail"] == {"pinned": 1}


async def test_decisions_tell_by_which_rules(host: Any) -> None:
    await host.add("A fact.")
    await host.add("A fact.")
    verdicts = [row["verdict"] for row in await host.list("decisions", order="oldest")]
    assert verdicts == ["accepted", "duplicate"]
    [duplicate] = await host.list("decisions", states=["duplicate"])
    assert duplicate["rules"][-1]["rule"] == "exact"


async def test_a_memory_is_shown_with_all_that_is_asked_along(host: Any) -> None:
    added = await host.add("Version one.", evidence=["https://example.net"], key="v")
    await host.write({"op": "revise", "memory_id": added.memory_id, "text": "Version two."})
    await host.recall("version")
    memory = await host.get(added.memory_id, "history", "evidence", "links", "decisions", "uses")
    assert [edition["text"] for edition in memory.history] == ["Version one.", "Version two."]
    assert [row["ref"] for row in memory.evidence] == ["https://example.net"]
    assert memory.links == []
    assert [row["op"] for row in memory.decisions] == ["add", "revise"]
    assert memory.uses == {"surfaced": 1, "used": 0, "helped": 0, "misled": 0}


async def test_what_was_not_asked_along_is_left_out(host: Any) -> None:
    memory = await host.get((await host.add("A fact.")).memory_id)
    assert {memory.history, memory.evidence, memory.links, memory.decisions, memory.uses} == {None}


async def test_several_memories_come_in_the_order_asked(host: Any) -> None:
    one, two = await host.add("One."), await host.add("Two.")
    got = await host.call(memory_get, ids=[two.memory_id, one.memory_id, two.memory_id])
    assert [item.text for item in got.items] == ["Two.", "One."]


@pytest.mark.parametrize("ids", [["mem_01J9ZZZZZZZZZZZZZZZZZZZZZA"], ["nonsense"]])
async def test_an_unknown_memory_is_named(host: Any, ids: list[str]) -> None:
    with pytest.raises(AgentsteadError) as error:
        await host.call(memory_get, ids=ids)
    assert error.value.code == "memory.not_found"


async def test_an_unknown_part_is_named(host: Any) -> None:
    added = await host.add("A fact.")
    with pytest.raises(AgentsteadError) as error:
        await host.get(added.memory_id, "rumours")
    assert (error.value.code, "history" in error.value.remedy) == ("memory.invalid", True)
