"""Checking, explaining, asking ahead, waiting and answering, through the operations as every door calls them."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from agentstead.kit import Home
from agentstead.permissions import answering, service
from agentstead.permissions.ways import ways
from agentstead.policy import list_grants
from agentstead.state import Conflict, Denied, Invalid, NotFound, PendingAnswer, Reading, SimulatedClock
from tests.permissions.conftest import AGENT, HOST, OPERATOR, PERSON, Rules, ask

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
DENY = '[[rule]]\nid = "no"\neffect = "deny"\naction = ["memory.*"]\nreason = "Not here."\n'


async def test_a_check_says_the_verdict_the_reasons_and_what_would_allow_it(home: Home, invoke: Invoke) -> None:
    allowed = await invoke(
        home, service.permission_check, tool="memory_recall", arguments={"query": "x"}, principal=HOST
    )
    assert (allowed.verdict, allowed.reasons, allowed.would_allow) == ("allow", ["rule.allow"], [])
    asked = await invoke(home, service.permission_check, tool="github/merge_pull", principal=HOST)
    assert (asked.verdict, asked.reasons) == ("ask", ["axis.risk", "grant.none"])
    assert asked.accesses == [{"text": "mcp github/merge_pull", "class": "external", "verdict": "ask"}]
    once, for_good = asked.would_allow
    assert once == "Call it: a person is asked."
    assert for_good.endswith('effect = "allow" and mcp = { server = "github", tool = "merge_pull" }.')
    assert "ask: mcp github/merge_pull (axis.risk, grant.none)" in asked.summary()


async def test_what_a_check_advises_works(home: Home, invoke: Invoke, rules: Rules) -> None:
    rules('[[rule]]\nid = "go"\neffect = "allow"\nmcp = { server = "github", tool = "merge_pull" }\n')
    checked = await invoke(home, service.permission_check, tool="mcp__github__merge_pull", principal=HOST)
    assert checked.verdict == "allow"


async def test_a_full_check_names_each_rule_file_line_and_layer(home: Home, invoke: Invoke, rules: Rules) -> None:
    rules(DENY)
    checked = await invoke(
        home,
        service.permission_check,
        tool="memory_recall",
        arguments={"query": "x"},
        detail="full",
        principal=HOST,
    )
    (access,) = checked.accesses
    assert checked.verdict == access["verdict"] == "deny"
    assert {"id": "no", "layer": "user", "effect": "deny", "file": "mine.toml", "line": 2} in access["rules"]
    assert access["layers"]["user"] == "deny"
    assert checked.would_allow == ["No grant lifts a deny rule: a person removes or narrows rule no (mine.toml:2)."]


async def test_a_check_records_nothing_and_asks_nobody(home: Home, invoke: Invoke) -> None:
    before = await home.state.head()
    await invoke(home, service.permission_check, tool="github/merge_pull", principal=HOST)
    assert await home.state.head() == before
    assert await home.state.read(Reading.value, "SELECT COUNT(*) FROM approvals") == 0


@pytest.mark.parametrize("tool", ["no_such_tool", "", "a b/c", "../x", "mcp__only"])
async def test_an_unknown_tool_is_said(home: Home, invoke: Invoke, tool: str) -> None:
    with pytest.raises(NotFound, match=r"tool\.not_found"):
        await invoke(home, service.permission_check, tool=tool)


async def test_arguments_that_the_tool_would_refuse_are_refused_by_the_check(home: Home, invoke: Invoke) -> None:
    with pytest.raises(Invalid, match="memory_recall cannot be called so"):
        await invoke(home, service.permission_check, tool="memory_recall", arguments={"nonsense": 1})


async def test_a_check_sees_grants(home: Home, invoke: Invoke, clock: SimulatedClock) -> None:
    asked = {"tool": "github/merge_pull", "arguments": {"n": 1}, "principal": HOST}
    requested = await invoke(home, service.permission_request, calls=[_wanted(asked)], principal=HOST)
    approval_id = requested.calls[0]["approval_id"]
    await home.enforcement.answer(approval_id, "allow_once", by=PERSON, proof="terminal")
    checked = await invoke(home, service.permission_check, **asked)
    assert (checked.verdict, "grant.used" in checked.reasons, bool(checked.grant_id)) == ("allow", True, True)
    other = await invoke(home, service.permission_check, **{**asked, "arguments": {"n": 2}})
    assert other.verdict == "ask"
    clock.advance(seconds=901)
    expired = await invoke(home, service.permission_check, **asked)
    assert (expired.verdict, expired.reasons) == ("ask", ["axis.risk", "grant.expired"])


async def test_a_refusal_is_explained_by_its_decision_and_a_question_by_its_approval(
    home: Home, invoke: Invoke, rules: Rules, clock: SimulatedClock
) -> None:
    approval_id = await ask(home.enforcement, clock)
    explained = await invoke(home, service.permission_explain, approval_id=approval_id)
    assert (explained.verdict, explained.outcome, explained.call["tool"]) == (
        "ask",
        "pending",
        "workspace/tree_promote",
    )
    assert explained.would_allow[0] == f"A person answers it: agentstead answer {approval_id}."
    assert explained.approval["state"] == "pending"
    rules(DENY)
    with pytest.raises(Denied) as caught:
        await ask(home.enforcement, clock, action="memory.forget", tool="memory_forget")
    by_decision = await invoke(
        home, service.permission_explain, decision_id=caught.value.details["decision_id"], principal=HOST
    )
    assert by_decision.accesses[0]["rules"][0]["id"] == "no"
    assert "No grant lifts a deny rule" in by_decision.summary()


@pytest.mark.parametrize("given", [{}, {"decision_id": "pdc_1", "approval_id": "apr_1"}])
async def test_an_explanation_needs_exactly_one_id(home: Home, invoke: Invoke, given: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="Exactly one id"):
        await invoke(home, service.permission_explain, **given)


async def test_asking_ahead_stores_each_question_once_and_the_real_call_then_passes(
    home: Home, invoke: Invoke, clock: SimulatedClock
) -> None:
    wanted = [
        {"tool": "memory_recall", "arguments": {"query": "x"}},
        {"tool": "github/merge_pull", "arguments": {"n": 1}},
        {"tool": "github/merge_pull", "arguments": {"n": 2}},
    ]
    asked = await invoke(
        home, service.permission_request, calls=wanted, why="release day\u202e", scope="session", principal=HOST
    )
    assert [each["verdict"] for each in asked.calls] == ["allow", "ask", "ask"]
    first, second, third = (each["approval_id"] for each in asked.calls)
    assert first is None
    assert second != third
    assert asked.how_to_answer == f"A person runs: agentstead answer {second}; agentstead answer {third}"
    page = await invoke(home, answering.approval_list, principal=HOST)
    assert [each["approval_id"] for each in page.items] == [third, second]
    assert "It says why: release day\\u{202E} (for: session)" in page.items[0]["question"]
    again = await invoke(home, service.permission_request, calls=wanted[1:], principal=HOST)
    assert [each["approval_id"] for each in again.calls] == [second, third]


async def test_a_request_is_all_or_nothing_and_keeps_to_its_key(home: Home, invoke: Invoke) -> None:
    good = {"tool": "github/merge_pull", "arguments": {}}
    with pytest.raises(NotFound):
        await invoke(home, service.permission_request, calls=[good, {"tool": "nothing"}], principal=HOST)
    assert await home.state.read(Reading.value, "SELECT COUNT(*) FROM approvals") == 0
    first = await invoke(home, service.permission_request, calls=[good], idempotency_key="k", principal=HOST)
    again = await invoke(home, service.permission_request, calls=[good], idempotency_key="k", principal=HOST)
    assert again == first
    assert (await invoke(home, service.approval_get, approval_id=first.calls[0]["approval_id"])).record["asks"] == 1
    with pytest.raises(Conflict, match=r"key\.conflict"):
        await invoke(home, service.permission_request, calls=[good, good], idempotency_key="k", principal=HOST)


async def test_waiting_ends_with_the_answer_or_with_its_bound(
    home: Home, invoke: Invoke, clock: SimulatedClock
) -> None:
    approval_id = await ask(home.enforcement, clock)
    still = await invoke(home, service.approval_get, approval_id=approval_id, wait_s=0.05, principal=HOST)
    assert (still.state, still.how_to_answer) == ("pending", f"agentstead answer {approval_id}")
    got: list[Any] = []

    async def wait() -> None:
        got.append(await invoke(home, service.approval_get, approval_id=approval_id, wait_s=25, principal=HOST))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await home.enforcement.answer(approval_id, "allow_once", by=PERSON, proof="terminal", note="go")
    assert (got[0].state, got[0].answer, got[0].note) == ("allowed", "allow_once", "go")
    assert (got[0].record["answered_by"], got[0].record["proof"]) == ("user", "terminal")
    assert got[0].summary() == f"{approval_id} is allowed (allow_once by user). They say: go Repeat the call now."


async def test_an_overdue_question_reads_as_expired_before_it_is_swept(
    home: Home, invoke: Invoke, clock: SimulatedClock
) -> None:
    approval_id = await ask(home.enforcement, clock)
    clock.advance(seconds=86_400)
    assert (await invoke(home, service.approval_get, approval_id=approval_id, wait_s=25)).state == "expired"
    assert (await invoke(home, service.permission_status, part="pending")).pending == []


async def test_the_status_says_who_set_each_axis_and_what_is_wrong_with_the_files(
    home: Home, invoke: Invoke, rules: Rules, clock: SimulatedClock
) -> None:
    fresh = await invoke(home, service.permission_status, principal=HOST)
    assert fresh.policy["axes"] == {"risk": {"value": "ask-writes", "set_by": "default"}}
    assert [file["path"] for file in fresh.policy["files"]] == ["suite.toml"]
    assert fresh.summary() == "risk = ask-writes (default); 0 grants in force; 0 questions wait for a person."
    rules('[axes]\nrisk = "ask-all"\n')
    strict = await invoke(home, service.permission_status, part="axes", principal=HOST)
    assert strict.policy["axes"] == {"risk": {"value": "ask-all", "set_by": "mine.toml"}}
    assert (strict.grants, strict.pending) == (None, None)
    rules("[[rule]]\n")
    stale = await invoke(home, service.permission_status, principal=HOST)
    assert stale.policy["stale_layers"] == ["user"]
    assert "policy.syntax: mine.toml:2" in stale.policy["faults"][0]


async def test_the_status_lists_grants_and_questions_of_a_session(
    home: Home, invoke: Invoke, clock: SimulatedClock
) -> None:
    first = await ask(home.enforcement, clock)
    await ask(home.enforcement, clock, arguments={"n": 1})
    await home.enforcement.answer(first, "allow_uses", by=PERSON, proof="terminal", uses=3)
    status = await invoke(home, service.permission_status, principal=HOST)
    (grant,) = status.grants
    assert (grant["tool"], grant["uses_left"], grant["created_by"]) == ("workspace/tree_promote", 3, "user")
    assert len(status.pending) == 1
    none = await invoke(home, service.permission_status, session_id="ses_none", principal=HOST)
    assert (none.grants, none.pending) == ([], [])


@pytest.mark.parametrize(
    ("principal", "code"),
    [(HOST, "approval.not_approver"), (AGENT, "approval.self"), (OPERATOR, ""), (PERSON, "")],
)
async def test_the_answering_tool_is_for_approvers_alone(
    home: Home, invoke: Invoke, clock: SimulatedClock, principal: Any, code: str
) -> None:
    approval_id = await ask(home.enforcement, clock)
    given = {"approval_id": approval_id, "choice": "allow_once", "principal": principal}
    if code:
        with pytest.raises(Denied) as caught:
            await invoke(home, answering.approval_answer, **given)
        assert caught.value.code == code
        assert await home.state.read(list_grants) == []
    else:
        settled = await invoke(home, answering.approval_answer, **given)
        assert (settled.state, settled.record["answered_by"]) == ("allowed", principal.text)


async def test_an_asker_takes_its_question_back(home: Home, invoke: Invoke, clock: SimulatedClock) -> None:
    approval_id = await ask(home.enforcement, clock)
    with pytest.raises(Denied, match=r"approval\.not_approver"):
        await invoke(home, answering.approval_withdraw, approval_id=approval_id, principal=OPERATOR)
    assert (
        await invoke(home, answering.approval_withdraw, approval_id=approval_id, principal=HOST)
    ).state == "canceled"


async def test_lists_page_by_a_cursor_that_is_bound_to_its_filters(
    home: Home, invoke: Invoke, clock: SimulatedClock
) -> None:
    ids = [await ask(home.enforcement, clock, arguments={"n": n}) for n in range(5)]
    first = await invoke(home, answering.approval_list, limit=2)
    second = await invoke(home, answering.approval_list, limit=2, cursor=first.next_cursor)
    third = await invoke(home, answering.approval_list, limit=2, cursor=second.next_cursor)
    seen = [each["approval_id"] for page in (first, second, third) for each in page.items]
    assert seen == sorted(ids, reverse=True)
    assert third.next_cursor is None
    with pytest.raises(Invalid, match=r"cursor\.foreign"):
        await invoke(home, answering.approval_list, limit=2, state=None, cursor=first.next_cursor)


async def test_a_grant_is_listed_revoked_and_gone(home: Home, invoke: Invoke, clock: SimulatedClock) -> None:
    approval_id = await ask(home.enforcement, clock)
    await home.enforcement.answer(approval_id, "allow_uses", by=PERSON, proof="terminal", uses=3)
    (grant,) = (await invoke(home, answering.grant_list, principal=HOST)).items
    revoked = await invoke(home, answering.grant_revoke, grant_id=grant["grant_id"], principal=HOST)
    assert revoked.grant_id == grant["grant_id"]
    assert (await invoke(home, answering.grant_list, principal=HOST)).items == []
    with pytest.raises(PendingAnswer):
        await _again(home, clock)


async def test_references_of_this_server_are_known_to_the_others(home: Home, clock: SimulatedClock) -> None:
    approval_id = await ask(home.enforcement, clock)
    await home.enforcement.answer(approval_id, "allow_once", by=PERSON, proof="terminal")

    def look(reading: Reading) -> list[tuple[bool, str]]:
        (grant,) = list_grants(reading)
        decision = reading.value("SELECT id FROM policy_decisions")
        refs = [approval_id, grant.id, decision, "apr_0", "grn_0", "pdc_0"]
        return [(facts.exists, facts.state) for ref in refs for facts in [home.state.refs.look(reading, ref)]]

    known = [(True, "allowed"), (True, "in_force"), (True, "pending")]
    assert await home.state.read(look) == [*known, (False, ""), (False, ""), (False, "")]


def test_advice_is_given_only_where_it_is_true() -> None:
    access = {"text": "action a.b", "verdict": "ask", "reasons": ["axis.risk"], "rules": []}
    assert ways("allow", [access]) == []
    assert 'action = ["a.b"]' in ways("ask", [access])[1]
    rule = {"id": "q", "layer": "user", "effect": "ask", "file": "f.toml", "line": 3}
    by_rule = {**access, "reasons": ["rule.ask"], "rules": [rule]}
    assert ways("ask", [by_rule])[1] == "For good: a person removes or narrows rule q (f.toml:3)."
    assert "mends the policy file" in ways("ask", [{**access, "reasons": ["layer.broken"]}])[1]
    denied = {**access, "verdict": "deny"}
    assert "loosens the axis" in ways("deny", [denied])[0]
    assert "standing no" in ways("deny", [access])[0]


def _wanted(asked: dict[str, Any]) -> dict[str, Any]:
    return {"tool": asked["tool"], "arguments": asked["arguments"]}


async def _again(home: Home, clock: SimulatedClock) -> None:
    approval_id = await ask(home.enforcement, clock)
    raise PendingAnswer("permission.pending", approval_id)
