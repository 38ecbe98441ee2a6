"""SIGKILL at each crash point of identity: the next use finds one id and one token that holds, and nothing to tidy."""

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from agentstead.identity import MIGRATIONS, Asked, check_token, home_token, registry, resolve
from agentstead.state import CRASH_POINTS, State

pytestmark = pytest.mark.anyio

SCRIPT = """
import asyncio, sys
from pathlib import Path
from agentstead.identity import MIGRATIONS, Asked, home_token, resolve
from agentstead.state import State

async def main() -> None:
    home = Path(sys.argv[1])
    state = await State.open(home, sets=(MIGRATIONS,))
    await home_token(state, home)
    await resolve(state, Asked(home=home, cwd=Path(sys.argv[2])))
    await state.close()

asyncio.run(main())
"""
POINTS = [
    *("identity.id_file.before", "identity.id_file.after"),
    *("identity.token_file.before", "identity.token_file.after"),
]


def test_these_are_all_the_crash_points_of_identity() -> None:
    assert [name for name in CRASH_POINTS.names() if name.startswith("identity.")] == sorted(POINTS)


@pytest.mark.parametrize("point", [*POINTS, "commit.before:2", "commit.after:2", "commit.after:3"])
async def test_after_a_kill_the_next_start_finds_everything_in_step(home_path: Path, project: Path, point: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(home_path), str(project)]
    killed = await anyio.run_process(command, env={**os.environ, "AGENTSTEAD_CRASH": point}, check=False)
    assert killed.returncode == -signal.SIGKILL
    state = await State.open(home_path, sets=(MIGRATIONS,))
    token = await home_token(state, home_path)
    assert await state.read(check_token, token.token) is not None
    found = await resolve(state, Asked(home=home_path, cwd=project))
    assert (await resolve(state, Asked(home=home_path, cwd=project))).id == found.id
    assert len(await state.read(registry.listed)) == 1
    assert (await state.verify()).holds
    await state.close()
    seen_by_git = await anyio.run_process(["git", "status", "--porcelain", "--untracked-files=all"], cwd=project)
    assert seen_by_git.stdout == b""
