"""Tasks and runs: saved whole, claimed once, finished only by the lease, recovered when a worker is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.kit import Home
from agentstead.sessions import runs, service
from agentstead.state import AgentsteadError, Conflict, LeaseLost, NotFound, SimulatedClock

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]


@pytest.fixture
async def session(home: Home, invoke: Invoke, project: Path) -> str:
    return str((await invoke(home, service.session_open, cwd=project, name="worker")).session_id)


@pytest.fixture
def save(home: Home, invoke: Invoke, project: Path) -> Invoke:
    async def run(*tasks: dict[str, Any], **options: Any) -> Any:
        return await invoke(home, service.task_save, cwd=project, tasks=list(tasks), **options)

    return run


@pytest.fixture
def claim(home: Home, invoke: Invoke, session: str) -> Invoke:
    async def run(**options: Any) -> Any:
        return await invoke(home, service.task_claim, **{"session_id": session, **options})

    return run


@pytest.fixture
def report(home: Home, invoke: Invoke) -> Invoke:
    async def run(lease: str, state: str, **options: Any) -> Any:
        return await invoke(home, service.task_report, lease=lease, state=state, **options)

    return run


def statuses(saved: Any) -> dict[str, str]:
    return {each.key: each.status for each in saved.tasks}


async def test_a_chain_of_tasks_is_worked_off_in_order(save: Invoke, claim: Invoke, report: Invoke) -> None:
    saved = await save(
        {"key": "ship", "title": "Ship", "after": ["test"]},
        {"key": "test", "title": "Test", "after": ["build"]},
        {"key": "build", "title": "Build"},
    )
    assert statuses(saved) == {"ship": "blocked", "test": "blocked", "build": "ready"}
    titles = []
    for _ in range(3):
        packet = await claim()
        titles.append(packet.packet["title"])
        done = await report(packet.lease, "completed", summary=f"{titles[-1]} done", result={"of": titles[-1]})
        assert done.run_state == "completed"
        assert done.proof == "none"
    assert titles == ["Build", "Test", "Ship"]
    assert packet.packet["inputs"][0]["result"] == '{"of":"Test"}'
    assert (await claim()).why


async def test_a_batch_is_saved_whole_or_not_at_all(home: Home, invoke: Invoke, save: Invoke) -> None:
    with pytest.raises(AgentsteadError) as caught:
        await save({"key": "a", "title": "A"}, {"key": "b", "title": "B", "after": ["nobody"]})
    assert caught.value.code == "task.not_found"
    with pytest.raises(Conflict) as caught:
        await save({"key": "a", "title": "A", "after": ["b"]}, {"key": "b", "title": "B", "after": ["a"]})
    assert caught.value.code == "task.cycle"
    assert (await invoke(home, service.task_find)).items == []


async def test_a_circle_over_saved_tasks_is_refused(save: Invoke) -> None:
    saved = await save({"key": "a", "title": "A"}, {"key": "b", "title": "B", "after": ["a"]})
    a, b = (each.task_id for each in saved.tasks)
    with pytest.raises(Conflict) as caught:
        await save({"id": a, "title": "A", "after": [b]})
    assert caught.value.code == "task.cycle"
    with pytest.raises(Conflict):
        await save({"id": a, "title": "A", "after": [a]})


async def test_a_dry_run_checks_and_changes_nothing(home: Home, invoke: Invoke, save: Invoke) -> None:
    saved = await save({"key": "a", "title": "A"}, dry_run=True)
    assert statuses(saved) == {"a": "ready"}
    assert saved.dry_run
    assert (await invoke(home, service.task_find)).items == []


async def test_an_edit_needs_the_present_version(save: Invoke) -> None:
    task = (await save({"title": "A"})).tasks[0]
    edited = (await save({"id": task.task_id, "title": "B", "expected_version": task.version})).tasks[0]
    assert edited.title == "B"
    assert edited.version == task.version + 1
    with pytest.raises(Conflict) as caught:
        await save({"id": task.task_id, "title": "C", "expected_version": task.version})
    assert caught.value.code == "version.conflict"


async def test_a_session_holds_one_lease_and_another_gets_other_work(
    home: Home, invoke: Invoke, project: Path, save: Invoke, claim: Invoke
) -> None:
    await save({"title": "A"}, {"title": "B"})
    one = await claim()
    with pytest.raises(Conflict) as caught:
        await claim()
    assert caught.value.code == "run.lease_held"
    other = await invoke(home, service.session_open, cwd=project, name="other")
    two = await claim(session_id=other.session_id)
    assert {one.packet["title"], two.packet["title"]} == {"A", "B"}
    assert one.lease != two.lease


async def test_priority_then_age_decides_and_capabilities_filter(
    save: Invoke, claim: Invoke, report: Invoke, clock: SimulatedClock
) -> None:
    await save({"title": "old", "priority": "low"})
    clock.advance(seconds=1)
    await save(
        {"title": "urgent gpu", "priority": "urgent", "capabilities": ["gpu"]}, {"title": "high", "priority": "high"}
    )
    order = []
    for capabilities in ([], ["gpu"], []):
        packet = await claim(capabilities=capabilities)
        order.append(packet.packet["title"])
        await report(packet.lease, "completed")
    assert order == ["high", "urgent gpu", "old"]


async def test_a_lease_is_renewed_by_progress_and_dies_with_time(
    save: Invoke, claim: Invoke, report: Invoke, clock: SimulatedClock
) -> None:
    await save({"title": "A"})
    packet = await claim(lease_seconds=60)
    clock.advance(seconds=50)
    renewed = await report(packet.lease, "progress", summary="half")
    assert renewed.lease_until == packet.lease_until + 50_000_000
    clock.advance(seconds=61)
    again = await claim()
    assert again.attempt == 2
    assert again.packet["earlier_attempts"][0]["state"] == "lost"
    with pytest.raises(LeaseLost) as caught:
        await report(packet.lease, "completed")
    assert caught.value.code == "run.lease_lost"
    assert (await report(again.lease, "completed")).run_state == "completed"


async def test_a_task_that_was_lost_too_often_asks_for_a_person(
    home: Home, invoke: Invoke, project: Path, save: Invoke, claim: Invoke, clock: SimulatedClock
) -> None:
    task = (await save({"title": "A", "max_attempts": 2})).tasks[0].task_id
    for _ in range(2):
        assert (await claim(lease_seconds=30)).lease
        clock.advance(seconds=31)
    assert (await claim()).packet is None
    found = (await invoke(home, service.task_get, task_id=task)).task
    assert (found.status, found.attention) == ("needs_attention", "attempts_exhausted")
    waiting = (await invoke(home, service.desk_view, cwd=project)).items
    assert {"task_id": task, "title": "A", "attention": "attempts_exhausted"} in waiting


async def test_an_effect_that_may_have_happened_is_never_tried_again(
    home: Home, invoke: Invoke, save: Invoke, claim: Invoke, report: Invoke, clock: SimulatedClock
) -> None:
    task = (await save({"title": "Pay", "effects": "external"})).tasks[0].task_id
    packet = await claim(lease_seconds=30)
    effect = {"key": "invoice-7", "class": "irreversible", "state": "intent"}
    await report(packet.lease, "effect", effect=effect)
    clock.advance(seconds=31)
    assert (await claim()).packet is None
    assert (await invoke(home, service.task_get, task_id=task)).task.attention == "effect_unknown"


async def test_a_done_effect_is_handed_to_the_next_attempt_and_not_declared_twice(
    save: Invoke, claim: Invoke, report: Invoke, clock: SimulatedClock
) -> None:
    await save({"title": "Pay", "effects": "external"})
    packet = await claim(lease_seconds=30)
    for state in ("intent", "done"):
        await report(packet.lease, "effect", effect={"key": "i", "class": "irreversible", "state": state})
    clock.advance(seconds=31)
    again = await claim()
    assert [(each["key"], each["state"]) for each in again.packet["declared_effects"]] == [("i", "done")]
    with pytest.raises(Conflict):
        await report(again.lease, "effect", effect={"key": "i", "class": "irreversible", "state": "intent"})


async def test_a_released_run_is_taken_again_without_using_up_an_attempt(
    save: Invoke, claim: Invoke, report: Invoke
) -> None:
    await save({"title": "A"})
    packet = await claim()
    assert (await report(packet.lease, "released", summary="not now")).run_state == "queued"
    again = await claim()
    assert again.run_id == packet.run_id
    assert again.attempt == 1
    with pytest.raises(LeaseLost):
        await report(packet.lease, "completed")


async def test_a_blocked_task_waits_until_somebody_unblocks_it(
    home: Home, invoke: Invoke, save: Invoke, claim: Invoke, report: Invoke
) -> None:
    task = (await save({"title": "A"})).tasks[0].task_id
    packet = await claim()
    await report(packet.lease, "blocked", block={"kind": "needs_input", "reason": "which colour?"})
    assert (await claim()).packet is None
    found = (await invoke(home, service.task_get, task_id=task)).task
    assert (found.status, list(found.blocked_reasons)) == ("blocked", ["block"])
    await invoke(home, service.task_unblock, task_id=task)
    assert (await claim()).packet["title"] == "A"


async def test_a_failed_task_is_tried_again_until_its_attempts_are_used(
    home: Home, invoke: Invoke, save: Invoke, claim: Invoke, report: Invoke
) -> None:
    task = (await save({"title": "A", "max_attempts": 2})).tasks[0].task_id
    for attempt in (1, 2):
        packet = await claim()
        assert packet.attempt == attempt
        await report(packet.lease, "failed", summary="no", failure="test")
    assert (await claim()).packet is None
    assert (await invoke(home, service.task_get, task_id=task)).task.status == "failed"


async def test_cancelling_takes_the_lease_away_at_once(
    home: Home, invoke: Invoke, save: Invoke, claim: Invoke, report: Invoke
) -> None:
    task = (await save({"title": "A"})).tasks[0].task_id
    packet = await claim()
    canceled = await invoke(home, service.task_cancel, task_id=task, reason="changed our mind")
    assert canceled.task.status == "canceled"
    assert canceled.runs[0]["state"] == "canceled"
    with pytest.raises(LeaseLost):
        await report(packet.lease, "completed")


async def test_phantom_tasks_keep_the_run_with_its_worker(save: Invoke, claim: Invoke, report: Invoke) -> None:
    await save({"title": "A"})
    packet = await claim()
    with pytest.raises(Conflict) as caught:
        await report(packet.lease, "completed", created_task_ids=["tsk_none"])
    assert caught.value.code == "task.phantom_ids"
    made = (await save({"title": "B"})).tasks[0].task_id
    assert (await report(packet.lease, "completed", created_task_ids=[made])).run_state == "completed"


async def test_a_repeated_claim_gets_the_same_run_and_the_earlier_lease_dies(
    save: Invoke, claim: Invoke, report: Invoke
) -> None:
    await save({"title": "A"})
    one = await claim(idempotency_key="k")
    two = await claim(idempotency_key="k")
    assert one.run_id == two.run_id
    assert one.lease != two.lease
    with pytest.raises(LeaseLost):
        await report(one.lease, "completed")
    assert (await report(two.lease, "completed")).run_state == "completed"


async def test_leases_are_stored_as_hashes_only(home: Home, save: Invoke, claim: Invoke) -> None:
    await save({"title": "A"})
    packet = await claim(idempotency_key="k")
    await home.state.maintain(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    assert packet.lease.rpartition(".")[2].encode() not in home.state.path.read_bytes()


async def test_waiting_for_work_ends_when_some_is_saved(save: Invoke, claim: Invoke) -> None:
    waiting = asyncio.ensure_future(claim(wait_s=20))
    await asyncio.sleep(0.05)
    await save({"title": "A"})
    assert (await waiting).packet["title"] == "A"


async def test_fifty_claims_at_once_take_each_run_once(home: Home, invoke: Invoke, project: Path, save: Invoke) -> None:
    await save(*({"title": str(number)} for number in range(20)))
    sessions = [(await invoke(home, service.session_open, cwd=project)).session_id for _ in range(50)]
    packets = await asyncio.gather(*(invoke(home, service.task_claim, session_id=each) for each in sessions))
    taken = [packet.run_id for packet in packets if packet.run_id]
    assert len(taken) == 20
    assert len(set(taken)) == 20


async def test_children_hold_their_parent_back(save: Invoke, claim: Invoke, report: Invoke) -> None:
    saved = await save({"key": "p", "title": "Parent"}, {"key": "c", "title": "Child", "parent": "p"})
    assert statuses(saved) == {"p": "blocked", "c": "ready"}
    packet = await claim()
    assert packet.packet["title"] == "Child"
    await report(packet.lease, "completed")
    assert (await claim()).packet["title"] == "Parent"


async def test_unknown_tasks_are_refused_with_the_way_to_find_them(home: Home, invoke: Invoke) -> None:
    with pytest.raises(NotFound) as caught:
        await invoke(home, service.task_get, task_id="tsk_none")
    assert "desk_view" in caught.value.remedy


async def test_leases_that_ran_out_while_nobody_watched_are_lost_at_start(
    home: Home, save: Invoke, claim: Invoke, clock: SimulatedClock
) -> None:
    await save({"title": "A"})
    packet = await claim(lease_seconds=30)
    clock.advance(seconds=31)
    await service.sweep(home)
    assert (await home.state.read(runs.get, packet.run_id)).state == "lost"


def reference(edges: set[tuple[int, int]], done: set[int], task: int) -> str:
    if task in done:
        return "completed"
    return "ready" if all(blocker in done for blocker, blocked in edges if blocked == task) else "blocked"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edges=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda edge: edge[0] < edge[1]), max_size=9)
)
def test_statuses_follow_a_simple_reference_while_a_graph_is_worked_off(
    edges: set[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory, invoke: Invoke
) -> None:
    async def run() -> None:
        root = tmp_path_factory.mktemp("graph")
        (root / "project" / ".git").mkdir(parents=True)
        home = await Home.open(root / "home", clock=SimulatedClock())
        cwd = root / "project"
        session = (await invoke(home, service.session_open, cwd=cwd)).session_id
        graph = [
            {"key": str(task), "title": str(task), "after": [str(a) for a, b in sorted(edges) if b == task]}
            for task in range(6)
        ]
        saved = await invoke(home, service.task_save, cwd=cwd, tasks=graph)
        ids = {each.key: each.task_id for each in saved.tasks}
        done: set[int] = set()
        while len(done) < 6:
            for task in range(6):
                found = await invoke(home, service.task_get, task_id=ids[str(task)])
                assert found.task.status == reference(edges, done, task)
            packet = await invoke(home, service.task_claim, session_id=session)
            await invoke(home, service.task_report, lease=packet.lease, state="completed")
            done.add(int(packet.packet["title"]))
        await home.close()

    asyncio.run(run())
