"""One function, one transaction: whole or not at all, answered after the commit."""

import asyncio
import sqlite3

import pytest

from agentstead.state import Conflict, Invalid, NotFound, Reading, State, Tx, check_version

pytestmark = pytest.mark.anyio


def append(tx: Tx, text: str) -> int:
    return tx.journal("state.test.appended", subject="x", body={"text": text})


def append_and_fail(tx: Tx, text: str) -> None:
    append(tx, text)
    raise Invalid("tool.invalid_arguments", f"{text} is refused.")


def texts(reading: Reading) -> list[str]:
    return [str(entry.body["text"]) for entry in reading.entries(0) if entry.body]


async def test_a_write_is_seen_by_the_next_read(state: State) -> None:
    seq = await state.write(append, "one")
    assert seq == 1
    assert await state.read(texts) == ["one"]


async def test_a_function_that_raises_changes_nothing_and_fails_alone(state: State) -> None:
    results = await asyncio.gather(
        state.write(append, "a"),
        state.write(append_and_fail, "b"),
        state.write(append, "c"),
        return_exceptions=True,
    )
    assert results[0] == 1
    assert isinstance(results[1], Invalid)
    assert results[2] == 2
    assert await state.read(texts) == ["a", "c"]
    assert (await state.verify()).holds


async def test_a_rehearsal_gives_its_result_and_lasts_not(state: State) -> None:
    assert await state.rehearse(append, "x") == 1
    assert await state.read(texts) == []
    assert await state.write(append, "y") == 1


async def test_a_rehearsal_that_raises_hands_the_error_on(state: State) -> None:
    with pytest.raises(Invalid, match="refused"):
        await state.rehearse(append_and_fail, "x")


async def test_a_reader_cannot_write(state: State) -> None:
    def write(reading: Reading) -> None:
        reading.all("DELETE FROM outbox")

    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await state.read(write)


async def test_a_cancelled_wait_does_not_undo_the_change(state: State) -> None:
    task = asyncio.create_task(state.write(append, "kept"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await state.write(append, "next")
    assert "kept" in await state.read(texts)


async def test_many_callers_share_groups_and_each_gets_its_own_answer(state: State) -> None:
    seqs = await asyncio.gather(*(state.write(append, str(number)) for number in range(600)))
    assert sorted(seqs) == list(range(1, 601))
    told = await state.read(lambda reading: {entry.seq: entry.body for entry in reading.entries(0, most=1000)})
    assert all(told[seq] == {"text": str(number)} for number, seq in enumerate(seqs))


async def test_after_commit_runs_only_for_what_is_on_disk(state: State) -> None:
    rung: list[str] = []

    def ring(tx: Tx, name: str, fails: bool) -> None:
        tx.after_commit(lambda: rung.append(name))
        if fails:
            raise ValueError(name)

    await state.write(ring, "yes", fails=False)
    with pytest.raises(ValueError, match="no"):
        await state.write(ring, "no", fails=True)
    assert rung == ["yes"]


async def test_maintenance_runs_outside_any_transaction(state: State) -> None:
    def vacuum(connection: sqlite3.Connection) -> bool:
        connection.execute("VACUUM")
        return connection.in_transaction

    results = await asyncio.gather(state.write(append, "a"), state.maintain(vacuum), state.write(append, "b"))
    assert results[1] is False
    assert await state.read(texts) == ["a", "b"]


async def test_maintenance_hands_its_error_on(state: State) -> None:
    def fail(_connection: sqlite3.Connection) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await state.maintain(fail)
    assert await state.write(append, "still works") == 1


async def test_a_closed_library_refuses_instead_of_hanging(state: State) -> None:
    from agentstead.state import Unavailable

    await state.write(append, "a")
    state._writer.close()
    with pytest.raises(Unavailable, match="closed"):
        await state.write(append, "b")


def test_a_missed_version_names_the_present_one() -> None:
    check_version(3, None, noun="task", ref="tsk_1")
    check_version(3, 3, noun="task", ref="tsk_1")
    with pytest.raises(Conflict) as caught:
        check_version(3, 2, noun="task", ref="tsk_1")
    assert caught.value.code == "version.conflict"
    assert caught.value.details == {"version": 3}
    assert "expected_version=3" in caught.value.remedy


def test_an_error_says_code_fact_and_remedy_in_one_line() -> None:
    error = NotFound("task.not_found", "No task 'x' is known.", remedy="List them.")
    assert str(error) == "task.not_found: No task 'x' is known. List them."
    assert error.as_dict() == {
        "code": "task.not_found",
        "message": "No task 'x' is known.",
        "remedy": "List them.",
        "retryable": False,
        "details": {},
    }
