"""The closed sets in tables and code are the same, and approvals take exactly the tabled events."""

import itertools
import re
import sqlite3
from collections.abc import Callable
from importlib import resources
from typing import Any, get_args

import pytest

from agentstead.identity.principals import Proof
from agentstead.policy import CallFacts, approvals
from agentstead.policy.approvals import NewApproval
from agentstead.policy.machines import (
    ANSWERS,
    APPROVAL_KINDS,
    APPROVAL_STATES,
    APPROVAL_TRANSITIONS,
    CHOICES,
    EFFECTS,
    EVENTS,
    EXEC_STATES,
    EXEC_TRANSITIONS,
    MATCH_KINDS,
    OUTCOMES,
    SCOPES,
    SUBJECT_KINDS,
    TRUST_KINDS,
    TRUST_MODES,
    UNTIL_MOST_US,
)
from agentstead.policy.model import VERDICTS
from agentstead.state import Conflict, State, Tx

pytestmark = pytest.mark.anyio

SETS: dict[tuple[str, str], tuple[str, ...]] = {
    ("approvals", "state"): APPROVAL_STATES,
    ("approvals", "exec_state"): EXEC_STATES,
    ("approvals", "kind"): APPROVAL_KINDS,
    ("approvals", "subject_kind"): ("", *SUBJECT_KINDS),
    ("approvals", "answer"): ("", *CHOICES),
    ("approvals", "proof"): ("", *get_args(Proof)),
    ("grants", "effect"): EFFECTS,
    ("grants", "scope"): SCOPES,
    ("grants", "match_kind"): MATCH_KINDS,
    ("policy_trust", "kind"): TRUST_KINDS,
    ("policy_trust", "mode"): TRUST_MODES,
    ("policy_decisions", "verdict"): VERDICTS,
    ("policy_decisions", "outcome"): OUTCOMES,
}


def test_every_closed_set_of_the_tables_is_the_one_in_code() -> None:
    sql = (resources.files("agentstead.policy") / "migrations" / "0001_policy.sql").read_text()
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\) STRICT;", sql, re.DOTALL):
        for column, values in re.findall(r"^    (\w+) TEXT NOT NULL CHECK \(\1 IN \((.*?)\)\)", body, re.MULTILINE):
            found[table, column] = tuple(re.findall(r"'([^']*)'", values))
    assert found == SETS


def test_every_choice_has_its_effect_and_every_grant_an_end() -> None:
    assert tuple(ANSWERS) == CHOICES
    assert all(0 < answer.lasts_us <= UNTIL_MOST_US for answer in ANSWERS.values())
    assert {choice for choice, answer in ANSWERS.items() if answer.effect == "allow"} == {
        choice for choice in CHOICES if choice.startswith("allow")
    }


def test_nothing_leaves_a_settled_state() -> None:
    assert {state for state, _ in APPROVAL_TRANSITIONS} == {"pending"}
    assert {state for state, _ in EXEC_TRANSITIONS} == {"none", "dispatching"}


async def _in_state(state: State, wanted: str, new: NewApproval) -> approvals.Approval:
    asked = await state.write(approvals.ask, new)

    def bring(tx: Tx) -> None:
        if wanted in EVENTS.values():
            approvals.move(tx, asked, next(event for event, to in EVENTS.items() if to == wanted))
        elif wanted != "pending":
            choice: Any = next(choice for choice, answer in ANSWERS.items() if answer.state == wanted)
            approvals.settle(tx, asked, choice, answered_by="user", proof="terminal", note="")

    await state.write(bring)
    return await state.read(approvals.get_approval, asked.id)


@pytest.mark.parametrize(("start", "event"), list(itertools.product(APPROVAL_STATES, [*CHOICES, *EVENTS])))
async def test_each_state_takes_the_tabled_events_alone(
    state: State, call: Callable[..., CallFacts], start: str, event: Any
) -> None:
    new = NewApproval("call", "may it?", "host:h", CHOICES, ttl_us=10**9, workspace_most=9, action_hash="a")
    approval = await _in_state(state, start, new)
    expected = APPROVAL_TRANSITIONS.get((approval.state, event))

    def apply(tx: Tx) -> None:
        if event in EVENTS:
            assert approvals.move(tx, approval, event) is (expected is not None)
        else:
            approvals.settle(tx, approval, event, answered_by="user", proof="terminal", note="")

    if expected is None and event not in EVENTS:
        with pytest.raises(Conflict, match=r"approval\.(settled|expired)"):
            await state.write(apply)
    else:
        await state.write(apply)
    after = await state.read(approvals.get_approval, approval.id)
    assert after.state == (expected or approval.state)
    if expected is None:
        assert after == approval


@pytest.mark.parametrize(
    ("start", "event"),
    list(itertools.product(EXEC_STATES, ["dispatch", "complete", "fail", "found_at_start"])),
)
async def test_execution_takes_the_tabled_events_alone(state: State, start: str, event: str) -> None:
    new = NewApproval("call", "may it?", "host:h", CHOICES, ttl_us=10**9, workspace_most=9)
    asked = await state.write(approvals.ask, new)

    def bring(tx: Tx) -> None:
        tx.execute("UPDATE approvals SET exec_state = :start", start=start)

    await state.write(bring)
    approval = await state.read(approvals.get_approval, asked.id)
    expected = EXEC_TRANSITIONS.get((approval.exec_state, event))
    assert await state.write(approvals.execute, approval, event) is (expected is not None)
    after = await state.read(approvals.get_approval, asked.id)
    assert after.exec_state == (expected or start)


@pytest.mark.parametrize(
    "change",
    [
        "state = 'open'",
        "exec_state = 'running'",
        "state = 'allowed'",
        "answer = 'allow_once'",
        "kind = 'subject'",
        "proof = 'word'",
    ],
)
async def test_direct_sql_to_an_illegal_state_is_refused(state: State, change: str) -> None:
    new = NewApproval("call", "may it?", "host:h", CHOICES, ttl_us=10**9, workspace_most=9)
    await state.write(approvals.ask, new)

    def corrupt(tx: Tx) -> None:
        tx.execute(f"UPDATE approvals SET {change}")

    with pytest.raises(sqlite3.IntegrityError):
        await state.write(corrupt)
