"""Running the command line in this process: what it prints, what it says beside it, and its exit code."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from agentstead.cli.main import main

# A machine that does much else at once makes an example slow, not wrong.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@dataclass(frozen=True)
class Ran:
    """One finished command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def home_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home that every command of the test means, in an environment without anything of ours."""
    path = tmp_path / "home"
    for name in ("AGENTSTEAD_WORKSPACE", "AGENTSTEAD_SESSION", "AGENTSTEAD_AGENT", "AGENTSTEAD_PROCESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENTSTEAD_HOME", str(path))
    monkeypatch.setenv("AGENTSTEAD_TRACEBACK", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def run(home_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `agentstead ...` in this process."""

    def run_line(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run_line
