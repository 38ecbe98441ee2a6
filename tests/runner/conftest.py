"""A state database with the runner's tables, and a runner over it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentstead.runner import MIGRATIONS, Runner
from agentstead.state import State


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[State]:
    opened = await State.open(tmp_path / "home", sets=[MIGRATIONS])
    yield opened
    await opened.close()


@pytest.fixture
def runner(state: State) -> Runner:
    return Runner(state)
