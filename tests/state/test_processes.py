"""Several processes on one home at the same time."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentstead.state import State

pytestmark = pytest.mark.anyio

# The whole test of the acceptance list takes 30; a shorter run meets the same locks.
SECONDS = float(os.environ.get("AGENTSTEAD_TEST_SECONDS", "3"))

WRITER = """
import asyncio, json, sys, time
from pathlib import Path
from agentstead.state import State

async def main(home, seconds):
    state = await State.open(Path(home))
    end = time.monotonic() + seconds
    done, errors, slowest = [0], [], [0.0]

    async def one():
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                await state.write(lambda tx: tx.journal("t.entry.made", subject="x", body={"n": done[0]}))
            except Exception as error:
                errors.append(str(error))
            slowest[0] = max(slowest[0], time.monotonic() - began)
            done[0] += 1

    await asyncio.gather(*(one() for _ in range(8)))
    await state.close()
    print(json.dumps({"done": done[0], "errors": errors, "slowest": slowest[0]}))

asyncio.run(main(sys.argv[1], float(sys.argv[2])))
"""

OPENER = """
import asyncio, sys
from pathlib import Path
from agentstead.state import State

async def main(home):
    state = await State.open(Path(home))
    await state.write(lambda tx: tx.journal("t.entry.made", subject="x", body={}))
    await state.close()

asyncio.run(main(sys.argv[1]))
"""


def start(script: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


async def verified(home: Path) -> int:
    state = await State.open(home)
    found = await state.verify()
    await state.close()
    assert found.holds, found.reason
    return found.entries


async def test_four_processes_write_at_once_and_none_is_locked_out(tmp_path: Path) -> None:
    writers = [start(WRITER, str(tmp_path / "home"), str(SECONDS)) for _ in range(4)]
    told = []
    for writer in writers:
        out, err = await asyncio.to_thread(writer.communicate, timeout=SECONDS + 60)
        assert writer.returncode == 0, err
        told.append(json.loads(out))
    assert [each["errors"] for each in told] == [[], [], [], []]
    assert await verified(tmp_path / "home") == sum(each["done"] for each in told)
    # Nobody starves: the gap between groups gives each a share.
    assert min(each["done"] for each in told) * 20 > max(each["done"] for each in told)


async def test_ten_processes_may_make_one_home_together(tmp_path: Path) -> None:
    openers = [start(OPENER, str(tmp_path / "home")) for _ in range(10)]
    for opener in openers:
        _, err = await asyncio.to_thread(opener.communicate, timeout=60)
        assert opener.returncode == 0, err
    assert await verified(tmp_path / "home") == 10
