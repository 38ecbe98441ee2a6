"""After the coordinator was killed, its processes are ended at the next start, and nobody else's are."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from agentstead.runner import MARKER, Command, end_left_overs, identify, is_alive, records
from agentstead.runner.sightings import Identity, boot_id
from agentstead.state import Reading, State

pytestmark = pytest.mark.anyio

SLEEPER = "import os,time\nopen('pid','w').write(str(os.getpid()))\nwhile True: time.sleep(0.05)"
COORDINATOR = f"""
import asyncio, sys
from pathlib import Path
from agentstead.runner import MIGRATIONS, Command, Runner
from agentstead.state import State
async def main():
    state = await State.open(Path(sys.argv[1]), sets=[MIGRATIONS])
    code = {SLEEPER!r}
    await Runner(state).run(Command((sys.executable, "-I", "-S", "-c", code), Path(sys.argv[2]), {{}}), owner="rcp_x")
asyncio.run(main())
"""


@contextmanager
def sleeper(*, marked: str = "") -> Iterator[subprocess.Popen[bytes]]:
    environment = {MARKER: marked} if marked else {}
    argv = [sys.executable, "-I", "-S", "-c", "import time\nwhile True: time.sleep(0.05)"]
    process = subprocess.Popen(argv, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=10)


def coordinator(tmp_path: Path, point: str = "") -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "AGENTSTEAD_CRASH": point}
    return subprocess.Popen([sys.executable, "-c", COORDINATOR, str(tmp_path / "home"), str(tmp_path)], env=environment)


def command() -> Command:
    return Command(("true",), Path("/"), {})


async def wait_for(path: Path) -> int:
    with anyio.fail_after(30):
        while not path.exists() or not path.read_text():  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.01)
    return int(path.read_text())


async def states(state: State) -> list[tuple[str, str]]:
    return [tuple(row) for row in await state.read(Reading.all, "SELECT state, reason FROM processes ORDER BY id")]


async def test_the_process_of_a_killed_coordinator_is_ended_and_recorded_as_lost(tmp_path: Path, state: State) -> None:
    parent = coordinator(tmp_path)
    child = identify(await wait_for(tmp_path / "pid"))
    with anyio.fail_after(30):
        while (await states(state)) != [("running", "")]:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.01)
    parent.kill()
    parent.wait(timeout=10)
    assert is_alive(child)

    assert len(await end_left_overs(state)) == 1

    assert not is_alive(child)
    assert await states(state) == [("lost", "parent_lost")]
    assert await end_left_overs(state) == []


async def test_the_process_of_a_supervisor_that_lives_is_left_alone(tmp_path: Path, state: State) -> None:
    parent = coordinator(tmp_path)
    child = identify(await wait_for(tmp_path / "pid"))
    with anyio.fail_after(30):
        while (await states(state)) != [("running", "")]:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.01)

    assert await end_left_overs(state) == []

    assert is_alive(child)
    parent.kill()
    parent.wait(timeout=10)
    assert len(await end_left_overs(state)) == 1
    assert not is_alive(child)


@pytest.mark.parametrize(("point", "started"), [("runner.start.before", False), ("runner.start.after", True)])
async def test_a_coordinator_killed_around_the_start_leaves_nothing_running(
    tmp_path: Path, state: State, point: str, started: bool
) -> None:
    parent = coordinator(tmp_path, point)
    assert parent.wait(timeout=60) == -signal.SIGKILL
    assert await states(state) == [("reserved", "")]
    child = identify(await wait_for(tmp_path / "pid")) if started else None

    await end_left_overs(state)

    assert child is None or not is_alive(child)
    assert await states(state) == [("lost", "parent_lost")]


async def test_a_foreign_process_that_got_the_number_is_not_touched(state: State) -> None:
    process_id = await state.write(records.reserve, command(), "rcp_x")
    with sleeper() as foreign:
        now = identify(foreign.pid)
        await state.write(records.started, process_id, Identity(now.pid, now.start_ticks - 5, now.boot_id))

        await end_left_overs(state)

        assert is_alive(now)
    assert await states(state) == [("lost", "parent_lost")]


async def test_after_another_boot_nothing_is_looked_for(state: State) -> None:
    process_id = await state.write(records.reserve, command(), "rcp_x")
    with sleeper(marked=process_id) as process:
        now = identify(process.pid)
        await state.write(records.started, process_id, Identity(now.pid, now.start_ticks, "an earlier boot"))

        await end_left_overs(state)

        assert boot_id() != "an earlier boot"
        assert is_alive(now)


async def test_only_the_processes_of_the_lost_row_are_ended(state: State) -> None:
    await state.write(records.reserve, command(), "rcp_x")
    with sleeper(marked="prc_of_somebody_else") as other, sleeper() as plain:
        await end_left_overs(state)

        assert is_alive(identify(other.pid))
        assert is_alive(identify(plain.pid))


async def test_a_process_known_by_its_mark_alone_is_ended(state: State) -> None:
    process_id = await state.write(records.reserve, command(), "rcp_x")
    with sleeper(marked=process_id) as process:
        now = identify(process.pid)

        await end_left_overs(state)

        assert not is_alive(now) or process.wait(timeout=10) == -signal.SIGKILL
