"""Running one command to its end: recorded, started, recorded again, watched, ended as a whole and recorded."""

import asyncio
import os
from contextlib import suppress
from typing import Final
from weakref import WeakKeyDictionary

import anyio

from agentstead.runner import records
from agentstead.runner.command import Command, Exit
from agentstead.runner.sightings import Identity, boot_id, end_group, end_marked, identify, is_alive
from agentstead.runner.supervised import Supervised
from agentstead.state import CRASH_POINTS, AgentsteadError, State, crash_point

_BEFORE_START, _AFTER_START = CRASH_POINTS.declare("runner.start")
_MOST_PLACES: Final = 4


class Runner:
    """Starts processes for one home, a few at a time."""

    def __init__(self, state: State) -> None:
        self._state = state
        places = min(_MOST_PLACES, os.cpu_count() or 1)
        self._threads = anyio.CapacityLimiter(places)
        self._places = anyio.Semaphore(places)

    async def run(self, command: Command, *, owner: str) -> Exit:
        """Run a command and return what was measured; nothing of its tree is alive then.

        `owner` is the id of what it runs for. Raises `runner.program_missing` and `runner.start_failed`. Cancelling
        ends the process tree.
        """
        command.program()
        async with self._places:
            process_id = await self._state.write(records.reserve, command, owner)
            process = await self._start(command, process_id)
            watching = asyncio.ensure_future(self._watch(process))
            try:
                await self._state.write(records.started, process_id, process.identity)
                return await asyncio.shield(watching)
            except BaseException:
                process.stop()
                await _outlast(watching)
                raise

    async def _watch(self, process: Supervised) -> Exit:
        """Wait for the end of the tree and record it; a task of its own, which no caller's cancellation reaches."""
        result = await anyio.to_thread.run_sync(process.wait, limiter=self._threads)
        await self._state.write(records.ended, result)
        return result

    async def _start(self, command: Command, process_id: str) -> Supervised:
        crash_point(_BEFORE_START)
        try:
            process = await anyio.to_thread.run_sync(Supervised, command, process_id)
        except AgentsteadError:
            await self._state.write(records.refused, process_id)
            raise
        crash_point(_AFTER_START)
        return process


async def _outlast(task: "asyncio.Future[Exit]") -> None:
    """Wait for a task whatever happens to the one that waits: until then something of the process may be alive."""
    with anyio.CancelScope(shield=True):
        while not task.done():
            with suppress(asyncio.CancelledError, Exception):
                await asyncio.shield(task)


_RUNNERS: WeakKeyDictionary[State, Runner] = WeakKeyDictionary()


def runner_of(state: State) -> Runner:
    """Return the one runner of a home in this process: its places are counted once."""
    return _RUNNERS.setdefault(state, Runner(state))


async def end_left_overs(state: State) -> list[str]:
    """End every process whose supervisor died, and record it as lost; return their ids.

    For the holder of the home's lock, before it starts anything. A process that reused a number is not touched, nor
    one that a standalone server or a command watches now.
    """
    here = identify(os.getpid())
    found = await state.read(records.open_processes)
    left = [each for each in found if each.supervisor == here or not is_alive(each.supervisor)]
    for process in left:
        killed = await anyio.to_thread.run_sync(_end, process.id, process.identity)
        await state.write(records.lost, process.id, killed=killed)
    return [process.id for process in left]


def _end(process_id: str, identity: Identity) -> int:
    if identity.boot_id not in ("", boot_id()):
        return 0
    return int(end_group(identity)) + end_marked(process_id)
