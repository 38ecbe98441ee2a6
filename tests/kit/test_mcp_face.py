"""One declaration as an MCP server: the same answers in both protocol eras."""

import asyncio
import json
import logging
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import INVALID_PARAMS

from agentstead.kit import Home
from agentstead.kit.changes import ChangeHub
from tests.kit.conftest import ERAS, Connect, Person, keep

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]


async def test_tools_are_listed_with_all_four_hints_and_strict_schemas(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["note_keep", "note_list", "note_burn", "note_vow", "note_fail"]
    hints = tools["note_burn"].annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (
        False,
        True,
        False,
        False,
    )
    assert tools["note_keep"].input_schema["additionalProperties"] is False
    assert tools["note_list"].output_schema == {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"type": "object"}}},
    }
    assert all(tool.title and tool.description for tool in tools.values())


async def test_a_call_answers_in_text_and_in_structure(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        answer = await client.call_tool("note_keep", {"text": "hello"})
        listed = await client.call_tool("note_list", {})
    assert answer.structured_content["text"] == "hello"
    assert json.loads(answer.content[0].text) == answer.structured_content
    assert [each["text"] for each in listed.structured_content["items"]] == ["hello"]
    assert not answer.is_error


async def test_the_same_key_is_served_from_the_store_and_says_so(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        one = await client.call_tool("note_keep", {"text": "a", "idempotency_key": "k"})
        two = await client.call_tool("note_keep", {"text": "a", "idempotency_key": "k"})
        other = await client.call_tool("note_keep", {"text": "b", "idempotency_key": "k"})
        listed = await client.call_tool("note_list", {})
    assert two.structured_content == one.structured_content
    assert two.meta["dev.agentstead/replayed"] is True
    assert other.is_error
    assert other.content[0].text.startswith("key.conflict: ")
    assert len(listed.structured_content["items"]) == 1


async def test_a_known_error_has_one_line_and_its_structure_beside_it(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        answer = await client.call_tool("note_fail", {"how": "known"})
    assert answer.is_error
    assert answer.content[0].text == "task.not_found: No such note. Look again."
    assert answer.structured_content is None
    assert answer.meta["dev.agentstead/error"] == {
        "code": "task.not_found",
        "message": "No such note.",
        "remedy": "Look again.",
        "retryable": False,
        "details": {"how": "known"},
    }


async def test_a_fault_of_ours_shows_an_id_and_keeps_its_text_to_the_log(
    era: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        async with connect(era) as client:
            answer = await client.call_tool("note_fail", {"how": "other"})
    text = answer.content[0].text
    assert answer.is_error
    assert text.startswith("tool.failed: note_fail met a fault of Agentstead (RuntimeError, id ")
    assert "hunter2" not in text
    assert text.split("id ")[1][:12] in caplog.text


async def test_bad_arguments_are_an_error_result_that_echoes_nothing(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        answer = await client.call_tool("note_keep", {"txt": "hunter2", "text": 5})
        listed = await client.call_tool("note_list", {})
    assert answer.is_error
    assert answer.content[0].text.startswith("tool.invalid_arguments: note_keep cannot be called so: ")
    assert "hunter2" not in answer.content[0].text
    assert listed.structured_content["items"] == []


async def test_an_unknown_tool_prompt_or_resource_is_an_error_of_the_protocol(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        for wrong in (
            client.call_tool("note_nope", {}),
            client.get_prompt("nope", {}),
            client.get_prompt("write", {}),
            client.get_prompt("write", {"topic": "x", "extra": "y"}),
            client.read_resource("notes://two/1"),
            client.read_resource("notes://one/999"),
        ):
            with pytest.raises(MCPError) as caught:
                await wrong
            assert caught.value.code == INVALID_PARAMS


async def test_progress_reaches_the_caller(era: str, connect: Connect) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, text: str | None) -> None:
        seen.append((done, total, text))

    async with connect(era) as client:
        await client.call_tool("note_keep", {"text": "a"}, progress_callback=progress)
    assert seen == [(1, 2, "half")]


async def test_resources_are_listed_read_and_bytes_stay_bytes(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        seq = (await client.call_tool("note_keep", {"text": "hello"})).structured_content["seq"]
        listed = {str(each.uri) for each in (await client.list_resources()).resources}
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        text = (await client.read_resource(f"notes://one/{seq}")).contents[0]
        raw = (await client.read_resource("notes://raw")).contents[0]
    assert listed == {"notes://raw", f"notes://one/{seq}"}
    assert templates == ["notes://one/{seq}"]
    assert text.text == "hello"
    assert raw.blob == "AAE="


async def test_prompts_are_described_and_rendered(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        (prompt,) = (await client.list_prompts()).prompts
        rendered = await client.get_prompt("write", {"topic": "bees"})
    assert [(each.name, each.required) for each in prompt.arguments] == [("topic", True), ("tone", False)]
    assert rendered.messages[0].content.text == "Write about bees in a plain tone."


async def test_a_person_is_asked_by_a_form_and_the_call_goes_on(era: str, connect: Connect, person: Person) -> None:
    async with connect(era, person) as client:
        answer = await client.call_tool("note_burn", {"text": "a"})
    assert not answer.is_error, answer.content[0].text
    assert len(person.asked) == 1
    assert "note_burn" in person.asked[0]


async def test_a_repeated_key_is_not_asked_about_again(era: str, connect: Connect, person: Person) -> None:
    async with connect(era, person) as client:
        one = await client.call_tool("note_burn", {"text": "a", "idempotency_key": "k"})
        two = await client.call_tool("note_burn", {"text": "a", "idempotency_key": "k"})
        other = await client.call_tool("note_burn", {"text": "a", "idempotency_key": "other"})
    assert one.structured_content == two.structured_content
    assert not other.is_error
    assert len(person.asked) == 2


async def test_a_form_of_an_agents_own_host_is_no_persons_answer(era: str, connect: Connect, person: Person) -> None:
    async with connect(era, person, environ={"AGENTSTEAD_PROCESS": "prc_1"}) as client:
        answer = await client.call_tool("note_burn", {"text": "a"})
    assert answer.is_error
    assert answer.content[0].text.startswith("permission.pending: ")
    assert person.asked == []


async def test_a_declined_form_refuses_the_call(era: str, connect: Connect, person: Person) -> None:
    person.action = "decline"
    async with connect(era, person) as client:
        answer = await client.call_tool("note_burn", {"text": "a"})
        listed = await client.call_tool("note_list", {})
    assert answer.is_error
    assert answer.content[0].text.startswith("permission.denied: ")
    assert listed.structured_content["items"] == []


async def test_a_closed_form_leaves_the_question_pending(era: str, connect: Connect, person: Person) -> None:
    person.action = "cancel"
    async with connect(era, person) as client:
        answer = await client.call_tool("note_burn", {"text": "a"})
    assert answer.is_error
    assert answer.content[0].text.startswith("permission.pending: ")


async def test_a_host_without_forms_gets_a_pending_approval_at_once(era: str, connect: Connect) -> None:
    async with connect(era) as client:
        one = await client.call_tool("note_burn", {"text": "a"})
        two = await client.call_tool("note_burn", {"text": "a"})
    first, second = (each.meta["dev.agentstead/error"] for each in (one, two))
    assert first["code"] == "permission.pending"
    assert first["details"]["approval_id"] == second["details"]["approval_id"]
    assert first["retryable"] is True
    assert f"agentstead answer {first['details']['approval_id']}" in one.content[0].text


async def test_a_body_that_asks_about_its_own_subject_is_asked_once(era: str, connect: Connect, person: Person) -> None:
    async with connect(era, person) as client:
        answer = await client.call_tool("note_vow", {"text": "truth"})
    assert not answer.is_error, answer.content[0].text
    assert answer.structured_content["text"].startswith("apr_")
    assert len(person.asked) == 1
    assert "Vow truth?" in person.asked[0]


async def test_capabilities_say_what_is_really_sent(era: str, connect: Connect) -> None:
    async with connect("legacy" if era == "legacy" else "auto") as client:
        capabilities: Any = client.server_capabilities
        info = client.server_info
    assert capabilities.resources.subscribe is True
    assert info.name == "notes"
    assert info.version
    if era == "legacy":
        assert capabilities.tools.list_changed is True


async def test_a_change_by_anybody_reaches_a_subscriber(era: str, connect: Connect, home: Home, hub: ChangeHub) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: Any) -> None:
        params = getattr(message, "params", None)
        if getattr(message, "method", "") == "notifications/resources/updated" and params is not None:
            await told.put(str(params.uri))

    async with anyio.create_task_group() as following:
        await following.start(hub.follow, home.state)
        if era == "legacy":
            async with connect(era, message_handler=on_message) as client:
                with pytest.warns(MCPDeprecationWarning):
                    await client.subscribe_resource("notes://raw")
                await home.state.write(keep, "from elsewhere")
                assert await asyncio.wait_for(told.get(), 20) == "notes://raw"
        else:
            async with connect(era) as client, client.listen(resource_subscriptions=["notes://raw"]) as events:
                await home.state.write(keep, "from elsewhere")
                async with asyncio.timeout(20):
                    async for event in events:
                        assert str(event.uri) == "notes://raw"
                        break
        following.cancel_scope.cancel()
