"""The record of decisions: entry, row and revision; found again, kept for 90 days, without argument values."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentstead.policy import CallFacts, Enforcement, find_decision
from agentstead.policy.audit import Counts, forget_old
from agentstead.state import Denied, NotFound, PendingAnswer, Reading, SimulatedClock, State

pytestmark = pytest.mark.anyio

Calls = Callable[..., CallFacts]
DENY = '[[rule]]\nid = "no"\neffect = "deny"\naction = ["workspace.*"]\n'


async def _denied(enforcement: Enforcement, call: CallFacts) -> str:
    with pytest.raises(Denied) as caught:
        await enforcement.enter(call)
    return str(caught.value.details["decision_id"])


async def test_a_decision_is_found_with_everything_that_led_to_it(
    enforcement: Enforcement, state: State, call: Calls, rules: Callable[..., None]
) -> None:
    rules(DENY)
    recorded = await state.read(find_decision, await _denied(enforcement, call(session_id="")))
    assert (recorded.verdict, recorded.outcome, recorded.tool) == ("deny", "denied", "workspace/promote")
    assert recorded.entry is not None
    (access,) = recorded.entry["accesses"]
    assert access["text"] == "action workspace.promote"
    assert access["rules"] == [{"id": "no", "layer": "user", "effect": "deny", "file": "mine.toml", "line": 2}]
    assert access["layers"]["user"] == "deny"
    assert recorded.entry["door"] == "own"
    assert len(recorded.entry["input_digest"]) == 64


async def test_an_approval_leads_to_its_newest_decision(enforcement: Enforcement, state: State, call: Calls) -> None:
    with pytest.raises(PendingAnswer) as caught:
        await enforcement.enter(call())
    approval_id = caught.value.details["approval_id"]
    recorded = await state.read(find_decision, approval_id)
    assert (recorded.outcome, recorded.approval_id) == ("pending", approval_id)


async def test_the_files_of_a_revision_are_stored_once(
    enforcement: Enforcement, state: State, call: Calls, rules: Callable[..., None]
) -> None:
    rules(DENY)
    for n in range(3):
        await _denied(enforcement, call(arguments={"n": n}))
    (row,) = await state.read(Reading.all, "SELECT * FROM policy_revisions")
    assert row["id"].startswith("pol_")
    assert row["hash"] == enforcement.layers.current().policy.revision
    assert [file["path"] for file in json.loads(row["files"])] == ["mine.toml"]
    rules(DENY + "\n")
    await _denied(enforcement, call())
    assert await state.read(Reading.value, "SELECT COUNT(*) FROM policy_revisions") == 2


async def test_rows_go_after_ninety_days_and_the_journal_keeps_their_entries(
    enforcement: Enforcement, state: State, call: Calls, rules: Callable[..., None], clock: SimulatedClock
) -> None:
    rules(DENY)
    old = await _denied(enforcement, call(arguments={"n": 1}))
    clock.advance(seconds=90 * 86_400)
    new = await _denied(enforcement, call(arguments={"n": 2}))
    assert await state.write(forget_old) == 1
    assert await state.write(forget_old) == 0
    with pytest.raises(NotFound, match="kept for 90 days"):
        await state.read(find_decision, old)
    assert (await state.read(find_decision, new)).id == new
    subjects = [entry.subject for entry in await state.read(Reading.entries, 0)]
    assert old in subjects
    assert (await state.verify()).holds


async def test_an_erased_entry_leaves_the_row_readable(
    enforcement: Enforcement, state: State, call: Calls, rules: Callable[..., None]
) -> None:
    rules(DENY)
    decision_id = await _denied(enforcement, call())
    head = await state.head()
    await state.write(lambda tx: tx.erase_body(head.seq))
    recorded = await state.read(find_decision, decision_id)
    assert (recorded.entry, recorded.reasons) == (None, ("rule.deny",))


@pytest.mark.parametrize("ref", ["", "pdc_1", "apr_1", "x' OR 1=1 --"])
async def test_what_is_no_decision_is_not_found(state: State, ref: str) -> None:
    with pytest.raises(NotFound, match=r"ref\.not_found"):
        await state.read(find_decision, ref)


async def test_counts_of_a_minute_are_taken_once(enforcement: Enforcement, call: Calls, clock: SimulatedClock) -> None:
    counts = Counts()
    read = call("memory.recall", "read")
    decision = enforcement.decide(read)
    assert counts.take() is None
    assert not counts.add(read, decision)
    clock.advance(seconds=61)
    later: Any = call("memory.recall", "read")
    assert counts.add(later, decision)
    taken = counts.take()
    assert taken is not None
    assert [row["count"] for row in taken["allowed"]] == [1]
    assert not counts.add(later, decision)
