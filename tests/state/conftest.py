"""An open state library in a temporary home."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentstead.state import SimulatedClock, State


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
async def state(tmp_path: Path, clock: SimulatedClock) -> AsyncIterator[State]:
    opened = await State.open(tmp_path / "home", clock=clock)
    yield opened
    await opened.close()
