"""The host's permission prompt: byte-exact answers, a bounded wait, and a deny for every failure."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import jsonschema
import pytest

from agentstead.kit import Home
from agentstead.permissions.hosts import claude_code
from agentstead.permissions.prompt import failed, permission_prompt
from agentstead.policy import list_approvals
from agentstead.state import Reading, Unavailable
from tests.permissions.conftest import ERAS, HOST, PERSON, Connect, Rules

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
INPUT = {"command": "rm -rf build && echo 'é'", "timeout": 1.0, "nested": {"list": [1, None, True]}}
INPUT_TEXT = '{"command":"rm -rf build && echo \'é\'","timeout":1.0,"nested":{"list":[1,null,true]}}'
REFUSED = "A person refused this. They say: not now"
ALLOW_RULE = '[[rule]]\nid = "go"\neffect = "allow"\nmcp = { server = "host", tool = "Bash" }\n'
DENY_RULE = ALLOW_RULE.replace("allow", "deny")

# the closed union that the host reads: nothing but these members
UNION = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "behavior": {"const": "allow"},
                "updatedInput": {"type": "object"},
                "toolUseID": {"type": "string"},
                "decisionClassification": {"enum": ["user_temporary", "user_permanent", "user_reject"]},
            },
            "required": ["behavior", "updatedInput"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "behavior": {"const": "deny"},
                "message": {"type": "string", "minLength": 1},
                "interrupt": {"const": False},
                "toolUseID": {"type": "string"},
                "decisionClassification": {"enum": ["user_temporary", "user_permanent", "user_reject"]},
            },
            "required": ["behavior", "message", "interrupt"],
            "additionalProperties": False,
        },
    ]
}


async def _prompt(client: Any, tool_name: str = "Bash", **more: Any) -> str:
    answer = await client.call_tool("permission_prompt", {"tool_name": tool_name, "input": INPUT, **more})
    assert not answer.is_error
    assert answer.structured_content is None
    assert len(answer.content) == 1
    text = str(answer.content[0].text)
    jsonschema.validate(json.loads(text), UNION)
    return text


@pytest.mark.parametrize("era", ERAS)
async def test_an_allowed_call_is_answered_byte_for_byte(era: str, connect: Connect, rules: Rules) -> None:
    rules(ALLOW_RULE)
    async with connect(era) as client:
        assert await _prompt(client) == f'{{"behavior":"allow","updatedInput":{INPUT_TEXT}}}'
        with_id = await _prompt(client, tool_use_id="toolu_1")
        assert with_id == f'{{"behavior":"allow","updatedInput":{INPUT_TEXT},"toolUseID":"toolu_1"}}'
        assert await _prompt(client, permission_suggestions=[{"x": 1}], extra=None) == await _prompt(client)


@pytest.mark.parametrize("era", ERAS)
async def test_a_denied_call_names_its_rule(era: str, connect: Connect, rules: Rules) -> None:
    rules(DENY_RULE)
    async with connect(era) as client:
        answer = json.loads(await _prompt(client, tool_use_id="toolu_1"))
    assert list(answer) == ["behavior", "message", "interrupt", "toolUseID"]
    assert answer["message"].startswith("permission.denied: mcp host/Bash is denied by rule go (user, mine.toml:2).")
    assert "rm -rf" not in answer["message"]


@pytest.mark.parametrize("era", ERAS)
async def test_an_open_question_is_a_deny_that_names_it(era: str, connect: Connect, home: Home) -> None:
    async with connect(era) as client:
        text = await _prompt(client)
        assert await _prompt(client) == text
    (approval,) = await home.state.read(list_approvals)
    expected = f"pending {approval.id}; retry after approval"
    assert text == f'{{"behavior":"deny","message":"{expected}","interrupt":false}}'
    assert approval.options == ("allow_once", "deny_once")
    assert "mcp host/Bash (external)" in approval.summary
    assert "rm -rf build" in approval.summary


@pytest.mark.parametrize("era", ERAS)
async def test_after_approval_the_same_call_passes_once(era: str, connect: Connect, home: Home) -> None:
    async with connect(era) as client:
        await _prompt(client)
        (approval,) = await home.state.read(list_approvals)
        await home.enforcement.answer(approval.id, "allow_once", by=PERSON, proof="terminal")
        allowed = json.loads(await _prompt(client))
        assert (allowed["behavior"], allowed["decisionClassification"]) == ("allow", "user_temporary")
        assert json.loads(await _prompt(client))["behavior"] == "deny"


@pytest.mark.parametrize("prompt_wait_s", [30])
@pytest.mark.parametrize(
    ("choice", "note", "expected"),
    [
        (
            "allow_once",
            "",
            f'{{"behavior":"allow","updatedInput":{INPUT_TEXT},"decisionClassification":"user_temporary"}}',
        ),
        (
            "deny_once",
            "not now",
            f'{{"behavior":"deny","message":"{REFUSED}","interrupt":false,"decisionClassification":"user_reject"}}',
        ),
    ],
)
async def test_a_person_answers_while_the_host_waits(
    home: Home, invoke: Invoke, choice: str, note: str, expected: str
) -> None:
    got: list[str] = []

    async def wait() -> None:
        answer = await invoke(home, permission_prompt, tool_name="Bash", input=INPUT, principal=HOST)
        got.append(answer.text)

    with anyio.fail_after(25):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            while not (waiting := await home.state.read(list_approvals)):
                await anyio.lowlevel.checkpoint()
            await home.enforcement.answer(waiting[0].id, choice, by=PERSON, proof="terminal", note=note)
    assert got == [expected]


@pytest.mark.parametrize("prompt_wait_s", [3])
async def test_signs_of_life_come_while_it_waits_and_the_wait_ends(home: Home, connect: Connect) -> None:
    signs: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, _text: str | None) -> None:
        signs.append((done, total))

    with anyio.fail_after(20):
        async with connect("legacy") as client:
            answer = await client.call_tool(
                "permission_prompt", {"tool_name": "Bash", "input": {}}, progress_callback=progress
            )
    assert json.loads(answer.content[0].text)["message"].startswith("pending apr_")
    assert len(signs) >= 2
    assert all(total == 3 for _, total in signs)


@pytest.mark.parametrize("era", ERAS)
async def test_every_failure_is_a_deny_with_its_code(
    era: str, connect: Connect, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(era) as client:
        wrong: list[dict[str, Any]] = [{}, {"tool_name": "Bash"}, {"tool_name": "Bash", "input": "no"}, {"input": {}}]
        for arguments in wrong:
            answer = await client.call_tool("permission_prompt", arguments)
            said = json.loads(answer.content[0].text)
            assert (said["behavior"], said["interrupt"], answer.is_error) == ("deny", False, False)
            assert said["message"].startswith("tool.invalid_arguments: ")
        odd = json.loads(await _prompt(client, tool_name="no such name!"))
        assert odd["message"].startswith("tool.invalid_arguments: ")

        async def fail(*_args: object) -> None:
            raise RuntimeError("a fault of ours with a secret inside")

        monkeypatch.setattr(home.enforcement, "enter", fail)
        broken = json.loads(await _prompt(client))
        assert broken["behavior"] == "deny"
        assert "secret inside" not in broken["message"]


async def test_a_secret_in_the_input_goes_back_as_it_came_and_is_stored_nowhere(
    home: Home, connect: Connect, rules: Rules
) -> None:
    rules(ALLOW_RULE)
    home.redactor.register("vault", "correct horse battery staple")
    given = {"command": "login correct horse battery staple"}
    async with connect("legacy") as client:
        answer = await client.call_tool("permission_prompt", {"tool_name": "Bash", "input": given})
        assert json.loads(answer.content[0].text)["updatedInput"] == given
        asked = await client.call_tool("permission_prompt", {"tool_name": "Write", "input": given})
        assert "horse" not in asked.content[0].text
    (approval,) = await home.state.read(list_approvals)
    assert "[redacted:vault]" in approval.summary
    await home.state.write(lambda tx: None)
    stored = b"".join(path.read_bytes() for path in home.path.glob("state.db*"))
    assert b"correct horse" not in stored


@pytest.mark.parametrize("key", ["stead-memory", "agentstead-memory"])
async def test_a_tool_of_ours_is_let_go_to_its_own_door(home: Home, connect: Connect, rules: Rules, key: str) -> None:
    async with connect("legacy") as client:
        allowed = json.loads(await _prompt(client, f"mcp__{key}__memory_forget"))
        assert (allowed["behavior"], allowed["updatedInput"]) == ("allow", INPUT)
        assert await home.state.read(Reading.value, "SELECT COUNT(*) FROM approvals") == 0
        rules('[[rule]]\nid = "no"\neffect = "deny"\naction = ["memory.*"]\n')
        denied = json.loads(await _prompt(client, f"mcp__{key}__memory_forget"))
        assert "rule no" in denied["message"]


@pytest.mark.parametrize("tool", ["mcp__evil__memory_forget", "mcp__stead-skills__memory_forget", "memory_forget"])
async def test_a_strangers_tool_under_one_of_our_names_is_asked_about(connect: Connect, tool: str) -> None:
    async with connect("legacy") as client:
        assert json.loads(await _prompt(client, tool))["message"].startswith("pending apr_")


@pytest.mark.parametrize("era", ERAS)
async def test_the_listing_has_no_output_schema_and_takes_further_keys(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    listed = tools["permission_prompt"]
    assert listed.output_schema is None
    assert listed.input_schema["required"] == ["tool_name", "input"]
    assert listed.input_schema.get("additionalProperties") is not False
    assert listed.input_schema["properties"]["input"]["type"] == "object"


def test_the_two_answers_are_exactly_these_texts() -> None:
    assert claude_code.allow({}, tool_use_id=None) == '{"behavior":"allow","updatedInput":{}}'
    assert claude_code.deny("no") == '{"behavior":"deny","message":"no","interrupt":false}'
    error = Unavailable("permission.unavailable", "State cannot be read.", remedy="Retry.")
    text = '{"behavior":"deny","message":"permission.unavailable: State cannot be read. Retry.","interrupt":false}'
    assert failed(error) == text
