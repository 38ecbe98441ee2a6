"""Two hosts talk through MCP clients, in both eras of the protocol: tools alone suffice, and inboxes are pushed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import ResourceUpdated

from agentstead.kit import CALLER, Caller, Home
from agentstead.kit.changes import ChangeHub
from agentstead.kit.mcp_server import build
from agentstead.network.server import SERVER
from agentstead.sessions.server import SERVER as SESSIONS

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")


class Host:
    """One MCP client, under the name that it claims."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured result of a call that must succeed."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        structured: dict[str, Any] = answer.structured_content
        return structured

    async def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structure of a call that must fail."""
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error
        assert answer.meta is not None
        found: dict[str, Any] = answer.meta["dev.agentstead/error"]
        return found


@asynccontextmanager
async def host(
    home: Home,
    project: Path,
    name: str,
    era: str,
    *,
    declaration: Any = SERVER,
    hub: ChangeHub | None = None,
    **kwargs: Any,
) -> AsyncIterator[Host]:
    CALLER.set(Caller(door="socket", cwd=project))
    server = build(declaration, home, hub=hub or ChangeHub([SERVER]))
    info = types.Implementation(name=name, version="1")
    async with Client(server, mode=era, client_info=info, **kwargs) as client:
        yield Host(client)


async def session(home: Home, project: Path, name: str, era: str) -> str:
    async with host(home, project, name, era, declaration=SESSIONS) as sessions:
        opened = await sessions("session_open", agent=name)
    found: str = opened["session_id"]
    return found


@pytest.mark.parametrize("era", ERAS)
async def test_two_hosts_hand_work_over_with_the_tools_alone(home: Home, project: Path, era: str) -> None:
    sessions = {name: await session(home, project, name, era) for name in ("steward", "grafter")}
    async with (
        host(home, project, "steward", era) as steward,
        host(home, project, "grafter", era) as grafter,
    ):
        await steward("peer_join", channel="pruning", session=sessions["steward"])
        target = await grafter(
            "peer_join", channel="pruning", session=sessions["grafter"], capabilities=["graft-branch"]
        )
        found = await steward("peer_find", capability="graft-branch")
        assert [each["peer_id"] for each in found["peers"]] == [target["peer_id"]]
        sent = await steward(
            "message_send", channel="pruning", text="Graft row 7.", to=target["peer_id"], work="new", title="Row 7"
        )
        read = await grafter("inbox_read")
        assert [(each["kind"], each["body"]["text"]) for each in read["items"]] == [("say", "Graft row 7.")]
        await grafter("work_update", work_id=sent["work_id"], action="accept")
        done = await grafter(
            "work_update", work_id=sent["work_id"], action="complete", message="Six of six.", result={"tied": 6}
        )
        assert done["state"] == "completed"
        await grafter("inbox_ack", upto_seq=read["items"][-1]["seq"])
        answers = await steward("inbox_read")
        assert [each["kind"] for each in answers["items"]] == ["greet", "receipt", "trace"]
        assert answers["items"][-1]["body"]["result"] == {"tied": 6}
        marked = await steward("inbox_ack", upto_seq=answers["items"][-1]["seq"])
        assert marked["unread"] == 0
        thread = await steward("network_view", ref=sent["thread_id"], view="messages")
        assert [each["kind"] for each in thread["items"]] == ["say", "receipt", "trace"]
        assert (await grafter("inbox_read"))["items"] == []


@pytest.mark.parametrize("era", ERAS)
async def test_an_error_carries_the_protocols_codes_in_its_structure(home: Home, project: Path, era: str) -> None:
    named = await session(home, project, "steward", era)
    async with host(home, project, "steward", era) as steward:
        outside = await steward.error("inbox_read")
        assert outside["code"] == "network.not_participating"
        await steward("peer_join", channel="pruning", session=named)
        refused = await steward.error("message_send", channel="pruning", text="x", to="nobody.here")
        assert refused["code"] == "network.rejected"
        assert refused["details"] == {"reason_code": "not_found", "local_code": None, "pointer": "/to"}
        unknown = await steward.error("message_send", channel="pruning", text="x", sender="me")
        assert unknown["code"] == "tool.invalid_arguments"


@pytest.mark.parametrize("era", ERAS)
async def test_a_subscriber_of_an_inbox_is_told_of_each_delivery(home: Home, project: Path, era: str) -> None:
    hub = ChangeHub([SERVER])
    told: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            await told.put(str(message.params.uri))

    sessions = {name: await session(home, project, name, era) for name in ("steward", "grafter")}
    following = asyncio.create_task(hub.follow(home.state))
    try:
        async with (
            host(home, project, "steward", era, hub=hub) as steward,
            host(home, project, "grafter", era, hub=hub, message_handler=on_message) as grafter,
        ):
            await steward("peer_join", channel="pruning", session=sessions["steward"])
            target = await grafter("peer_join", channel="pruning", session=sessions["grafter"])
            place = await home.state.read(lambda reading: reading.value("SELECT workspace FROM net_channel"))
            uri = f"net://{place}/inbox/{target['peer_id']}"

            async def send() -> None:
                await steward("message_send", channel="pruning", text="hello", to=target["peer_id"])

            if era == "legacy":
                with pytest.warns(MCPDeprecationWarning):
                    await grafter.client.subscribe_resource(uri)
                await send()
                assert await asyncio.wait_for(told.get(), 10) == uri
            else:
                async with grafter.client.listen(resource_subscriptions=[uri]) as events:
                    await send()
                    async with asyncio.timeout(10):
                        event = await anext(aiter(events))
                    assert isinstance(event, ResourceUpdated)
                    assert str(event.uri) == uri
            content = (await grafter.client.read_resource(uri)).contents[0]
            assert isinstance(content, types.TextResourceContents)
            assert "hello" in content.text
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_are_listed_and_rendered(home: Home, project: Path, era: str) -> None:
    named = await session(home, project, "steward", era)
    async with host(home, project, "steward", era) as steward:
        await steward("peer_join", channel="pruning", session=named)
        listed = (await steward.client.list_prompts()).prompts
        assert {each.name for each in listed} == {"network_catchup", "network_handoff"}
        shown = await steward.client.get_prompt("network_catchup", {"channel": "pruning"})
        content = shown.messages[0].content
        assert isinstance(content, types.TextContent)
        assert "Unread in channel pruning: 0" in content.text
