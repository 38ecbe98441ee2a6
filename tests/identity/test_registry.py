"""The workspace machine and the rows: every pair of state and event, names, versions."""

import itertools
import sqlite3
from pathlib import Path

import pytest

from agentstead.identity import Workspace, registry
from agentstead.identity.folders import Folder
from agentstead.identity.machines import TOKEN_KINDS, WORKSPACE_STATES, WORKSPACE_TRANSITIONS, WorkspaceEvent
from agentstead.state import Conflict, Invalid, NotFound, Reading, State, Tx, new_id

pytestmark = pytest.mark.anyio

EVENTS: tuple[WorkspaceEvent, ...] = ("found", "lost", "forgotten")


async def _placed(state: State, root: str, *, name: str = "") -> Workspace:
    folder = Folder(Path(root), new_id("wsp_", state.clock), "")
    return await state.write(registry.place, folder, name=name)


@pytest.mark.parametrize(("start", "event"), list(itertools.product(WORKSPACE_STATES, EVENTS)))
async def test_each_state_takes_the_tabled_events_and_refuses_the_others(
    state: State, start: str, event: WorkspaceEvent
) -> None:
    workspace = await _placed(state, "/w/a")
    if start != "present":
        workspace = await state.write(registry.change, workspace, "lost" if start == "moved" else "forgotten")
    expected = WORKSPACE_TRANSITIONS.get((workspace.state, event))
    if expected is not None:
        assert (await state.write(registry.change, workspace, event)).state == expected
        return
    with pytest.raises(Conflict, match=r"workspace\.transition_refused") as caught:
        await state.write(registry.change, workspace, event)
    assert caught.value.details["legal"] == ["found"]
    assert await state.read(registry.by_id, workspace.id) == workspace


async def test_the_tables_checks_are_the_machines_closed_sets(state: State) -> None:
    for table, values in (("workspaces", WORKSPACE_STATES), ("tokens", TOKEN_KINDS)):
        sql = await state.read(Reading.value, "SELECT sql FROM sqlite_master WHERE name = :table", table=table)
        assert f"IN ({', '.join(repr(value) for value in values)})" in sql


async def test_direct_sql_to_an_unknown_state_is_refused(state: State) -> None:
    await _placed(state, "/w/a")

    def break_it(tx: Tx) -> None:
        tx.execute("UPDATE workspaces SET state = 'lost'")

    with pytest.raises(sqlite3.IntegrityError):
        await state.write(break_it)


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "wsp_1", "x" * 65, "é"])
async def test_a_name_that_is_none_is_refused(state: State, name: str) -> None:
    workspace = await _placed(state, "/w/a")
    with pytest.raises(Invalid, match="no workspace name"):
        await state.write(registry.rename, workspace, name)


async def test_a_taken_name_is_refused_and_nothing_changes(state: State) -> None:
    await _placed(state, "/w/a")
    second = await _placed(state, "/w/b")
    with pytest.raises(Conflict, match=r"workspace\.duplicate"):
        await state.write(registry.rename, second, "a")
    assert await state.read(registry.named, "b") == second


async def test_a_forgotten_name_is_free_and_the_forgotten_one_comes_back_under_another(state: State) -> None:
    first = await _placed(state, "/w/a")
    await state.write(registry.forget, "a")
    second = await _placed(state, "/v/a")
    assert second.name == "a"
    back = await state.write(registry.place, Folder(first.root, first.id, ""))
    assert (back.id, back.name, back.state) == (first.id, "a-2", "present")


async def test_forgetting_checks_the_version_and_the_name(state: State) -> None:
    workspace = await _placed(state, "/w/a")
    with pytest.raises(Conflict, match=r"version\.conflict"):
        await state.write(registry.forget, "a", expected_version=workspace.version + 1)
    with pytest.raises(NotFound, match=r"Known: a\."):
        await state.write(registry.forget, "b")
    assert (await state.write(registry.forget, "a", expected_version=1)).state == "gone"
    assert await state.read(registry.listed) == []


async def test_the_nearest_root_wins(state: State) -> None:
    outer, inner = await _placed(state, "/w"), await _placed(state, "/w/a/b")
    for path, expected in (("/w/a/b/c", inner), ("/w/a/b", inner), ("/w/a", outer), ("/w", outer), ("/", None)):
        assert await state.read(registry.enclosing, Path(path)) == expected


async def test_a_root_is_compared_by_component_and_never_by_prefix(state: State) -> None:
    await _placed(state, "/w/shop")
    assert await state.read(registry.enclosing, Path("/w/shopping")) is None


async def test_a_folder_name_without_usable_characters_still_gets_a_name(state: State) -> None:
    names = [(await _placed(state, root)).name for root in ("/w/日本", "/v/...", "/u/wsp_x", "/t/a b")]
    assert names == ["workspace", "workspace-2", "w-wsp_x", "a-b"]
