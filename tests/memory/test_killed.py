"""SIGKILL between and inside commits, and several processes at once: nothing acknowledged is lost or half done."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentstead.memory.verifying import verify
from agentstead.state import Migrations, Reading, State

pytestmark = pytest.mark.anyio

MIGRATIONS = Migrations(package="memory", anchor="agentstead.memory")

# Writes, revises, supersedes and forgets; prints each acknowledged decision as one line.
WRITER = """
import asyncio, json, os, sys
from pathlib import Path
from agentstead.memory.changes import Change, read_changes
from agentstead.memory.controller import Writer
from agentstead.memory.scopes import Reach
from agentstead.memory.writing import Request, submit
from agentstead.state import Migrations, State

async def main(home, name, rounds):
    sets = [Migrations(package="memory", anchor="agentstead.memory")]
    state = await State.open(Path(home), sets=sets, durability="normal")
    who = Writer(Reach("user", "user"))

    async def write(**fields):
        request = Request(read_changes([Change(**fields)]))
        outcome = await state.write(submit, state.refs, request, who)
        row = outcome.decisions[0]
        os.write(1, (json.dumps([row.op, row.verdict, row.memory_id]) + "\\n").encode())
        return row.memory_id

    for number in range(rounds):
        text = f"Process {name} noted item {number} of its own."
        first = await write(op="add", type="fact", text=text, scope="home", key=f"{name}/{number}")
        await write(op="revise", memory_id=first, text=text + " Again.")
        second = await write(op="add", type="fact", text=text + " Otherwise.", scope="home", key=f"{name}/{number}")
        await write(op="archive", memory_id=second)
    await state.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def start(home: Path, name: str, rounds: int, crash: str = "") -> subprocess.Popen[bytes]:
    environ = os.environ | {"AGENTSTEAD_CRASH": crash, "AGENTSTEAD_GROUP_LIMIT": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home), name, str(rounds)], env=environ, stdout=subprocess.PIPE
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, list[list[str]]]:
    out, _ = process.communicate(timeout=120)
    return process.returncode, [json.loads(line) for line in out.splitlines()]


def prepare(home: Path) -> None:
    assert finish(start(home, "first", 0)) == (0, [])


async def look(home: Path) -> dict[str, tuple[str, int]]:
    """Open the home again; return state and number of events of each memory, after holding all records together."""
    state = await State.open(home, sets=[MIGRATIONS])
    try:
        assert (await state.verify()).holds
        assert await verify(state) == []
        return await state.read(_memories)
    finally:
        await state.close()


def _memories(reading: Reading) -> dict[str, tuple[str, int]]:
    return {row["id"]: (row["state"], row["version"]) for row in reading.all("SELECT id, state, version FROM memories")}


def least_events(acknowledged: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return how many events each memory must have at least."""
    counts: dict[str, int] = {}
    for _, _, memory_id in acknowledged:
        counts[memory_id] = counts.get(memory_id, 0) + 1
    return counts


@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
@pytest.mark.parametrize("passage", [1, 3, 6])
async def test_a_kill_at_any_write_leaves_log_and_rows_in_step(tmp_path: Path, point: str, passage: int) -> None:
    await asyncio.to_thread(prepare, tmp_path)
    code, acknowledged = await asyncio.to_thread(finish, start(tmp_path, "a", 4, f"{point}:{passage}"))
    assert code == -signal.SIGKILL
    kept = await look(tmp_path)
    for memory_id, events in least_events(acknowledged).items():
        assert kept[memory_id][1] >= events
    code, acknowledged = await asyncio.to_thread(finish, start(tmp_path, "b", 2))
    assert (code, len(acknowledged)) == (0, 8)
    assert len(await look(tmp_path)) >= 4


async def test_four_processes_at_once_lose_no_write(tmp_path: Path) -> None:
    await asyncio.to_thread(prepare, tmp_path)
    rounds = 15
    running = [start(tmp_path, name, rounds) for name in "abcd"]
    done = await asyncio.gather(*(asyncio.to_thread(finish, process) for process in running))
    assert [code for code, _ in done] == [0, 0, 0, 0]
    kept = await look(tmp_path)
    assert len(kept) == 4 * rounds * 2
    states = [state for state, _ in kept.values()]
    assert (states.count("superseded"), states.count("archived")) == (4 * rounds, 4 * rounds)
    for _, acknowledged in done:
        for memory_id, events in least_events(acknowledged).items():
            assert kept[memory_id][1] >= events
