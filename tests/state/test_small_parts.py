"""Ids, cursors, keys, leases, references, clocks: each keeps its promise."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.state import (
    AgentsteadError,
    Conflict,
    Invalid,
    KeyUse,
    LeaseLost,
    NotFound,
    Reading,
    RefFacts,
    SimulatedClock,
    State,
    SystemClock,
    Tx,
    canonical_json,
    is_id,
    lease_mint,
    lease_parse,
    new_id,
    once,
)
from agentstead.state.cursors import Cursors

KEY = b"k" * 32


def test_ids_sort_by_time_and_carry_their_prefix() -> None:
    clock = SimulatedClock()
    first = new_id("ses_", clock)
    clock.advance(seconds=1)
    second = new_id("ses_", clock)
    assert first < second
    assert is_id(first, "ses_")
    assert not is_id(first, "tsk_")
    assert not is_id(first + "0", "ses_")
    same = [new_id("ses_", clock) for _ in range(200)]
    assert same == sorted(same)
    assert len(set(same)) == 200


def test_clocks_tell_both_times() -> None:
    clock = SimulatedClock(1_000_000)
    clock.advance(seconds=2.5)
    assert clock.now_us() == 3_500_000
    assert clock.monotonic() == 2.5
    system = SystemClock()
    assert system.now_us() > 1_700_000_000_000_000
    assert system.monotonic() <= system.monotonic()


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=9)))
def test_a_cursor_opens_under_its_own_filters_only(basis: dict[str, object]) -> None:
    cursors = Cursors(KEY)
    cursor = cursors.seal(basis, {"list": "a"})
    assert cursors.open(cursor, {"list": "a"}) == basis
    with pytest.raises(Invalid) as foreign:
        cursors.open(cursor, {"list": "b"})
    assert foreign.value.code == "cursor.foreign"
    with pytest.raises(Invalid) as other_home:
        Cursors(b"o" * 32).open(cursor, {"list": "a"})
    assert other_home.value.code == "cursor.invalid"


@given(st.text())
def test_any_text_is_refused_as_a_cursor_without_a_fault(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        Cursors(KEY).open(text, {})
    assert caught.value.code == "cursor.invalid"


def test_one_changed_character_spoils_a_cursor() -> None:
    cursor = Cursors(KEY).seal({"id": "tsk_1"}, {})
    for index, char in enumerate(cursor):
        spoiled = cursor[:index] + ("A" if char != "A" else "B") + cursor[index + 1 :]
        with pytest.raises(AgentsteadError):
            Cursors(KEY).open(spoiled, {})


@given(st.text())
def test_any_text_is_refused_as_a_lease_without_a_fault(text: str) -> None:
    with pytest.raises(LeaseLost) as caught:
        lease_parse(text)
    assert caught.value.code == "run.lease_lost"


def test_a_lease_matches_its_own_hash_and_fence_only() -> None:
    text, hashed = lease_mint("run_1", 7)
    lease = lease_parse(text)
    assert (lease.subject, lease.fence) == ("run_1", 7)
    assert lease.matches(hashed, 7)
    assert not lease.matches(hashed, 8)
    assert not lease.matches(None, 7)
    assert not lease_parse(lease_mint("run_1", 7)[0]).matches(hashed, 7)
    assert hashed not in text


def test_canonical_json_is_the_one_form() -> None:
    assert canonical_json({"b": 1, "a": [1.0, "é"]}) == '{"a":[1,"é"],"b":1}'.encode()


@pytest.mark.anyio
async def test_the_same_key_gives_the_same_result_and_other_arguments_are_refused(state: State) -> None:
    count = iter("1234")

    def work(tx: Tx, arguments: str, step: int = 0) -> tuple[str, bool]:
        return once(tx, KeyUse("user", "op", "k1", arguments, step), lambda: next(count))

    assert await state.write(work, "a") == ("1", False)
    assert await state.write(work, "a") == ("1", True)
    assert await state.write(work, "a", 1) == ("2", False)
    with pytest.raises(Conflict) as caught:
        await state.write(work, "b")
    assert caught.value.code == "key.conflict"


@pytest.mark.anyio
async def test_two_calls_with_one_key_in_one_group_run_once(state: State) -> None:
    count = iter("1234")

    def work(tx: Tx) -> tuple[str, bool]:
        return once(tx, KeyUse("user", "op", "k", "a"), lambda: next(count))

    results = await asyncio.gather(*(state.write(work) for _ in range(20)))
    assert {result for result, _ in results} == {"1"}
    assert sorted(replayed for _, replayed in results) == [False] + [True] * 19


@pytest.mark.anyio
async def test_a_key_whose_work_failed_may_be_used_again(state: State) -> None:
    def fail(tx: Tx) -> None:
        once(tx, KeyUse("user", "op", "k", "a"), lambda: (_ for _ in ()).throw(Invalid("a.b", "no")))

    with pytest.raises(Invalid):
        await state.write(fail)
    assert await state.write(lambda tx: once(tx, KeyUse("user", "op", "k", "a"), lambda: "yes")) == ("yes", False)


@pytest.mark.anyio
async def test_a_prefix_has_one_owner_and_an_unknown_one_is_said_so(state: State) -> None:
    def look(_reading: Reading, ref: str) -> RefFacts | None:
        return RefFacts(exists=True, state="open") if ref.endswith("1") else None

    state.refs.register("xyz_", look)
    state.refs.register("xyz_", look)
    with pytest.raises(ValueError, match="two owners"):
        state.refs.register("xyz_", lambda _reading, _ref: None)
    assert (await state.read(state_look(state), "xyz_1")).state == "open"
    assert not (await state.read(state_look(state), "xyz_2")).exists
    with pytest.raises(NotFound) as caught:
        await state.read(state_look(state), "qqq_1")
    assert caught.value.code == "ref.not_found"


def state_look(state: State):  # type: ignore[no-untyped-def]
    return lambda reading, ref: state.refs.look(reading, ref)


@pytest.mark.anyio
async def test_a_fact_of_a_home_is_decided_once(tmp_path: Path) -> None:
    for value in ("first", "second"):
        state = await State.open(tmp_path)
        assert await state.fact("colour", value.lower) == "first"
        key = state.cursors.seal({"a": 1}, {})
        await state.close()
    state = await State.open(tmp_path)
    assert state.cursors.open(key, {}) == {"a": 1}
    await state.close()
