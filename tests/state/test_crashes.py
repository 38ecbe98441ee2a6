"""SIGKILL at every point of a commit: what was acknowledged is there, and the chain holds."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentstead.state import CRASH_POINTS, Reading, State
from agentstead.state.crash import CrashPoints

pytestmark = pytest.mark.anyio

# Prints a number once its write is acknowledged. One caller, or sixteen that share full commit groups.
WRITER = """
import asyncio, os, sys
from pathlib import Path
from agentstead.state import State

async def main(home, callers):
    state = await State.open(Path(home))

    async def one(caller):
        for number in range(6):
            seq = await state.write(lambda tx: tx.journal("t.entry.made", subject="x", body={}))
            os.write(1, f"{seq}\\n".encode())

    await asyncio.gather(*(one(caller) for caller in range(callers)))
    await state.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def run(home: Path, crash: str, *, callers: int, group: int) -> tuple[int, list[int]]:
    environ = os.environ | {"AGENTSTEAD_CRASH": crash, "AGENTSTEAD_GROUP_LIMIT": str(group)}
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(home), str(callers)], env=environ, stdout=subprocess.PIPE, timeout=60
    )
    return done.returncode, [int(line) for line in done.stdout.split()]


async def entries(home: Path) -> list[int]:
    state = await State.open(home)
    held = (await state.verify()).holds
    found = await state.read(Reading.entries, 0, most=5000)
    await state.close()
    assert held
    return [entry.seq for entry in found]


@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
@pytest.mark.parametrize("passage", [2, 4, 7])
async def test_a_kill_between_single_commits_loses_nothing_acknowledged(
    tmp_path: Path, point: str, passage: int
) -> None:
    code, acknowledged = await asyncio.to_thread(run, tmp_path, f"{point}:{passage}", callers=1, group=1)
    assert code == -signal.SIGKILL
    kept = await entries(tmp_path)
    assert set(acknowledged) <= set(kept)
    # The first commit makes the cursor key of the new home.
    assert len(kept) == passage - 1 - (point == "commit.before")


@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
async def test_a_kill_of_a_full_group_keeps_or_drops_it_whole(tmp_path: Path, point: str) -> None:
    code, acknowledged = await asyncio.to_thread(run, tmp_path, f"{point}:3", callers=16, group=256)
    assert code == -signal.SIGKILL
    kept = await entries(tmp_path)
    assert set(acknowledged) <= set(kept)
    assert kept == list(range(1, len(kept) + 1))
    again, acknowledged = await asyncio.to_thread(run, tmp_path, "", callers=2, group=256)
    assert again == 0
    assert len(acknowledged) == 12
    assert set(acknowledged) <= set(await entries(tmp_path))


def test_the_registry_names_both_sides_of_every_effect() -> None:
    points = CrashPoints()
    assert points.declare("a.effect") == ("a.effect.before", "a.effect.after")
    points.declare("b.effect")
    assert points.names() == ["a.effect.after", "a.effect.before", "b.effect.after", "b.effect.before"]
    assert {"commit.before", "commit.after", "outbox.delivery.before"} <= set(CRASH_POINTS.names())


def test_a_point_that_nobody_declared_is_an_error() -> None:
    with pytest.raises(KeyError, match="not declared"):
        CrashPoints("a.effect.before").pass_by("a.effect.before")


def test_other_points_are_passed_unharmed() -> None:
    points = CrashPoints("a.effect.before:2")
    points.declare("a.effect")
    points.pass_by("a.effect.before")
    points.pass_by("a.effect.after")
