"""SIGKILL around every commit of an activation: afterwards it is there whole or not at all, and the next call works."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WriteSkill = Callable[..., Path]
COMMAND = (sys.executable, "-m", "agentstead.cli")


def run(cwd: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTSTEAD_")}
    environ = kept | {"HOME": str(cwd.parent / "person"), "AGENTSTEAD_HOME": str(cwd.parent / "home")} | variables
    line = (*COMMAND, *words, "-o", "json")
    return subprocess.run(line, cwd=cwd, env=environ, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
def test_a_kill_leaves_an_activation_whole_or_none(project: Path, write_skill: WriteSkill, point: str) -> None:
    write_skill(project.parent / "home" / "skills", "tides", files={"a.txt": "a"})
    assert run(project, "skills", "list").returncode == 0
    # The first commit of a process that opens a home is the home's own.
    killed = run(project, "skills", "activate", "tides", AGENTSTEAD_CRASH=f"{point}:2")
    assert killed.returncode == -signal.SIGKILL
    verified = run(project, "verify")
    assert verified.returncode == 0, verified.stdout
    done = run(project, "skills", "activate", "tides")
    assert done.returncode == 0, done.stderr
    active = json.loads(done.stdout)
    assert active["already_active"] is (point == "commit.after")
