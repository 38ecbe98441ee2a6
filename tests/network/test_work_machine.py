"""The work machine, cell by cell as section 10 of the protocol draws it, and the closed sets of the tables."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.network.machines import (
    CLOSED_SETS,
    TERMINAL,
    WORK,
    WORK_EVENTS,
    WorkEvent,
    next_work_state,
)
from agentstead.network.wire import Refused
from agentstead.network.wire.grammar import WORK_STATES, WorkState
from agentstead.state import Migrations
from agentstead.state.migrations import statements

# Columns: submitted, working, needs_input.
DRAWN: dict[WorkEvent, tuple[WorkState, WorkState, WorkState] | None] = {
    "talk_by_initiator": ("submitted", "working", "working"),
    "talk_by_target": ("submitted", "working", "needs_input"),
    "receipt_accepted": ("working", "working", "needs_input"),
    "receipt_rejected": ("failed", "failed", "failed"),
    "receipt_canceled": ("canceled", "canceled", "canceled"),
    "receipt_duplicate": ("submitted", "working", "needs_input"),
    "receipt_expired": ("submitted", "working", "needs_input"),
    "receipt_unsupported": ("submitted", "working", "needs_input"),
    "trace_submitted": None,
    "trace_working": ("working", "working", "working"),
    "trace_needs_input": ("needs_input", "needs_input", "needs_input"),
    "trace_completed": ("completed", "completed", "completed"),
    "trace_failed": ("failed", "failed", "failed"),
    "trace_canceled": ("canceled", "canceled", "canceled"),
}
OPEN = ("submitted", "working", "needs_input")


def expected(state: WorkState, event: WorkEvent) -> tuple[str, str | None]:
    """Return (state after, None), or (reason, local code) of a refusal."""
    if state in TERMINAL:
        return "work_closed", None
    drawn = DRAWN[event]
    return ("malformed", "invalid_transition") if drawn is None else (drawn[OPEN.index(state)], None)


@pytest.mark.parametrize(("state", "event"), list(product(WORK_STATES, WORK_EVENTS)))
def test_every_state_and_event_goes_where_the_protocol_says(state: WorkState, event: WorkEvent) -> None:
    try:
        found: tuple[str, str | None] = (next_work_state(state, event), None)
    except Refused as refused:
        found = (refused.reason, refused.local)
    assert found == expected(state, event)


def test_the_machine_knows_every_event_and_no_other() -> None:
    assert set(WORK) == set(WORK_EVENTS) == set(DRAWN)


@given(st.lists(st.sampled_from(WORK_EVENTS), max_size=30))
def test_nothing_leaves_a_terminal_state_and_nothing_returns_to_submitted(events: list[WorkEvent]) -> None:
    state: WorkState = "submitted"
    for event in events:
        try:
            after = next_work_state(state, event)
        except Refused:
            continue
        assert state not in TERMINAL
        assert after != "submitted" or state == "submitted"
        state = after


def checks() -> dict[tuple[str, str], set[str]]:
    """Return (table, column) -> the values that a CHECK of the migrations lists."""
    found: dict[tuple[str, str], set[str]] = {}
    for migration in Migrations(package="network", anchor="agentstead.network").load():
        for statement in statements(migration.sql):
            table = re.search(r"CREATE TABLE (\w+)", statement)
            if table is None:
                continue
            for column, values in re.findall(r"\n    (\w+) TEXT[^(\n]*CHECK \(\w+ IN \(([^)]*)\)\)", statement):
                found[table[1], column] = set(re.findall(r"'([^']*)'", values))
    return found


def test_each_check_of_the_migrations_lists_the_set_of_the_code() -> None:
    listed = checks()
    for place, values in CLOSED_SETS.items():
        assert listed.pop(place) == set(values), place
    assert listed == {("net_work_step", "from_state"): {"", *WORK_STATES}}


@pytest.fixture
def tables() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in Migrations(package="network", anchor="agentstead.network").load():
            connection.executescript(migration.sql)
        yield connection


def test_every_table_is_strict_and_every_index_says_what_it_serves(tables: sqlite3.Connection) -> None:
    rows = tables.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'net_%'").fetchall()
    assert len(rows) == 12
    assert all(sql.rstrip().endswith("STRICT") for _, sql in rows)
    text = Migrations(package="network", anchor="agentstead.network").load()[0].sql
    assert all(
        "-- " in text[: match.start()].splitlines()[-1] for match in re.finditer(r"CREATE (UNIQUE )?INDEX", text)
    )


def test_participation_is_resolved_once(tables: sqlite3.Connection) -> None:
    tables.execute(
        "INSERT INTO net_participation VALUES ('session', 'ses_1', 'live', '{}', 'x', 'explicit_request', 1)"
    )
    for change in ("UPDATE net_participation SET mode = 'local'", "DELETE FROM net_participation"):
        with pytest.raises(sqlite3.IntegrityError, match="resolved once"):
            tables.execute(change)


def test_a_cursor_only_rises_and_never_passes_what_was_read(tables: sqlite3.Connection) -> None:
    tables.execute("INSERT INTO net_cursor VALUES ('w', 's', 'c', 5, 5, 4)")
    for change in ("read_seq = 3", "ack_seq = 6", "ack_seq = 3", "peek_seq = 4"):
        with pytest.raises(sqlite3.IntegrityError):
            tables.execute(f"UPDATE net_cursor SET {change}")
    tables.execute("UPDATE net_cursor SET ack_seq = 5")


def test_a_sequence_is_never_given_twice(tables: sqlite3.Connection) -> None:
    insert = """
    INSERT INTO net_message (workspace, from_peer, message_id, kind, channel, ts, canon_sha256, trust, flags, origin,
        peering, root_seq, depth, accepted_at)
    VALUES ('w', 'a', ?, 'greet', 'c', 1, ?, 'unverified', '[]', 'local', '', 0, 0, 1)
    """
    tables.execute(insert, ("m1", "0" * 64))
    tables.execute("DELETE FROM net_message")
    tables.execute(insert, ("m1", "0" * 64))
    assert tables.execute("SELECT seq FROM net_message").fetchall() == [(2,)]
