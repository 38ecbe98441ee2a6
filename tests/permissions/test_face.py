"""The permissions server as a host sees it: tools, sizes, resources, prompts, and forms that answer questions."""

import json
from typing import Any

import pytest

from agentstead.kit import Home, operation_of
from agentstead.kit.published import tool
from agentstead.permissions.server import SERVER
from agentstead.policy import get_approval
from agentstead.state import Reading, SimulatedClock
from tests.permissions.conftest import ERAS, HOST, Connect, ask

CORE_BYTES = 6_000
CORE = {
    *("permission_check", "permission_explain", "permission_request"),
    *("approval_get", "permission_status", "permission_prompt"),
}


def test_the_core_tools_keep_to_their_share() -> None:
    assert {each.name for each in SERVER.tools("core")} == CORE
    listed = [
        tool(each, shallow=True).model_dump(mode="json", by_alias=True, exclude_none=True) for each in SERVER.tools()
    ]
    size = len(json.dumps({"tools": listed}, separators=(",", ":"), ensure_ascii=False).encode())
    print(f"permissions: {len(listed)} core tools, {size} of {CORE_BYTES} bytes")
    assert size <= CORE_BYTES


def test_no_tool_widens_what_agents_may_do() -> None:
    names = {operation_of(fn).name for fn in SERVER.operations}
    widening = ("rule_add", "axes_set", "trust", "grant_create", "secret_put", "taint_clear")
    assert not names & set(widening)
    assert {each.server for each in SERVER.tools("full")} == {"permissions"}


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_the_core_tools_never_ask_even_where_everything_asks(era: str, connect: Connect, rules: Any) -> None:
    rules('[axes]\nrisk = "ask-all"\n')
    async with connect(era) as client:
        checked = await client.call_tool("permission_check", {"tool": "github/x"})
        status = await client.call_tool("permission_status", {})
        listed = await client.call_tool("grant_list", {})
    assert checked.structured_content["verdict"] == "ask"
    assert status.structured_content["policy"]["axes"]["risk"]["value"] == "ask-all"
    assert listed.content[0].text.startswith("permission.pending: ")


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_each_resource_reads_what_its_tool_reads(
    era: str, connect: Connect, home: Home, clock: SimulatedClock
) -> None:
    approval_id = await ask(home.enforcement, clock)
    decision_id = await home.state.read(Reading.value, "SELECT id FROM policy_decisions")
    async with connect(era) as client:
        status = json.loads((await client.read_resource("permissions://status")).contents[0].text)
        question = json.loads((await client.read_resource(f"permissions://approval/{approval_id}")).contents[0].text)
        decision = json.loads((await client.read_resource(f"permissions://decision/{decision_id}")).contents[0].text)
        listed = {str(each.uri) for each in (await client.list_resources()).resources}
    assert [each["approval_id"] for each in status["pending"]] == [approval_id]
    assert question["state"] == "pending"
    assert decision["decision_id"] == decision_id
    assert listed == {"permissions://status", f"permissions://approval/{approval_id}"}


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_the_prompts_are_short_texts_over_the_tools(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        explain = await client.get_prompt("explain-denial", {"decision_id": "pdc_1"})
        draft = await client.get_prompt("draft-rule", {"tool": "tree_promote"})
    assert "permission_explain with decision_id='pdc_1'" in explain.messages[0].content.text
    assert "permission_check for 'tree_promote'" in draft.messages[0].content.text


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("choose", "passes"), [("allow_once", True), ("deny_once", False)])
async def test_a_form_of_a_trusted_host_answers_in_the_same_call(
    era: str, connect: Connect, rules: Any, home: Home, choose: str, passes: bool
) -> None:
    rules('[[rule]]\nid = "q"\neffect = "ask"\naction = ["permissions.grant_list"]\n')
    async with connect(era, choose=choose) as client:
        answer = await client.call_tool("grant_list", {})
    text = answer.content[0].text
    assert answer.is_error is not passes
    assert passes or text.startswith("permission.denied: A person refused this")
    approval_id = await home.state.read(Reading.value, "SELECT id FROM approvals")
    approval = await home.state.read(get_approval, approval_id)
    assert (approval.answer, approval.proof, approval.answered_by) == (choose, "elicited", HOST.text)


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_form_of_a_host_that_is_not_trusted_is_never_shown(era: str, connect: Connect, rules: Any) -> None:
    rules('[[rule]]\nid = "q"\neffect = "ask"\naction = ["permissions.grant_list"]\n')
    async with connect(era, name="stranger", choose="allow_once") as client:
        answer = await client.call_tool("grant_list", {})
    assert answer.is_error
    assert "agentstead answer apr_" in answer.content[0].text


@pytest.mark.anyio
async def test_starting_settles_what_is_overdue_and_forgets_old_rows(home: Home, clock: SimulatedClock) -> None:
    approval_id = await ask(home.enforcement, clock)
    clock.advance(seconds=90 * 86_400)
    await SERVER.startup(home)
    assert (await home.state.read(get_approval, approval_id)).state == "expired"
    assert await home.state.read(Reading.value, "SELECT COUNT(*) FROM policy_decisions") == 0


@pytest.mark.anyio
async def test_a_change_names_the_resources_that_it_changes(home: Home, clock: SimulatedClock) -> None:
    approval_id = await ask(home.enforcement, clock)
    entries = await home.state.read(Reading.entries, 0, kinds=("permissions.approval.*",))
    assert list(SERVER.changes(entries[-1])) == [f"permissions://approval/{approval_id}", "permissions://status"]
