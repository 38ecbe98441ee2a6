"""`agentstead trust` and `untrust`: hosts, and the skills that stand in a workspace."""

from pathlib import Path

import pytest

from .conftest import Run

SKILL = """---
name: tides
description: Use when somebody asks when the tide is high.
---
Look the tide up in the table of the harbour.
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    skill = root / ".agentstead" / "skills" / "tides" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return root


def test_a_host_is_trusted_and_the_trust_ended(run: Run) -> None:
    assert run("trust", "host", "my-host", "-o", "json").json == {"host": "my-host", "trusted": "all"}
    assert run("trust", "host", "my-host", "--forms-only", "-o", "json").json["trusted"] == "forms"
    assert run("untrust", "host", "my-host", "-o", "json").json == {"host": "my-host", "trusted": "no"}
    again = run("untrust", "host", "my-host")
    assert again.code == 1
    assert again.err.startswith("ref.not_found: ")


def test_the_skills_of_a_workspace_are_trusted_and_the_trust_ended(run: Run, project: Path) -> None:
    assert "tides" not in run("skills", "list").out
    trusted = run("trust", "workspace", "-o", "json").json
    assert [each["path"] for each in trusted["trusted"]] == [".agentstead/skills/tides"]
    assert "tides" in run("skills", "list", "--ruling", "any").out
    assert run("untrust", "workspace", "-o", "json").json["ended"] == [".agentstead/skills/tides"]


def test_an_agent_trusts_no_workspace(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTSTEAD_PROCESS", "prc_1")
    for line in (("trust", "workspace"), ("untrust", "workspace"), ("skills", "enable", "skill:workspace:tides")):
        ran = run(*line)
        assert ran.code == 3
        assert ran.err.startswith("permission.denied: ")
