"""Skill folders for tests, and homes that serve skills beside sessions, for a person whose home folder is empty."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agentstead.kit import Home
from agentstead.sessions.server import SERVER as SESSIONS
from agentstead.skills.server import SERVER as SKILLS
from agentstead.state import HomeLock, SimulatedClock

WriteSkill = Callable[..., Path]


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Return an empty root for skills."""
    root = tmp_path / "skills"
    root.mkdir()
    return root


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the person's home folder, empty."""
    folder = tmp_path / "person"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
async def home(tmp_path: Path, clock: SimulatedClock, person: Path) -> AsyncIterator[Home]:
    """Open a fresh home with skills and sessions, in which this process holds the lock."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    lock = HomeLock(path)
    assert lock.acquire()
    opened = await Home.open(path, lock=lock, clock=clock, servers=[SKILLS, SESSIONS])
    yield opened
    await opened.close()
    lock.release()


@pytest.fixture
def mine(home: Home) -> Path:
    """Return the root of the person's own skills."""
    return home.path / "skills"


@pytest.fixture
def write_skill() -> WriteSkill:
    """Return the writer of skill folders: root, name, and if wanted description, further fields, body, files."""
    return _write


def _write(
    root: Path,
    name: str,
    *,
    description: str = "Looks up tides",
    fields: str = "",
    body: str = "Read this first.\n",
    files: dict[str, str | bytes] | None = None,
) -> Path:
    folder = root / name
    written: dict[str, str | bytes] = {
        "SKILL.md": f"---\nname: {folder.name}\ndescription: {description}\n{fields}---\n{body}"
    }
    for path, content in (written | (files or {})).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
