"""What the console script does before typer is there: version, serve, and the first words to a newcomer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentstead.coordinator import launch
from agentstead.coordinator.version import installed_version

from .conftest import Run

HEAVY = ("typer", "rich", "pydantic", "mcp", "sqlite3", "asyncio", "logging", "importlib.metadata")


def imported_by(*arguments: str) -> set[str]:
    """Return which heavy modules a fresh interpreter has loaded when a command line has ended."""
    code = (
        "import sys\nfrom agentstead.cli.main import main\n"
        f"code = main({list(arguments)!r})\n"
        f"print('\\n' + ' '.join(name for name in {HEAVY!r} if name in sys.modules), code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    *loaded, _ = done.stdout.splitlines()[-1].split(" ")
    return set(filter(None, loaded))


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_printed_and_nothing_heavy_imported(run: Run, flag: str) -> None:
    assert run(flag).out == f"agentstead {installed_version()}\n"
    assert imported_by(flag) == set()


def test_serve_imports_neither_typer_nor_pydantic(home_path: Path) -> None:
    assert imported_by("serve") == set()


def test_serve_goes_to_the_shim_with_the_home_that_was_named_before_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines: list[list[str]] = []

    def served(argv: list[str]) -> int:
        lines.append(argv)
        return 0

    monkeypatch.setattr(launch, "main", served)
    assert run("--home", "H", "--workspace", "W", "serve", "memory", "--toolset", "full").code == 0
    assert lines == [["serve", "memory", "--toolset", "full"]]
    assert os.environ["AGENTSTEAD_HOME"] == str(tmp_path / "H")
    assert os.environ["AGENTSTEAD_WORKSPACE"] == "W"


def test_serve_without_a_name_says_how_it_is_used(run: Run) -> None:
    ran = run("serve")
    assert ran.code == 2
    assert "usage: agentstead serve NAME" in ran.err


def test_a_newcomer_is_told_what_this_is_and_what_to_do_next(run: Run, home_path: Path) -> None:
    ran = run()
    assert ran.code == 0
    assert ran.out.startswith(f"Agentstead {installed_version()}: ")
    assert f"No home yet at {home_path}. Next: `agentstead install HOST`" in ran.out


def test_the_overview_of_a_home_names_what_runs(run: Run, home_path: Path) -> None:
    (home_path / "run").mkdir(parents=True)
    (home_path / "state.db").touch()
    assert f"Home: {home_path}. Nothing runs" in run().out
    record = home_path / "run" / "coordinator.json"
    record.write_text(json.dumps({"servers": ["memory", "skills"], "pid": os.getpid()}))
    assert "The coordinator serves memory, skills." in run().out
    record.write_text(json.dumps({"servers": ["memory"], "pid": 2**22 + 1}))
    assert "Nothing runs" in run().out
    record.write_text("no json")
    assert "Nothing runs" in run().out


def test_the_top_level_help_loads_no_service(home_path: Path) -> None:
    loaded = imported_by("--help")
    assert "mcp" not in loaded
