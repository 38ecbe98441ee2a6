"""Whether a person types, as far as it can be seen: by variables, by connected hosts, by processes of the runner."""

import os
import sqlite3
from pathlib import Path

import pytest

from agentstead.cli import person
from agentstead.cli.person import principal_of, refuse_agents, started_by
from agentstead.cli.running import service_of
from agentstead.cli.terminal import Terminal
from agentstead.coordinator import control
from agentstead.identity import ancestors
from agentstead.state import DATABASE_FILE, Denied, NotFound

PROCESSES = "CREATE TABLE processes (id TEXT, state TEXT, pid INTEGER)"


def with_process(home: Path, state: str, pid: int) -> None:
    home.mkdir(exist_ok=True)
    with sqlite3.connect(home / DATABASE_FILE) as connection:
        connection.execute(PROCESSES)
        connection.execute("INSERT INTO processes VALUES ('prc_1', ?, ?)", (state, pid))


@pytest.fixture
def above() -> int:
    """A process above this one."""
    found = ancestors(os.getpid())
    if not found:
        pytest.skip("this system does not tell which process started which")
    return found[0]


def test_a_person_who_types_is_started_by_nobody_we_know(home_path: Path) -> None:
    assert started_by(home_path) == ""
    principal = principal_of(Terminal(home_path))
    assert (principal.text, principal.facts.supervised, principal.proof) == ("user", False, None)


@pytest.mark.parametrize("name", ["AGENTSTEAD_PROCESS", "AGENTSTEAD_AGENT"])
def test_a_variable_of_an_agent_tells_one(home_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    assert name in started_by(home_path)
    assert principal_of(Terminal(home_path)).facts.supervised
    with pytest.raises(Denied, match=r"permission\.denied: `agentstead home token` is for a person") as refused:
        refuse_agents(Terminal(home_path), ("home", "token"))
    assert refused.value.remedy == "Ask the person to run `agentstead home token` in a terminal of their own."


@pytest.mark.parametrize(
    ("state", "told"), [("running", True), ("stopping", True), ("exited", False), ("reserved", False)]
)
def test_a_process_that_the_runner_runs_is_no_person(home_path: Path, above: int, state: str, told: bool) -> None:
    with_process(home_path, state, above)
    assert (started_by(home_path) == "a process that Agentstead runs") is told


def test_a_process_of_the_runner_beside_us_says_nothing_of_us(home_path: Path) -> None:
    with_process(home_path, "running", 2**22 + 1)
    assert started_by(home_path) == ""


def test_a_database_that_cannot_be_read_stops_no_verb(home_path: Path) -> None:
    home_path.mkdir()
    (home_path / DATABASE_FILE).write_text("no database at all, and long enough to be looked at")
    assert started_by(home_path) == ""


def test_whoever_started_a_connected_shim_is_a_host(
    home_path: Path, above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "status", lambda home: control.Status(None, live={"shims": [4711]}))
    monkeypatch.setattr(person, "parent_of", {4711: above}.get)
    assert started_by(home_path) == "a host that is connected to Agentstead"
    monkeypatch.setattr(person, "parent_of", {4711: 1}.get)
    assert started_by(home_path) == ""


def test_the_service_of_a_server_is_found_by_its_entry_point() -> None:
    assert service_of("memory").__name__ == "agentstead.memory.service"
    with pytest.raises(NotFound, match=r"ref\.not_found: The server nonsense is not installed"):
        service_of("nonsense")
