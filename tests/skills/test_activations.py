"""Activations as rows, against a model of what should be live, and under many callers at once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.kit import Home
from agentstead.skills import activations
from agentstead.skills.activations import (
    MOST_LIVE,
    Terms,
    begin,
    end,
    end_of_session,
    end_over,
    files_of,
    live_trees,
    sessions_in_use,
)
from agentstead.skills.lifetimes import is_open, require_open
from agentstead.skills.server import SERVER
from agentstead.skills.service import skill_activate
from agentstead.skills.store import HeldFile, HeldTree, held_tree
from agentstead.state import ORIGIN, Exhausted, HomeLock, NotFound, Origin, Reading, SimulatedClock, Tx

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
WriteSkill = Callable[..., Path]
HOUR_US = 3_600_000_000


def tree_of(text: str) -> HeldTree:
    return held_tree({"SKILL.md": HeldFile("SKILL.md", len(text), text * 64, False)})


TREES = {text: tree_of(text) for text in "abc"}


def started(tx: Tx, *, tree: str = "a", session_id: str = "", hours: int = 1) -> str:
    terms = Terms("user/-/tides", "user:tides", "", session_id, tx.now_us + hours * HOUR_US)
    return begin(tx, terms, TREES[tree]).activation.id


def counted(reading: Reading) -> dict[str, int]:
    rows = reading.all("SELECT state, COUNT(*) AS n FROM activations GROUP BY state")
    return {row["state"]: row["n"] for row in rows}


ACT = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from("abc"), st.sampled_from(["", "ses_1", "ses_2"])),
    st.tuples(st.just("end"), st.integers(0, 5), st.just("")),
    st.tuples(st.just("close"), st.sampled_from(["ses_1", "ses_2"]), st.just("")),
    st.tuples(st.just("wait"), st.integers(0, 2), st.just("")),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(ACT, max_size=14))
async def test_what_is_live_is_what_a_model_says(home: Home, clock: SimulatedClock, acts: list[Any]) -> None:
    await home.state.write(clear)
    live: dict[tuple[str, str], tuple[str, int]] = {}
    ids: list[str] = []
    for act, one, two in acts:
        if act == "begin":
            await home.state.write(end_over)
            live = {key: held for key, held in live.items() if held[1] > clock.now_us()}
            activation_id = await home.state.write(started, tree=one, session_id=two)
            assert (live.get((one, two), ("", 0))[0] in ("", activation_id)) is True
            live.setdefault((one, two), (activation_id, clock.now_us() + HOUR_US))
            ids.append(activation_id)
        elif act == "end" and one < len(ids):
            await home.state.write(end, ids[one], "deactivated")
            live = {key: held for key, held in live.items() if held[0] != ids[one]}
        elif act == "close":
            await home.state.write(end_of_session, one)
            live = {key: held for key, held in live.items() if key[1] != one}
        elif act == "wait":
            clock.advance(seconds=one * 1800)
    await home.state.write(end_over)
    live = {key: held for key, held in live.items() if held[1] > clock.now_us()}
    assert (await home.state.read(counted)).get("active", 0) == len(live)
    assert sorted(await home.state.read(sessions_in_use)) == sorted({key[1] for key in live if key[1]})
    for text, tree in TREES.items():
        held = await home.state.read(files_of, tree.tree_id)
        assert held == (tree.files if any(key[0] == text for key in live) else ())
    assert (await home.state.verify()).holds


def clear(tx: Tx) -> None:
    tx.execute("DELETE FROM activations")
    tx.execute("DELETE FROM tree_files")


async def test_an_end_that_came_first_stays(home: Home) -> None:
    activation_id = await home.state.write(started)
    first = await home.state.write(end, activation_id, "content_changed")
    second = await home.state.write(end, activation_id, "deactivated")
    assert first == second
    entries = await home.state.read(lambda r: r.entries(0, kinds=("skills.activation.ended",)))
    assert len(entries) == 1


async def test_the_limit_counts_each_session_and_each_caller_by_itself(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_LIVE == 64
    monkeypatch.setattr(activations, "MOST_LIVE", 2)
    for session_id in ("", "ses_1"):
        for tree in "ab":
            await home.state.write(started, tree=tree, session_id=session_id)
        with pytest.raises(Exhausted):
            await home.state.write(started, tree="c", session_id=session_id)
    assert (await home.state.read(counted)) == {"active": 4}


async def test_the_time_that_is_over_makes_room(
    home: Home, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activations, "MOST_LIVE", 1)
    await home.state.write(started)
    clock.advance(seconds=3600)
    await home.state.write(started, tree="b")
    assert (await home.state.read(counted)) == {"active": 1, "ended": 1}


async def test_what_is_live_is_seen_by_its_caller_and_in_its_session(home: Home) -> None:
    token = ORIGIN.set(Origin("host:editor"))
    try:
        await home.state.write(started)
        await home.state.write(started, tree="b", session_id="ses_1")
    finally:
        ORIGIN.reset(token)
    mine = {("user/-/tides", TREES["a"].tree_id), ("user/-/tides", TREES["b"].tree_id)}
    assert await home.state.read(live_trees, "host:editor") == mine
    assert await home.state.read(live_trees, "host:other") == frozenset()
    other = await home.state.read(live_trees, "host:other", session_id="ses_1")
    assert other == {("user/-/tides", TREES["b"].tree_id)}


async def test_where_nobody_owns_sessions_only_time_ends_them(tmp_path: Path, clock: SimulatedClock) -> None:
    path = tmp_path / "alone"
    path.mkdir(mode=0o700)
    lock = HomeLock(path)
    assert lock.acquire()
    alone = await Home.open(path, lock=lock, clock=clock, servers=[SERVER])
    try:
        assert await alone.state.read(is_open, alone.state.refs, "ses_1")
        await alone.state.read(require_open, alone.state.refs, "ses_1")
    finally:
        await alone.close()
        lock.release()


async def test_a_session_that_nobody_knows_is_not_open(home: Home) -> None:
    assert not await home.state.read(is_open, home.state.refs, "ses_1")
    with pytest.raises(NotFound):
        await home.state.read(require_open, home.state.refs, "ses_1")


async def test_many_callers_at_once_share_one_activation_of_a_session(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    calls = [invoke(home, skill_activate, principal="host:editor", name="tides") for _ in range(20)]
    found = await asyncio.gather(*calls)
    assert len({each.activation_id for each in found}) == 1
    assert sorted(each.already_active for each in found) == [False] + [True] * 19
