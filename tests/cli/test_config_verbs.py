"""`agentstead config`: values, where they come from, what is wrong with the files, and writing one key back."""

import tomllib
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".agentstead").mkdir(parents=True)
    return root


def test_a_value_is_printed_alone_or_as_json(run: Run) -> None:
    assert run("config", "get", "coordinator.idle_exit_s").out == "900\n"
    assert run("config", "get", "log.level", "-o", "json").json == {"key": "log.level", "value": "info"}


def test_an_unknown_key_is_a_usage_error_with_the_nearest_name(run: Run) -> None:
    ran = run("config", "get", "log.levl")
    assert ran.code == 2
    assert ran.err == "config.unknown_key: 'log.levl' is no setting. Did you mean 'log.level'?\n"


def test_a_key_is_written_and_read_back_with_file_and_line(run: Run, home_path: Path) -> None:
    wrote = run("config", "set", "log.level", "debug", "-o", "json").json
    assert wrote["value"] == "debug"
    assert wrote["file"] == str(home_path / "config.toml")
    explained = run("config", "explain", "log.level", "-o", "json").json
    assert explained["layer"] == "home"
    assert explained["where"] == f"{home_path / 'config.toml'}:2"
    assert explained["hides"] == [{"layer": "built-in", "value": "info", "where": ""}]
    assert explained["takes"] == "one of debug, info, warning, error"


def test_a_key_that_counts_later_says_so(run: Run) -> None:
    assert "next start" in run("config", "set", "coordinator.port", "8000").out
    assert "next start" not in run("config", "set", "approvals.ttl_s", "3600").out


