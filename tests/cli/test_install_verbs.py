"""`agentstead install` and `uninstall` as a person runs them: difference, backup, trust, and nothing on a dry run."""

import json
import stat
from pathlib import Path

import pytest

from agentstead.cli.hosts.entries import Installation
from agentstead.cli.verbs import install as verb
from agentstead.kit import declarations

from .conftest import Run

SERVERS = [server.name for server in declarations()]


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's folder of their own; no variable leads out of it."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_a_dry_run_shows_the_difference_and_writes_nothing(run: Run, person: Path, home_path: Path) -> None:
    ran = run("install", "cursor", "--dry-run")
    assert ran.code == 0
    assert '+    "stead-memory": {' in ran.out
    assert "would be changed so. Nothing was written." in ran.out
    assert list(person.iterdir()) == []
    assert not home_path.exists()


def test_the_entries_start_this_installation_with_this_home(run: Run, person: Path, home_path: Path) -> None:
    ran = run("install", "cursor", "-o", "json")
    assert ran.code == 0
    table = json.loads((person / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert sorted(table) == sorted(f"stead-{server}" for server in SERVERS)
    entry = table["stead-memory"]
    assert Path(entry["command"]).is_absolute()
    assert Path(entry["command"]).exists()
    assert entry["args"] == ["serve", "memory"]
    assert entry["env"] == {"AGENTSTEAD_HOME": str(home_path)}
    assert ran.json["state"] == "written"
    assert ran.json["backup"] == ""


def test_a_second_run_changes_nothing_and_the_third_takes_it_back(run: Run, person: Path, home_path: Path) -> None:
    path = person / ".config" / "Code" / "User" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('// mine\n{\n  "servers": {}\n}\n')
    assert run("install", "vscode", "-o", "json").json["state"] == "written"
    again = run("install", "vscode", "-o", "json").json
    # A checkout in a temporary folder is told so each time, and rightly.
    notes = [note for note in again["notes"] if "lies in a cache" not in note]
    assert (again["state"], again["diff"], notes) == ("unchanged", "", [])
    away = run("uninstall", "vscode", "-o", "json").json
    assert away["state"] == "written"
    assert path.read_text() == '// mine\n{\n  "servers": {}\n}\n'
    backups = sorted((home_path / "backups" / "hosts" / "vscode").iterdir())
    assert [stat.S_IMODE(backup.stat().st_mode) for backup in backups] == [0o600, 0o600]
    assert backups[0].read_text() == '// mine\n{\n  "servers": {}\n}\n'


def test_forms_of_a_host_that_is_set_up_count_until_it_is_taken_out(run: Run, person: Path) -> None:
    assert "Forms that claude-code shows count as your answers now." in run("install", "claude-code").out
    run("trust", "host", "cursor-vscode")
    assert "count as your answers" not in run("install", "cursor").out
    assert "no longer count as your answers" in run("uninstall", "claude-code").out
    assert "no longer count" not in run("uninstall", "claude-code").out


def test_some_servers_only(run: Run, person: Path) -> None:
    run("install", "codex", "--only", "memory,skills")
    text = (person / ".codex" / "config.toml").read_text()
    assert text.count("[mcp_servers.") == 2
    ran = run("install", "codex", "--only", "memory,nonsense")
    assert ran.code == 2
    assert "'nonsense' is no installed server" in ran.err


def test_an_unknown_host_is_a_usage_error_that_names_the_known_ones(run: Run, person: Path) -> None:
    ran = run("install", "emacs")
    assert ran.code == 2
    assert "'claude-desktop'" in ran.err


def test_a_broken_file_is_refused_and_nothing_else_happens(run: Run, person: Path, home_path: Path) -> None:
    path = person / ".claude.json"
    path.write_text('{"mcpServers": {')
    ran = run("install", "claude-code")
    assert ran.code == 1
    assert ran.err.startswith(f"config.invalid: {path}: line 1:")
    assert path.read_text() == '{"mcpServers": {'
    assert not home_path.exists()


def test_a_secret_beside_our_entries_is_not_shown(run: Run, person: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    path = person / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"x": {"command": "x", "env": {"TOKEN": token}}}}))
    ran = run("install", "cursor", "--only", "memory")
    assert ran.code == 0
    assert token in path.read_text()
    assert token not in ran.out


def test_a_program_that_may_be_gone_tomorrow_is_said(run: Run, person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passing = Installation(("/home/p/.cache/uv/archive-v0/abc/bin/agentstead",))
    monkeypatch.setattr(verb, "this_installation", lambda home: passing)
    assert "may be removed at any time: install Agentstead for good" in run("install", "zed").out


def test_an_agent_may_not_change_a_hosts_settings(run: Run, person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTSTEAD_AGENT", "worker")
    for line in (("install", "cursor"), ("uninstall", "cursor"), ("trust", "host", "x"), ("untrust", "host", "x")):
        ran = run(*line)
        assert ran.code == 3
        assert ran.err.startswith("permission.denied: ")
    assert list(person.iterdir()) == []
