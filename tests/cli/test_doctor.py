"""`agentstead doctor`: each planted fault is found with its fix, and no probe hides another."""

import json
import shutil
import socket
import sqlite3
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentstead.cli.probes import machine, running
from agentstead.cli.probes.finding import Finding, Probe, run_probe
from agentstead.coordinator import control, places
from agentstead.coordinator.statefile import Record
from agentstead.state import DATABASE_FILE, Unavailable

from .conftest import Run

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person without any host, whose port is free."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AGENTSTEAD_COORDINATOR_PORT", str(free_port()))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def findings(run: Run, *only: str) -> dict[str, dict[str, Any]]:
    """Return what the named probes find, by code."""
    found = run("doctor", "--only", ",".join(only), "-o", "json").json
    return {each["code"]: each for probe in found["probes"] for each in probe["findings"]}


@pytest.fixture
def used(run: Run, home_path: Path) -> Path:
    """A home that was used."""
    run("registry", "list")
    return home_path


def test_a_sound_home_has_no_finding(run: Run, used: Path) -> None:
    ran = run("doctor", "-o", "json")
    assert ran.json["healthy"] is True
    assert [probe["findings"] for probe in ran.json["probes"]] == [[]] * 10
    assert ran.code == 0
    assert run("doctor").out == "10 probes, 0 findings.\n"
    assert run("doctor", "--quiet").out == ""


def test_without_a_home_nothing_is_made_and_nothing_is_wrong(run: Run, home_path: Path) -> None:
    ran = run("doctor", "-o", "json")
    assert ran.code == 0
    codes = [each["code"] for probe in ran.json["probes"] for each in probe["findings"]]
    assert codes == ["home.absent"]
    assert not home_path.exists()


def test_what_others_can_read_is_found_with_the_command_that_ends_it(run: Run, used: Path) -> None:
    (used / DATABASE_FILE).chmod(0o644)
    (used / "keys").chmod(0o750)
    ran = run("doctor", "--only", "home")
    assert ran.code == 1
    assert f"fix: chmod 600 {used / DATABASE_FILE}" in ran.out
    assert f"fix: chmod 700 {used / 'keys'}" in ran.out


def test_a_damaged_database_is_found(run: Run, used: Path) -> None:
    path = used / DATABASE_FILE
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[8192:16384] = b"\xff" * 8192
    path.write_bytes(data)
    found = findings(run, "database")
    assert found["database.damaged"]["severity"] == "error"
    assert str(path) in found["database.damaged"]["fix"]


def test_a_home_of_a_newer_version_is_found(run: Run, used: Path) -> None:
    with sqlite3.connect(used / DATABASE_FILE) as connection:
        connection.execute("INSERT INTO migrations VALUES ('state', 999, 'later', 'x', 1)")
    assert findings(run, "journal")["home.newer"]["fix"].startswith("Update Agentstead")


def test_a_gap_in_the_journal_is_found(run: Run, used: Path, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name / ".git").mkdir(parents=True)
        run("registry", "add", str(tmp_path / name))
    with sqlite3.connect(used / DATABASE_FILE) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("DELETE FROM journal WHERE seq = 2")
    assert findings(run, "journal")["journal.broken"]["what"] == "The journal lacks entry 2."


def test_rows_that_were_set_aside_are_listed(run: Run, used: Path) -> None:
    with sqlite3.connect(used / DATABASE_FILE) as connection:
        connection.execute("INSERT INTO quarantine VALUES ('tasks', 'tsk_1', 'ValueError: odd', 1)")
    found = findings(run, "journal")["home.quarantined"]
    assert found["severity"] == "warning"
    assert found["evidence"] == "ValueError: odd"


