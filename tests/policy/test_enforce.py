"""Enforcement: what passes without a question, what asks, and how an answer lets the retried call through, once."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentstead.policy import CallFacts, Enforcement, Ticket, approvals, find_decision, get_approval, revoke_grant
from agentstead.state import Conflict, Denied, Exhausted, PendingAnswer, Reading, SimulatedClock, State, Tx

pytestmark = pytest.mark.anyio

Calls = Callable[..., CallFacts]
Rules = Callable[..., None]
Build = Callable[..., Enforcement]

SESSION = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"
DENY = '[[rule]]\nid = "no"\neffect = "deny"\naction = ["workspace.*"]\nreason = "Not here."\ninstead = "Fork first."\n'


async def _kinds(state: State) -> list[str]:
    return [entry.kind for entry in await state.read(Reading.entries, 0)]


async def _rows(state: State, table: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await state.read(Reading.all, f"SELECT * FROM {table} ORDER BY created_at, id")]


async def _asked(enforcement: Enforcement, call: CallFacts) -> str:
    with pytest.raises(PendingAnswer, match=r"permission\.pending") as caught:
        await enforcement.enter(call)
    return str(caught.value.details["approval_id"])


async def _allow(enforcement: Enforcement, call: CallFacts, who: Any, choice: str = "allow_once", **more: Any) -> str:
    approval_id = await _asked(enforcement, call)
    await enforcement.answer(approval_id, choice, by=who.person, proof="terminal", **more)
    return approval_id


async def _run(state: State, enforcement: Enforcement, ticket: Ticket, *, completed: bool = True) -> None:
    await state.write(lambda tx: ticket.spend(tx))
    await enforcement.settle(ticket, completed=completed)


@pytest.mark.parametrize(("action", "risk"), [("memory.recall", "read"), ("sessions.task_save", "write")])
async def test_an_allowed_read_or_write_touches_no_database(
    enforcement: Enforcement, state: State, call: Calls, action: str, risk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_args: object, **_more: object) -> None:
        raise AssertionError("the database was touched")

    monkeypatch.setattr(state, "read", refuse)
    monkeypatch.setattr(state, "write", refuse)
    ticket = await enforcement.enter(call(action, risk))
    assert (ticket.passed_by, ticket.decision_id, ticket.needs_settling) == ("verdict", "", False)
    await enforcement.settle(ticket, completed=True)


async def test_a_call_that_asks_stores_one_question_with_everything_that_a_person_needs(
    enforcement: Enforcement, state: State, call: Calls, clock: SimulatedClock
) -> None:
    asked = call(arguments={"fork_id": "frk_1", "message": "line\nbreak\u202e"})
    with pytest.raises(PendingAnswer) as caught:
        await enforcement.enter(asked)
    details = caught.value.details
    assert details["answer"] == f"agentstead answer {details['approval_id']}"
    assert details["expires_at"] == clock.now_us() + 86_400 * 10**6
    assert caught.value.retryable
    (row,) = await _rows(state, "approvals")
    assert (row["state"], row["tool"], row["principal"], row["asks"]) == ("pending", "promote", "host:desk-host", 1)
    assert "host:desk-host wants to use workspace/promote." in row["summary"]
    assert "action workspace.promote (destructive)" in row["summary"]
    assert '  message = "line\\nbreak\\u{202E}"' in row["summary"]
    assert row["id"] not in row["summary"]
    (decision,) = await _rows(state, "policy_decisions")
    assert (decision["verdict"], decision["outcome"], decision["approval_id"]) == ("ask", "pending", row["id"])
    assert await _kinds(state) == ["permissions.approval.asked", "permissions.decision.recorded"]


async def test_asking_again_counts_and_shows_the_same_text(
    enforcement: Enforcement, state: State, call: Calls, clock: SimulatedClock
) -> None:
    first = await _asked(enforcement, call())
    text = (await state.read(get_approval, first)).summary
    clock.advance(seconds=30)
    assert await _asked(enforcement, call()) == first
    approval = await state.read(get_approval, first)
    assert (approval.asks, approval.summary) == (2, text)
    assert len(await _rows(state, "policy_decisions")) == 1


async def test_other_arguments_or_another_caller_are_another_question(
    enforcement: Enforcement, call: Calls, who: Any
) -> None:
    calls = [call(), call(arguments={"x": 1}), call(principal=who.stranger), call(session_id=SESSION)]
    assert len({await _asked(enforcement, each) for each in calls}) == 4


async def test_callers_of_one_lineage_share_a_question(enforcement: Enforcement, call: Calls, who: Any) -> None:
    child = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAW"
    first = await _asked(enforcement, call(session_id=SESSION, principal=who.agent))
    assert await _asked(enforcement, call(session_id=child, principal=who.host)) == first


async def test_allow_once_lets_exactly_this_call_through_exactly_once(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    approval_id = await _allow(enforcement, call(arguments={"a": 1}), who)
    await _asked(enforcement, call(arguments={"a": 2}))
    ticket = await enforcement.enter(call(arguments={"a": 1}))
    assert (ticket.passed_by, ticket.approval_id) == ("grant", approval_id)
    await _run(state, enforcement, ticket)
    approval = await state.read(get_approval, approval_id)
    assert (approval.state, approval.exec_state) == ("allowed", "completed")
    await _asked(enforcement, call(arguments={"a": 1}))
    recorded = await state.read(find_decision, ticket.decision_id)
    assert (recorded.outcome, recorded.grant_id, recorded.approval_id) == ("granted", ticket.grant_id, approval_id)
    assert "grant.used" in recorded.reasons


async def test_a_grant_is_spent_in_the_transaction_of_the_first_mutation(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    await _allow(enforcement, call(), who)
    ticket = await enforcement.enter(call())

    def fail(tx: Tx) -> None:
        ticket.spend(tx)
        raise RuntimeError("the mutation failed")

    with pytest.raises(RuntimeError):
        await state.write(fail)
    assert ticket.needs_settling
    assert (await _rows(state, "grants"))[0]["uses_left"] == 1
    await state.write(lambda tx: ticket.spend(tx))
    await state.write(lambda tx: ticket.spend(tx))
    assert ticket.spent
    assert (await _rows(state, "grants"))[0]["uses_left"] == 0
    assert (await _kinds(state)).count("permissions.grant.spent") == 1


async def test_of_two_calls_that_hold_the_last_use_one_passes(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    await _allow(enforcement, call(), who)
    tickets = [await enforcement.enter(call()), await enforcement.enter(call())]
    done: list[str] = []

    async def spend(ticket: Ticket) -> None:
        try:
            await state.write(lambda tx: ticket.spend(tx))
        except Denied as error:
            done.append("refused, to be repeated" if error.retryable else "refused")
        else:
            done.append("passed")

    async with anyio.create_task_group() as group:
        for ticket in tickets:
            group.start_soon(spend, ticket)
    assert sorted(done) == ["passed", "refused, to be repeated"]


@pytest.mark.parametrize("how", ["revoked", "expired", "denied"])
async def test_what_ends_between_entering_and_the_first_mutation_stops_the_call(
    enforcement: Enforcement, state: State, call: Calls, who: Any, clock: SimulatedClock, rules: Rules, how: str
) -> None:
    await _allow(enforcement, call(), who)
    ticket = await enforcement.enter(call())
    if how == "revoked":
        await state.write(revoke_grant, ticket.grant_id)
    elif how == "expired":
        clock.advance(seconds=901)
    else:
        rules(DENY)
        clock.advance(seconds=2)
    with pytest.raises(Denied, match="lost its permission"):
        await state.write(lambda tx: ticket.spend(tx))


async def test_a_body_without_a_mutation_spends_at_its_end(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    approval_id = await _allow(enforcement, call(), who)
    ticket = await enforcement.enter(call())
    await enforcement.settle(ticket, completed=False)
    assert (await state.read(get_approval, approval_id)).exec_state == "failed"
    await _asked(enforcement, call())


async def test_a_once_grant_ends_after_fifteen_minutes(
    enforcement: Enforcement, call: Calls, who: Any, clock: SimulatedClock
) -> None:
    await _allow(enforcement, call(), who)
    clock.advance(seconds=899)
    assert (await enforcement.enter(call())).passed_by == "grant"
    clock.advance(seconds=2)
    await _asked(enforcement, call())


async def test_a_session_grant_covers_the_session_and_nothing_else(
    enforcement: Enforcement, state: State, call: Calls, who: Any, clock: SimulatedClock
) -> None:
    await _allow(enforcement, call(session_id=SESSION), who, "allow_session")
    for _ in range(3):
        ticket = await enforcement.enter(call(session_id=SESSION, arguments={"n": clock.now_us()}))
        await _run(state, enforcement, ticket)
    await _asked(enforcement, call())
    await _asked(enforcement, call(session_id=SESSION, principal=who.stranger))
    await _asked(enforcement, call("workspace.restore", session_id=SESSION))
    clock.advance(seconds=8 * 3600)
    await _asked(enforcement, call(session_id=SESSION))


async def test_a_number_of_uses_is_counted_down(enforcement: Enforcement, state: State, call: Calls, who: Any) -> None:
    await _allow(enforcement, call(), who, "allow_uses", uses=2)
    for n in range(2):
        await _run(state, enforcement, await enforcement.enter(call(arguments={"n": n})))
    await _asked(enforcement, call())


async def test_deny_once_refuses_the_very_next_attempts_and_may_be_asked_again_later(
    enforcement: Enforcement, call: Calls, who: Any, clock: SimulatedClock
) -> None:
    first = await _asked(enforcement, call())
    await enforcement.answer(first, "deny_once", by=who.person, proof="terminal", note="after lunch")
    with pytest.raises(Denied, match="after lunch"):
        await enforcement.enter(call())
    clock.advance(seconds=61)
    assert await _asked(enforcement, call()) != first


async def test_deny_always_refuses_without_asking_until_it_ends(
    enforcement: Enforcement, state: State, call: Calls, who: Any, clock: SimulatedClock
) -> None:
    first = await _asked(enforcement, call())
    await enforcement.answer(first, "deny_always", by=who.person, proof="terminal")
    clock.advance(seconds=3600)
    with pytest.raises(Denied, match="a person's standing no") as caught:
        await enforcement.enter(call(arguments={"other": True}))
    recorded = await state.read(find_decision, caught.value.details["decision_id"])
    assert (recorded.outcome, "grant.deny" in recorded.reasons) == ("denied", True)
    clock.advance(seconds=90 * 86_400)
    await _asked(enforcement, call())


async def test_a_standing_no_beats_a_standing_yes(enforcement: Enforcement, call: Calls, who: Any) -> None:
    no = await _asked(enforcement, call(session_id=SESSION, arguments={"a": 1}))
    yes = await _asked(enforcement, call(session_id=SESSION, arguments={"a": 2}))
    await enforcement.answer(no, "deny_always", by=who.person, proof="terminal")
    await enforcement.answer(yes, "allow_session", by=who.person, proof="terminal")
    with pytest.raises(Denied):
        await enforcement.enter(call(session_id=SESSION))


async def test_a_denied_call_says_which_rule_where_why_and_what_instead(
    enforcement: Enforcement, state: State, call: Calls, rules: Rules
) -> None:
    rules(DENY)
    with pytest.raises(Denied, match=r"permission\.denied") as caught:
        await enforcement.enter(call(arguments={"secret_plan": "tell nobody"}))
    text = str(caught.value)
    for part in ("action workspace.promote", "rule no (user, mine.toml:2)", "Not here.", "Instead: Fork first."):
        assert part in text
    assert "permission_explain" in text
    assert "tell nobody" not in text
    (row,) = await _rows(state, "policy_decisions")
    assert row["id"] == caught.value.details["decision_id"]
    assert "tell nobody" not in str((await state.read(find_decision, row["id"])).entry)


async def test_a_new_deny_rule_supersedes_the_open_question(
    enforcement: Enforcement, state: State, call: Calls, rules: Rules, who: Any
) -> None:
    approval_id = await _asked(enforcement, call())
    rules(DENY)
    with pytest.raises(Denied):
        await enforcement.enter(call())
    assert (await state.read(get_approval, approval_id)).state == "superseded"
    with pytest.raises(Conflict, match=r"approval\.settled"):
        await enforcement.answer(approval_id, "allow_once", by=who.person, proof="terminal")


async def test_a_deny_rule_beats_a_grant(enforcement: Enforcement, call: Calls, rules: Rules, who: Any) -> None:
    await _allow(enforcement, call(), who)
    rules(DENY)
    with pytest.raises(Denied, match="rule no"):
        await enforcement.enter(call())


async def test_the_person_is_not_asked_what_they_do_themselves_but_denies_hold(
    enforcement: Enforcement, state: State, call: Calls, rules: Rules, who: Any
) -> None:
    ticket = await enforcement.enter(call(principal=who.script))
    assert (ticket.passed_by, ticket.decision.verdict) == ("person", "ask")
    await _run(state, enforcement, ticket)
    (row,) = await _rows(state, "policy_decisions")
    assert (row["outcome"], row["principal"]) == ("person", "user")
    rules(DENY)
    with pytest.raises(Denied):
        await enforcement.enter(call(principal=who.person))


async def test_a_command_that_an_agent_runs_is_not_the_person(enforcement: Enforcement, call: Calls, who: Any) -> None:
    await _asked(enforcement, call(principal=who.captive))


async def test_a_tool_that_asks_for_its_subject_itself_is_let_in_unless_denied(
    enforcement: Enforcement, call: Calls, rules: Rules
) -> None:
    assert (await enforcement.enter(call(asks="subject"))).passed_by == "subject"
    rules(DENY)
    with pytest.raises(Denied):
        await enforcement.enter(call(asks="subject"))


async def test_the_tools_that_ask_answer_only_to_deny_rules(enforcing: Build, call: Calls, rules: Rules) -> None:
    rules("[[rule]]\nid = 'q'\neffect = 'ask'\naction = ['permissions.*']")
    strict = enforcing(permissions__axes__risk="ask-all")
    for action in ("permissions.check", "permissions.approval_get", "permissions.prompt"):
        assert (await strict.enter(call(action, "write"))).passed_by == "asking"
    await _asked(strict, call("permissions.grant_revoke", "write"))
    rules("[[rule]]\nid = 'q'\neffect = 'deny'\naction = ['permissions.check']")
    with pytest.raises(Denied):
        await enforcing().enter(call("permissions.check", "read"))


async def test_where_nobody_is_asked_the_call_is_refused_and_nothing_waits(
    enforcing: Build, state: State, call: Calls
) -> None:
    with pytest.raises(Denied, match=r"permission\.headless"):
        await enforcing(permissions__headless="deny").enter(call())
    assert await _rows(state, "approvals") == []
    (row,) = await _rows(state, "policy_decisions")
    assert row["outcome"] == "headless"


async def test_a_question_expires_and_the_next_attempt_asks_anew(
    enforcing: Build, state: State, call: Calls, clock: SimulatedClock, who: Any
) -> None:
    enforcement = enforcing(approvals__ttl_s=60)
    first = await _asked(enforcement, call())
    clock.advance(seconds=60)
    with pytest.raises(Conflict, match=r"approval\.expired"):
        await enforcement.answer(first, "allow_once", by=who.person, proof="terminal")
    second = await _asked(enforcement, call())
    assert second != first
    assert (await state.read(get_approval, first)).state == "expired"


async def test_too_many_open_questions_are_refused_and_answering_makes_room(
    enforcing: Build, call: Calls, who: Any
) -> None:
    enforcement = enforcing(approvals__max_pending=2)
    first = await _asked(enforcement, call(arguments={"n": 1}))
    await _asked(enforcement, call(arguments={"n": 2}))
    with pytest.raises(Exhausted, match=r"approval\.full"):
        await enforcement.enter(call(arguments={"n": 3}))
    await enforcement.answer(first, "deny_once", by=who.person, proof="terminal")
    await _asked(enforcement, call(arguments={"n": 3}))


async def test_a_session_may_have_twenty_open_questions(enforcement: Enforcement, call: Calls) -> None:
    for n in range(approvals.SESSION_MOST):
        await _asked(enforcement, call(session_id=SESSION, arguments={"n": n}))
    with pytest.raises(Exhausted, match="This session has 20"):
        await enforcement.enter(call(session_id=SESSION, arguments={"n": -1}))


async def test_a_restart_keeps_questions_and_grants(enforcing: Build, state: State, call: Calls, who: Any) -> None:
    first = await _asked(enforcing(), call())
    assert await _asked(enforcing(), call()) == first
    await enforcing().answer(first, "allow_once", by=who.person, proof="terminal")
    assert (await enforcing().enter(call())).passed_by == "grant"


async def test_what_a_crash_left_in_flight_is_uncertain_and_its_grant_stays_spent(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    from agentstead.state import repair_all

    approval_id = await _allow(enforcement, call(), who)
    ticket = await enforcement.enter(call())
    await state.write(lambda tx: ticket.spend(tx))
    assert await repair_all(state, [approvals.REPAIR]) == []
    assert (await state.read(get_approval, approval_id)).exec_state == "uncertain"
    await _asked(enforcement, call())


async def test_an_escalated_call_that_a_rule_allows_is_recorded_with_its_mutation(
    enforcement: Enforcement, state: State, call: Calls, rules: Rules
) -> None:
    rules("[[rule]]\nid = 'go'\neffect = 'allow'\naction = ['workspace.promote']")
    ticket = await enforcement.enter(call())
    assert await _rows(state, "policy_decisions") == []
    await _run(state, enforcement, ticket)
    (row,) = await _rows(state, "policy_decisions")
    assert (row["verdict"], row["outcome"], row["id"]) == ("allow", "run", ticket.decision_id)


async def test_a_tool_of_another_server_can_only_be_allowed_once(
    enforcement: Enforcement, state: State, call: Calls
) -> None:
    asked = call("host/Bash", "external", server="host", tool="Bash", door="prompt", session_id=SESSION)
    approval = await state.read(get_approval, await _asked(enforcement, asked))
    assert approval.options == ("allow_once", "deny_once")


async def test_allowed_calls_are_counted_by_minute_tool_and_rule(
    enforcement: Enforcement, state: State, call: Calls, clock: SimulatedClock, who: Any
) -> None:
    for _ in range(3):
        await enforcement.enter(call("memory.recall", "read"))
    await enforcement.enter(call("memory.recall", "read", principal=who.script))
    await enforcement.enter(call("stranger.look", "read"))
    assert await _kinds(state) == []
    clock.advance(seconds=60)
    await enforcement.enter(call("memory.get", "read"))
    (entry,) = await state.read(Reading.entries, 0)
    assert entry.kind == "permissions.allows.counted"
    assert entry.body is not None
    assert entry.body["allowed"] == [
        {"class": "read", "count": 3, "rules": "suite.read-write", "tool": "memory/recall"},
        {"class": "read", "count": 1, "rules": "axis", "tool": "stranger/look"},
    ]
    await enforcement.flush()
    await enforcement.flush()
    assert await _kinds(state) == ["permissions.allows.counted"] * 2
