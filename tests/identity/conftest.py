"""A database with identity's tables on simulated time, a home, and projects beside it."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentstead.identity import MIGRATIONS
from agentstead.state import SimulatedClock, State


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def home_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    return person / ".agentstead"


@pytest.fixture
async def state(home_path: Path, clock: SimulatedClock) -> AsyncIterator[State]:
    opened = await State.open(home_path, sets=(MIGRATIONS,), clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with one commit and one folder inside."""
    root = (tmp_path / "work" / "shop").resolve()
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("print('hello')\n")
    _git(root, "init", "-q", "-b", "main")
    _git(root, "add", ".")
    _git(root, "commit", "-q", "-m", "start")
    return root


def _git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True, timeout=30)
