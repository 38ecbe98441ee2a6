"""Forgetting: nothing goes without a preview, and exactly what the preview named goes."""

from pathlib import Path
from typing import Any

import pytest

from agentstead.memory.service import memory_forget
from agentstead.state import AgentsteadError, PendingAnswer

pytestmark = pytest.mark.anyio


async def forget(desk: Any, **arguments: Any) -> Any:
    return await desk.call(memory_forget, **arguments)


async def refused(desk: Any, **arguments: Any) -> AgentsteadError:
    with pytest.raises(AgentsteadError) as error:
        await forget(desk, **arguments)
    return error.value


async def test_a_preview_names_what_would_go_and_changes_nothing(user: Any) -> None:
    added = await user.add("The old wiki is at wiki.example.net.")
    head = await user.home.state.head()
    shown = await forget(user, ids=[added.memory_id])
    assert (shown.decisions, [each.memory_id for each in shown.preview]) == (None, [added.memory_id])
    assert len(shown.digest) == 64
    assert await user.home.state.head() == head


@pytest.mark.parametrize(("mode", "state"), [("archive", "archived"), ("retract", "retracted")])
async def test_the_digest_lets_exactly_those_go(user: Any, mode: str, state: str) -> None:
    gone, kept = await user.add("The old wiki moved."), await user.add("The new wiki stays.")
    shown = await forget(user, ids=[gone.memory_id], mode=mode)
    done = await forget(user, ids=[gone.memory_id], mode=mode, confirm=shown.digest, reason="outdated")
    assert [row.verdict for row in done.decisions] == ["accepted"]
    assert (done.digest, done.preview) == (None, None)
    assert (await user.get(gone.memory_id)).state == state
    assert await user.found("wiki") == [kept.memory_id]


async def test_a_question_names_candidates_and_never_forgets_by_itself(user: Any) -> None:
    first, second = await user.add("The old wiki moved."), await user.add("The wiki needs a login.")
    await user.add("Unrelated.")
    shown = await forget(user, query="wiki")
    assert {each.memory_id for each in shown.preview} == {first.memory_id, second.memory_id}
    await forget(user, query="wiki", confirm=shown.digest)
    assert await user.found("wiki") == []


async def test_a_digest_of_other_memories_modes_or_versions_is_refused(user: Any) -> None:
    one, two = await user.add("One thing."), await user.add("Other thing.")
    digest = (await forget(user, ids=[one.memory_id])).digest
    assert (await refused(user, ids=[two.memory_id], confirm=digest)).code == "memory.confirm_mismatch"
    assert (await refused(user, ids=[one.memory_id], mode="retract", confirm=digest)).code == "memory.confirm_mismatch"
    await user.write({"op": "pin", "memory_id": one.memory_id})
    assert (await refused(user, ids=[one.memory_id], confirm=digest)).code == "memory.confirm_mismatch"
    assert (await user.get(one.memory_id)).state == "live"


async def test_new_matches_since_the_preview_stop_a_forgetting_by_question(user: Any) -> None:
    await user.add("The old wiki moved.")
    digest = (await forget(user, query="wiki")).digest
    await user.add("The wiki needs a login.")
    assert (await refused(user, query="wiki", confirm=digest)).code == "memory.confirm_mismatch"


async def test_a_host_needs_a_persons_yes_to_forget_but_not_to_look(host: Any) -> None:
    added = await host.add("A thing.")
    digest = (await forget(host, ids=[added.memory_id])).digest
    with pytest.raises(PendingAnswer):
        await forget(host, ids=[added.memory_id], confirm=digest)
    assert (await host.get(added.memory_id)).state == "live"


async def test_retracting_needs_a_reason(user: Any) -> None:
    added = await user.add("A thing.")
    digest = (await forget(user, ids=[added.memory_id], mode="retract")).digest
    assert (await refused(user, ids=[added.memory_id], mode="retract", confirm=digest)).code == "memory.invalid"


async def test_a_retry_with_its_key_gets_the_first_answer(user: Any) -> None:
    added = await user.add("A thing.")
    digest = (await forget(user, ids=[added.memory_id])).digest
    arguments = {"ids": [added.memory_id], "confirm": digest, "idempotency_key": "f1"}
    assert await forget(user, **arguments) == await forget(user, **arguments)


@pytest.mark.parametrize("arguments", [{}, {"ids": []}, {"ids": ["mem_1"], "query": "x"}])
async def test_it_takes_ids_or_a_question(user: Any, arguments: dict[str, Any]) -> None:
    assert (await refused(user, **arguments)).code == "memory.invalid"


async def test_what_is_not_seen_here_cannot_be_forgotten(host: Any, other_project: Path) -> None:
    added = await host.add("A thing of this project.")
    stranger = host.at(other_project)
    assert (await refused(stranger, ids=[added.memory_id])).code == "memory.not_found"
    assert (await refused(stranger, query="thing of this project")).code == "memory.not_found"


async def test_a_forgotten_memory_can_be_brought_back(user: Any) -> None:
    added = await user.add("The old wiki moved.")
    digest = (await forget(user, ids=[added.memory_id])).digest
    done = await forget(user, ids=[added.memory_id], confirm=digest)
    await user.write({"op": "revert", "decision_id": done.decisions[0].decision_id})
    assert await user.found("wiki") == [added.memory_id]
