"""Skills from a terminal: a person trusts, lists, activates, reads, switches, and takes the trust back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.cli.main import main

WriteSkill = Callable[..., Path]
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(
    tmp_path: Path,
    project: Path,
    person: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run `agentstead ... -o json` in the project; return the exit code and what was printed."""
    for name in ("AGENTSTEAD_WORKSPACE", "AGENTSTEAD_SESSION", "AGENTSTEAD_AGENT", "AGENTSTEAD_PROCESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENTSTEAD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)

    def run_line(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = main([*words, "-o", "json"])
        printed = capsys.readouterr().out.strip()
        return code, json.loads(printed) if printed else None

    return run_line


def names(run: Run, *words: str) -> list[str]:
    code, page = run("skills", "list", *words)
    assert code == 0
    return [item["qualified_name"] for item in page["items"] if item["origin"] != "bundled"]


def test_a_person_takes_a_workspaces_skill_into_use(run: Run, project: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(project / ".claude/skills", "tides", files={"a.txt": "high\n"})
    assert names(run) == []
    assert run("skills", "activate", "tides")[0] == 3
    code, trusted = run("trust", "workspace")
    assert (code, trusted["mode"], [each["path"] for each in trusted["trusted"]]) == (
        0,
        "content",
        [".claude/skills/tides"],
    )
    assert names(run) == ["workspace:tides"]
    code, active = run("skills", "activate", "tides")
    assert code == 0
    code, read = run("skills", "read", active["activation_id"], "a.txt")
    assert (code, read["text"]) == (0, "high\n")
    (folder / "a.txt").write_text("low!\n")
    assert run("skills", "read", active["activation_id"], "a.txt")[0] == 6
    assert run("untrust", "workspace") == (0, {"trusted": "none", "ended": [".claude/skills/tides"]})
    assert names(run) == []


def test_a_skill_is_switched_off_and_on(run: Run, tmp_path: Path, write_skill: WriteSkill) -> None:
    write_skill(tmp_path / "home" / "skills", "tides")
    assert run("skills", "disable", "skill:user:tides")[0] == 0
    assert names(run) == []
    assert names(run, "--ruling", "disabled") == ["user:tides"]


def test_a_folder_is_validated_by_its_path(run: Run, project: Path, write_skill: WriteSkill) -> None:
    write_skill(project, "tides")
    code, found = run("skills", "validate", "tides")
    assert (code, found["valid"]) == (0, True)
    write_skill(project, "Moon")
    code, found = run("skills", "validate", "Moon")
    assert [each["code"] for each in found["diagnostics"]] == ["name.case"]
    assert code == 1


def test_mode_all_trusts_what_the_skills_become(run: Run, project: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(project / ".claude/skills", "tides")
    assert run("trust", "workspace", "--skills", "all")[1]["mode"] == "all"
    (folder / "new.txt").write_text("x")
    assert names(run) == ["workspace:tides"]