@pytest.mark.parametrize(
    ("line", "code", "what"),
    [
        ("config set log.level loud", 1, "config.invalid: log.level: 'loud' is not one of debug"),
        ("config set coordinator.port 70000", 1, "config.invalid: coordinator.port: 70000 is not a whole number"),
        ("config set no.such 1", 2, "config.unknown_key: 'no.such' is no setting"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_written(
    run: Run, home_path: Path, line: str, code: int, what: str
) -> None:
    ran = run(*line.split())
    assert ran.code == code
    assert what in ran.err
    assert not (home_path / "config.toml").exists()


def test_what_widens_rights_is_not_set_by_an_agent(run: Run, monkeypatch: pytest.MonkeyPatch, home_path: Path) -> None:
    monkeypatch.setenv("AGENTSTEAD_AGENT", "worker")
    ran = run("config", "set", "approvals.ttl_s", "604800")
    assert ran.code == 3
    assert ran.err.startswith("permission.denied: `agentstead config set approvals.ttl_s` is for a person")
    assert not (home_path / "config.toml").exists()
    assert run("config", "set", "log.level", "debug").code == 0
    monkeypatch.delenv("AGENTSTEAD_AGENT")
    assert run("config", "set", "approvals.ttl_s", "604800").code == 0
    assert tomllib.loads((home_path / "config.toml").read_text())["approvals"] == {"ttl_s": 604_800}


def test_a_workspace_file_takes_only_what_it_may_set(run: Run, workspace: Path) -> None:
    ran = run("config", "set", "log.level", "debug", "--layer", "workspace", "--workspace", str(workspace))
    assert ran.code == 1
    assert ran.err.startswith("config.scope: a workspace's file may not set 'log.level'")
    assert not (workspace / ".agentstead" / "config.toml").exists()


def test_the_workspace_around_this_directory_is_meant(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = workspace / "src" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    (workspace / ".agentstead" / "config.toml").write_text("no.such = 1\n")
    assert run("config", "path", "-o", "json").json["workspace"] == str(workspace / ".agentstead" / "config.toml")
    assert run("config", "check").code == 1


def test_outside_a_workspace_none_is_written(run: Run) -> None:
    ran = run("config", "set", "log.level", "debug", "--layer", "workspace")
    assert ran.code == 1
    assert ran.err.startswith("workspace.unknown: ")


def test_faults_of_files_and_variables_are_listed_with_their_place(
    run: Run, home_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("config", "check").out == "No faults.\n"
    assert run("config", "check", "-o", "json").json == {"faults": []}
    home_path.mkdir()
    (home_path / "config.toml").write_text('[log]\nlevl = "debug"\n')
    monkeypatch.setenv("AGENTSTEAD_LOG_LEVEL", "loud")
    ran = run("config", "check", "-o", "json")
    assert ran.code == 1
    found = {fault["code"]: fault["where"] for fault in ran.json["faults"]}
    assert found == {"config.unknown_key": f"{home_path / 'config.toml'}:2", "config.invalid": "AGENTSTEAD_LOG_LEVEL"}


def test_every_setting_is_listed_with_its_layer(run: Run, home_path: Path) -> None:
    home_path.mkdir()
    (home_path / "config.toml").write_text("coordinator.port = 8000\n")
    rows = {row["key"]: row for row in run("config", "show", "-o", "json").json["settings"]}
    assert rows["coordinator.port"]["layer"] == "home"
    assert rows["coordinator.port"]["value"] == 8000
    assert rows["state.synchronous"]["layer"] == "built-in"
    assert "coordinator.port" in run("config", "show").out


def test_a_setting_that_costs_something_says_what(run: Run) -> None:
    out = run("config", "explain", "state.synchronous").out
    assert "loss of power" in out
    assert "a person, in the home's file" in out


def test_a_registered_workspace_is_meant_by_its_name(run: Run, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    run("registry", "add", str(workspace), "--name", "mine")
    found = run("config", "path", "--workspace", "mine", "-o", "json").json
    assert found["workspace"] == str(workspace / ".agentstead" / "config.toml")
    unknown = run("config", "path", "--workspace", "nobody")
    assert unknown.code == 1
    assert unknown.err.startswith("workspace.unknown: No workspace is named 'nobody'")


def test_the_home_is_never_taken_for_a_workspace(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "person" / ".agentstead"
    (tmp_path / "person" / "notes").mkdir(parents=True)
    home.mkdir()
    (home / "config.toml").write_text('[log]\nlevel = "debug"\n')
    monkeypatch.setenv("AGENTSTEAD_HOME", str(home))
    monkeypatch.chdir(tmp_path / "person" / "notes")
    assert run("config", "path", "-o", "json").json == {"home": str(home / "config.toml")}
    assert run("config", "check").code == 0


def test_a_key_of_a_workspace_is_written_into_its_file(run: Run, workspace: Path) -> None:
    line = ("config", "set", "memory.accept.workspace", "review", "--layer", "workspace", "--workspace", str(workspace))
    assert run(*line, "-o", "json").json["file"] == str(workspace / ".agentstead" / "config.toml")
    explained = run("config", "explain", "memory.accept.workspace", "--workspace", str(workspace)).out
    assert "workspace" in explained
    assert f"{workspace / '.agentstead' / 'config.toml'}:" in explained
    assert run("config", "get", "memory.accept.workspace").out == "auto\n"
    assert run("config", "get", "memory.accept.workspace", "--workspace", str(workspace)).out == "review\n"


@pytest.mark.parametrize(
    ("key", "typed", "printed"),
    [("skills.roots.claude", "off", "false"), ("elicitation.trusted_hosts", "a, b", "a, b")],
)
def test_values_are_printed_as_they_are_typed(run: Run, key: str, typed: str, printed: str) -> None:
    assert run("config", "set", key, typed).code == 0
    assert run("config", "get", key).out == f"{printed}\n"
    assert printed in run("config", "explain", key).out


def test_a_value_that_is_refused_is_part_of_the_explanation(run: Run, home_path: Path) -> None:
    home_path.mkdir()
    (home_path / "config.toml").write_text('[log]\nlevel = "loud"\n')
    explained = run("config", "explain", "log.level", "-o", "json").json
    assert explained["value"] == "info"
    assert explained["refused"][0].startswith("config.invalid: 'log.level'")
