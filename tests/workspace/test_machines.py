"""The state machines: the tables' closed sets are theirs, and each pair of state and event is listed or refused."""

import re
import sqlite3
from itertools import product
from pathlib import Path

import pytest

from agentstead import workspace
from agentstead.state import Conflict
from agentstead.state.migrations import Migrations, statements
from agentstead.workspace.exchange import Cas
from agentstead.workspace.machines import FORK, MACHINES, OPERATION, PROMOTION, RECEIPT, STEP, Machine
from agentstead.workspace.omissions import REASONS
from agentstead.workspace.snapshots import EdgeKind, SnapshotReason
from agentstead.workspace.steps import StepKind

SCHEMA = (Path(workspace.__file__).parent / "migrations" / "0001_workspace.sql").read_text()
COLUMNS = {
    "operations": ("state", OPERATION),
    "forks": ("state", FORK),
    "receipts": ("state", RECEIPT),
    "promotions": ("state", PROMOTION),
    "apply_steps": ("phase", STEP),
}
# In the machines of the specification, and reached only by what comes with later work.
NOT_YET_REACHED = {"queued", "parked", "canceled"}


def closed_set(table: str, column: str) -> set[str]:
    """Return the values that a column's CHECK allows."""
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\) STRICT;", SCHEMA, re.DOTALL)
    assert body is not None, table
    check = re.search(rf"\n    {column} TEXT[^\n]*?CHECK \({column} IN \((.*?)\)\)", body[1], re.DOTALL)
    assert check is not None, (table, column)
    return set(re.findall(r"'([^']*)'", check[1]))


@pytest.mark.parametrize("table", COLUMNS)
def test_a_tables_closed_set_is_the_machines_states(table: str) -> None:
    column, machine = COLUMNS[table]

    assert closed_set(table, column) == machine.states


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        ("edges", "kind", EdgeKind),
        ("snapshots", "reason", SnapshotReason),
        ("apply_steps", "kind", StepKind),
        ("promotions", "cas", Cas),
        ("operations", "cas", Cas),
    ],
)
def test_a_closed_set_in_code_is_the_one_in_the_table(table: str, column: str, kind: object) -> None:
    assert closed_set(table, column) == set(kind.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.noun)
def test_every_pair_of_state_and_event_is_listed_or_refused_with_the_legal_events(machine: Machine) -> None:
    events = {event for _, event in machine.transitions}
    for state, event in product(machine.states | {""}, events):
        if (state, event) in machine.transitions:
            assert machine.after(state, event) in machine.states
            continue
        with pytest.raises(Conflict) as caught:
            machine.after(state, event)
        assert caught.value.code == f"{machine.noun}.transition_refused"
        assert caught.value.details["legal"] == sorted(each for from_, each in machine.transitions if from_ == state)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.noun)
def test_every_state_can_be_reached_from_the_beginning(machine: Machine) -> None:
    reached, frontier = set[str](), {""}
    while frontier:
        reached |= frontier
        frontier = {to for (state, _), to in machine.transitions.items() if state in reached} - reached

    assert reached - {""} == machine.states


def test_the_schema_stands_on_its_own_and_every_table_is_strict() -> None:
    connection = sqlite3.connect(":memory:")
    for migration in Migrations(package="workspace", anchor="agentstead.workspace").load():
        for statement in statements(migration.sql):
            connection.execute(statement)
    tables = {row[0]: row[1] for row in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")}
    connection.close()

    assert set(tables) == {
        *("boundaries", "path_policies", "snapshots", "labels", "edges", "operations", "apply_steps"),
        *("displaced", "forks", "checks", "receipts", "promotions"),
    }
    assert all(sql.endswith("STRICT") for sql in tables.values())


def test_a_receipt_has_a_status_exactly_when_it_is_recorded() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in statements(SCHEMA):
        connection.execute(statement)
    insert = "INSERT INTO receipts (id, workspace_id, check_digest, tree_in, state, status, at) VALUES (?, '', '', '', ?, ?, 0)"  # noqa: E501

    connection.execute(insert, ("a", "recorded", "pass"))
    for state, status in (("recorded", ""), ("running", "pass"), ("lost", "fail")):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(insert, ("b", state, status))
    connection.close()


def test_every_reason_to_leave_something_out_is_known() -> None:
    assert len(REASONS) == len(set(REASONS)) == 11
    assert OPERATION.states >= NOT_YET_REACHED
