"""Waits end when somebody writes, in this process or another."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from agentstead.state import State, Tx

pytestmark = pytest.mark.anyio

OTHER_PROCESS = """
import asyncio, sys
from pathlib import Path
from agentstead.state import State

async def main():
    state = await State.open(Path(sys.argv[1]))
    await state.write(lambda tx: tx.journal("other.thing.done", subject="x", body={}))
    await state.close()

asyncio.run(main())
"""


def note(tx: Tx, kind: str) -> int:
    return tx.journal(kind, subject="x", body={})


async def test_a_wait_finds_what_is_there_already(state: State) -> None:
    await state.write(note, "a.b.made")
    assert [entry.seq for entry in await state.wait(0, timeout_s=0)] == [1]


async def test_a_wait_ends_empty_when_nothing_comes(state: State) -> None:
    await state.write(note, "a.b.made")
    assert await state.wait(1, timeout_s=0.05) == []


async def test_a_wait_is_woken_by_its_own_process(state: State) -> None:
    waiting = asyncio.create_task(state.wait(0, kinds=("a.*",), timeout_s=20))
    await asyncio.sleep(0)
    await state.write(note, "b.b.made")
    await state.write(note, "a.b.made")
    assert [entry.kind for entry in await waiting] == ["a.b.made"]


async def test_many_waits_are_woken_by_one_write(state: State) -> None:
    waiting = [asyncio.create_task(state.wait(0, timeout_s=20)) for _ in range(20)]
    await asyncio.sleep(0)
    await state.write(note, "a.b.made")
    assert all(len(found) == 1 for found in await asyncio.gather(*waiting))


async def test_a_wait_is_woken_by_another_process(state: State, tmp_path: Path) -> None:
    waiting = asyncio.create_task(state.wait(0, kinds=("other.*",), timeout_s=30))
    await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / "home")], check=True, timeout=30
    )
    assert [entry.kind for entry in await waiting] == ["other.thing.done"]


async def test_a_cancelled_wait_leaves_no_bell_behind(state: State) -> None:
    waiting = asyncio.create_task(state.wait(0, timeout_s=20))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not state._feed._signals