def test_a_clock_that_was_set_back_is_found(run: Run, used: Path, tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    run("registry", "add", str(tmp_path / "a"))
    with sqlite3.connect(used / DATABASE_FILE) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE journal SET at_us = at_us + 3600000000")
    assert "clock stands" in findings(run, "journal")["clock.behind"]["what"]


def test_a_fault_in_the_settings_is_found_with_its_line(run: Run, used: Path) -> None:
    (used / "config.toml").write_text("[log]\nlevl = 1\n")
    assert findings(run, "settings")["config.unknown_key"]["evidence"] == f"{used / 'config.toml'}:2"


def test_a_port_that_somebody_uses_is_found_with_another_one(
    run: Run, used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("AGENTSTEAD_COORDINATOR_PORT", str(port))
        found = findings(run, "port")["port.taken"]
    assert found["fix"] == f"agentstead config set coordinator.port {port + 1}"


def test_a_coordinator_that_does_not_answer_is_found(run: Run, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record("serving", 4711, "0.1.0", "/bin/python", 1, "shim", "/socket")
    monkeypatch.setattr(control, "status", lambda home: control.Status(record, answers=False))
    found = findings(run, "coordinator")["coordinator.unresponsive"]
    assert (found["evidence"], found["fix"]) == ("process 4711", "agentstead stop")


def test_an_older_coordinator_is_found(run: Run, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record("serving", 4711, "0.0.1", "/bin/python", 1, "shim", "/socket")
    monkeypatch.setattr(control, "status", lambda home: control.Status(record, answers=True))
    assert "version 0.0.1" in findings(run, "coordinator")["coordinator.older"]["what"]


def test_a_host_that_starts_a_program_that_is_gone_is_found(run: Run, used: Path, person: Path) -> None:
    (person / ".cursor").mkdir()
    entry = {"command": "/gone/bin/agentstead", "args": ["serve", "memory"]}
    (person / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"stead-memory": entry}}))
    (person / ".claude.json").write_text("{")
    found = findings(run, "hosts")
    assert found["host.stale"]["fix"] == "agentstead install cursor"
    assert found["host.missing"]["severity"] == "info"
    assert str(person / ".claude.json") in found["host.broken"]["what"]


def test_a_server_that_cannot_be_loaded_is_found(run: Run, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        name = "broken"
        value = "broken.server:SERVER"

        def load(self) -> None:
            raise ImportError("no such module")

    monkeypatch.setattr(running, "entry_points", lambda group: [Broken()])
    found = findings(run, "servers")["server.broken"]
    assert found["evidence"] == "broken.server:SERVER: ImportError: no such module"


@pytest.mark.parametrize(("free", "severity"), [(50 * 2**20, "error"), (500 * 2**20, "warning")])
def test_a_disk_that_runs_full_is_found(
    run: Run, used: Path, monkeypatch: pytest.MonkeyPatch, free: int, severity: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**12 - free, free))
    assert findings(run, "disk")["disk.low"]["severity"] == severity


def test_an_old_interpreter_is_found(run: Run, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_LEAST", (99, 0))
    assert "is too old" in findings(run, "python")["python.old"]["what"]


def test_an_unknown_probe_is_a_usage_error(run: Run) -> None:
    ran = run("doctor", "--only", "nonsense")
    assert ran.code == 2
    assert "Probes: python, home, disk" in ran.err


def broken(_home: Path) -> Iterator[Finding]:
    yield Finding("a.first", "info", "First.")
    raise RuntimeError("odd")


def test_a_probe_that_fails_is_a_finding_and_keeps_what_it_found(tmp_path: Path) -> None:
    seen = run_probe(Probe("a", broken), tmp_path)
    assert [(each.code, each.severity) for each in seen.findings] == [("a.first", "info"), ("a.crashed", "error")]
    assert seen.findings[1].evidence == "odd"


def test_a_probe_that_hangs_is_a_finding(tmp_path: Path) -> None:
    go_on = threading.Event()

    def hang(_home: Path) -> Iterator[Finding]:
        go_on.wait(30)
        yield Finding("late", "info", "Late.")

    seen = run_probe(Probe("slow", hang), tmp_path, within_s=0.05)
    go_on.set()
    assert [each.code for each in seen.findings] == ["slow.silent"]


@pytest.mark.parametrize(("kind", "code"), [("nfs4", "home.network"), ("ext4", "home.read_only")])
def test_a_home_that_cannot_work_where_it_lies_is_found(
    run: Run, used: Path, monkeypatch: pytest.MonkeyPatch, kind: str, code: str
) -> None:
    def refuse(home: Path) -> None:
        raise Unavailable("home.quarantined", f"The home {home} cannot be used.", remedy="Use another folder.")

    monkeypatch.setattr(machine, "check_home", refuse)
    monkeypatch.setattr(machine, "file_system", lambda home: kind)
    found = findings(run, "home")[code]
    assert (found["severity"], found["evidence"], found["fix"]) == ("error", kind, "Use another folder.")


def test_rows_that_point_to_nothing_are_found(run: Run, used: Path) -> None:
    with sqlite3.connect(used / DATABASE_FILE) as connection:
        connection.execute("CREATE TABLE planted_parent (id TEXT PRIMARY KEY) STRICT")
        connection.execute("CREATE TABLE planted (id TEXT REFERENCES planted_parent (id)) STRICT")
        connection.execute("INSERT INTO planted VALUES ('gone')")
    (used / "backups").mkdir(exist_ok=True)
    (used / "backups" / "state-1.db").touch()
    found = findings(run, "database")["database.orphans"]
    assert found["evidence"] == "planted 1"
    assert str(used / "backups" / "state-1.db") in found["fix"]


def test_of_many_rows_that_were_set_aside_some_are_shown_and_the_rest_counted(run: Run, used: Path) -> None:
    with sqlite3.connect(used / DATABASE_FILE) as connection:
        rows = [(f"tsk_{place:02}",) for place in range(25)]
        connection.executemany("INSERT INTO quarantine VALUES ('tasks', ?, 'ValueError: odd', 1)", rows)
    (probe,) = run("doctor", "--only", "journal", "-o", "json").json["probes"]
    assert len(probe["findings"]) == 11
    assert probe["findings"][-1]["what"] == "15 more rows were set aside."


def test_a_socket_of_a_coordinator_that_ended_is_said_and_no_fault(run: Run, used: Path) -> None:
    path = Path(places.socket_path(str(used)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    ran = run("doctor", "--only", "coordinator", "-o", "json")
    assert ran.code == 0
    assert ran.json["probes"][0]["findings"][0]["code"] == "coordinator.stale"


def test_a_whole_entry_of_a_host_is_no_finding(run: Run, used: Path, person: Path) -> None:
    run("install", "cursor")
    assert findings(run, "hosts") == {}
