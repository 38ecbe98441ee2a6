"""Whose answer counts, which answers are offered, what each makes, and that the first one wins."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentstead.policy import CallFacts, Enforcement, get_approval, list_approvals, list_grants, trust_host, withdraw
from agentstead.policy.answers import options_for
from agentstead.policy.machines import CHOICES
from agentstead.state import AgentsteadError, Conflict, Denied, Invalid, NotFound, PendingAnswer, SimulatedClock, State

pytestmark = pytest.mark.anyio

Calls = Callable[..., CallFacts]
SESSION = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"
DAY_US = 86_400 * 10**6


async def _asked(enforcement: Enforcement, call: CallFacts) -> str:
    with pytest.raises(PendingAnswer) as caught:
        await enforcement.enter(call)
    return str(caught.value.details["approval_id"])


@pytest.mark.parametrize(
    ("by", "proof", "refusal"),
    [
        ("person", "terminal", ""),
        ("host", "elicited", ""),
        ("operator", "operator", ""),
        ("script", "terminal", "approval.not_approver"),
        ("captive", "terminal", "approval.self"),
        ("person", "elicited", "approval.not_approver"),
        ("person", "operator", "approval.not_approver"),
        ("stranger", "elicited", "approval.not_approver"),
        ("stranger", "terminal", "approval.not_approver"),
        ("host", "operator", "approval.self"),
        ("stranger", "operator", "approval.not_approver"),
        ("host", "host_trusted", "approval.not_approver"),
        ("person", "page", "approval.not_approver"),
        ("person", "code", "approval.not_approver"),
        ("worker", "elicited", "approval.self"),
        ("agent", "elicited", "approval.self"),
        ("agent", "terminal", "approval.self"),
        ("agent", "operator", "approval.self"),
        ("extension", "elicited", "approval.self"),
    ],
)
async def test_each_kind_of_caller_answers_by_the_proofs_that_are_its_own(
    enforcement: Enforcement, state: State, call: Calls, who: Any, by: str, proof: Any, refusal: str
) -> None:
    approval_id = await _asked(enforcement, call())
    if not refusal:
        settled = await enforcement.answer(approval_id, "allow_once", by=getattr(who, by), proof=proof)
        assert (settled.state, settled.proof, settled.answered_by) == ("allowed", proof, getattr(who, by).text)
        return
    with pytest.raises(Denied) as caught:
        await enforcement.answer(approval_id, "allow_once", by=getattr(who, by), proof=proof)
    assert caught.value.code == refusal
    assert "agentstead answer" in caught.value.remedy
    assert (await state.read(get_approval, approval_id)).state == "pending"
    assert await state.read(list_grants) == []


async def test_an_operator_cannot_answer_what_it_asked_itself(enforcement: Enforcement, call: Calls, who: Any) -> None:
    approval_id = await _asked(enforcement, call(principal=who.operator))
    with pytest.raises(Denied, match=r"approval\.self"):
        await enforcement.answer(approval_id, "allow_once", by=who.operator, proof="operator")


async def test_the_form_of_a_host_carries_its_persons_answer_to_its_own_question(
    enforcement: Enforcement, call: Calls, who: Any
) -> None:
    approval_id = await _asked(enforcement, call())
    form = await enforcement.question(approval_id, who.host)
    assert form is not None
    assert "host:desk-host wants to use" in form.text
    assert form.options == ("allow_once", "deny_once", "deny_always")
    await enforcement.answer_elicited(approval_id, "allow_once", principal=who.host)
    assert (await enforcement.enter(call())).passed_by == "grant"


async def test_no_form_is_shown_by_a_host_that_is_not_trusted_until_a_person_trusts_it(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    approval_id = await _asked(enforcement, call())
    assert await enforcement.question(approval_id, who.stranger) is None
    await state.write(trust_host, "other-host", forms_only=True)
    assert await enforcement.question(approval_id, who.stranger) is not None
    await enforcement.answer_elicited(approval_id, "deny_once", principal=who.stranger)


async def test_no_form_is_shown_for_what_is_settled_or_unknown(enforcement: Enforcement, call: Calls, who: Any) -> None:
    approval_id = await _asked(enforcement, call())
    await enforcement.answer_elicited(approval_id, "deny_once", principal=who.host)
    assert await enforcement.question(approval_id, who.host) is None
    assert await enforcement.question("apr_unknown", who.host) is None


async def test_the_first_of_many_answers_at_once_wins_and_the_others_see_it(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    approval_id = await _asked(enforcement, call())
    seen: list[Any] = []

    async def one(choice: str, by: Any, proof: Any) -> None:
        try:
            seen.append(await enforcement.answer(approval_id, choice, by=by, proof=proof))
        except Conflict as error:
            seen.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one, "allow_once", who.person, "terminal")
            group.start_soon(one, "deny_once", who.host, "elicited")
    winners = [each for each in seen if not isinstance(each, AgentsteadError)]
    assert len(winners) == 1
    losers = [each for each in seen if isinstance(each, AgentsteadError)]
    assert {each.code for each in losers} == {"approval.settled"}
    assert all(each.details["answer"] == winners[0].answer for each in losers)
    assert len(await state.read(list_grants)) == (1 if winners[0].answer == "allow_once" else 0)


async def test_an_answer_that_is_not_offered_changes_nothing(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    approval_id = await _asked(enforcement, call())
    for choice in ("allow_session", "allow_workspace", "yes", ""):
        with pytest.raises(Invalid, match="Choose one of allow_once, allow_until"):
            await enforcement.answer(approval_id, choice, by=who.person, proof="terminal")
    assert (await state.read(get_approval, approval_id)).state == "pending"


@pytest.mark.parametrize(
    ("session_id", "workspace_id", "reusable", "missing"),
    [
        ("ses_1", "wsp_1", True, set()),
        ("", "wsp_1", True, {"allow_session"}),
        ("ses_1", "", True, {"allow_workspace"}),
        ("ses_1", "wsp_1", False, set(CHOICES) - {"allow_once", "deny_once"}),
    ],
)
def test_only_answers_that_make_sense_are_offered(
    session_id: str, workspace_id: str, reusable: bool, missing: set[str]
) -> None:
    offered = options_for(session_id=session_id, workspace_id=workspace_id, reusable=reusable)
    assert set(CHOICES) - set(offered) == missing


@pytest.mark.parametrize(
    ("choice", "more", "code"),
    [
        ("allow_until", {}, "grant.expiry_required"),
        ("allow_until", {"until_us": 5}, "grant.expiry_required"),
        ("allow_until", {"days": 91}, "grant.too_wide"),
        ("allow_uses", {}, "grant.too_wide"),
        ("allow_uses", {"uses": 0}, "grant.too_wide"),
        ("allow_uses", {"uses": 10_001}, "grant.too_wide"),
    ],
)
async def test_no_grant_is_without_a_bound(
    enforcement: Enforcement, state: State, call: Calls, who: Any, choice: str, more: dict[str, Any], code: str
) -> None:
    approval_id = await _asked(enforcement, call())
    if "days" in more:
        more = {"until_us": state.clock.now_us() + more["days"] * DAY_US}
    with pytest.raises(Invalid) as caught:
        await enforcement.answer(approval_id, choice, by=who.person, proof="terminal", **more)
    assert caught.value.code == code
    assert (await state.read(get_approval, approval_id)).state == "pending"


async def test_a_date_is_kept_to_the_microsecond(
    enforcement: Enforcement, state: State, call: Calls, who: Any, clock: SimulatedClock
) -> None:
    until_us = clock.now_us() + 3 * DAY_US
    approval_id = await _asked(enforcement, call())
    await enforcement.answer(approval_id, "allow_until", by=who.person, proof="terminal", until_us=until_us)
    (grant,) = await state.read(list_grants)
    assert (grant.scope, grant.expires_at, grant.created_by) == ("until", until_us, "user")
    clock.advance(seconds=3 * 86_400 - 1)
    assert (await enforcement.enter(call(arguments={"n": 1}))).passed_by == "grant"
    clock.advance(seconds=1)
    await _asked(enforcement, call())


async def test_a_note_is_kept_without_secrets(state: State, call: Calls, who: Any, home_path: Any) -> None:
    from agentstead import identity, policy
    from agentstead.config import Settings
    from agentstead.policy.redact import Redactor

    redactor = Redactor({})
    redactor.register("vault", "correct horse battery")
    again = await State.open(home_path, sets=(identity.MIGRATIONS, policy.MIGRATIONS), redactor=redactor)
    enforcement = Enforcement(again, home_path, settings=Settings(home_path, environ={}))
    approval_id = await _asked(enforcement, call(arguments={"text": "say correct horse battery"}))
    await enforcement.answer(
        approval_id, "deny_once", by=who.person, proof="terminal", note="not correct horse battery"
    )
    approval = await again.read(get_approval, approval_id)
    assert approval.note == "not [redacted:vault]"
    assert '"say [redacted:vault]"' in approval.summary
    await again.close()
    stored = b"".join(path.read_bytes() for path in home_path.glob("state.db*"))
    assert b"correct horse" not in stored


async def test_a_question_is_withdrawn_by_its_asker_or_the_person_alone(
    enforcement: Enforcement, state: State, call: Calls
) -> None:
    approval_id = await _asked(enforcement, call())
    with pytest.raises(Denied, match="did not ask"):
        await state.write(withdraw, approval_id, by="host:other-host")
    assert (await state.write(withdraw, approval_id, by="host:desk-host")).state == "canceled"
    with pytest.raises(Conflict, match=r"approval\.settled"):
        await state.write(withdraw, approval_id, by="user")


async def test_what_was_never_asked_cannot_be_answered(enforcement: Enforcement, who: Any) -> None:
    with pytest.raises(NotFound, match=r"approval\.not_found"):
        await enforcement.answer("apr_1", "allow_once", by=who.person, proof="terminal")


async def test_lists_filter_by_state_session_and_place_and_page_by_id(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    ids = [await _asked(enforcement, call(arguments={"n": n})) for n in range(3)]
    in_session = await _asked(enforcement, call(session_id=SESSION))
    await enforcement.answer(ids[0], "deny_once", by=who.person, proof="terminal")
    pending = await state.read(list_approvals, state="pending")
    assert {each.id for each in pending} == {ids[1], ids[2], in_session}
    assert [each.id for each in await state.read(list_approvals, session_id=SESSION)] == [in_session]
    everything = await state.read(list_approvals)
    assert [each.id for each in everything] == sorted((*ids, in_session), reverse=True)
    second_page = await state.read(list_approvals, after=everything[1].id, most=1)
    assert [each.id for each in second_page] == [everything[2].id]
