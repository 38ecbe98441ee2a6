"""The MCP face: what is listed, how large it is, and the same answers to clients of both eras."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from agentstead.identity import Principal
from agentstead.kit import CALLER, Call, Caller, Home, published
from agentstead.kit.changes import ChangeHub
from agentstead.kit.mcp_server import build
from agentstead.policy import trust_host
from agentstead.skills.resources import CATALOGUE
from agentstead.skills.server import INSTRUCTIONS, SERVER
from agentstead.skills.service import trust_skills
from agentstead.skills.store import Place, hold

WriteSkill = Callable[..., Path]
Connect = Callable[..., AbstractAsyncContextManager[Client]]
ERAS = ("legacy", "2026-07-28")
CORE = ("skill_list", "skill_activate", "skill_read", "skill_explain")
SHARE_BYTES = 7_600

pytestmark = pytest.mark.anyio


class Person:
    """Says yes to every form, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, _context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow_once"})


@pytest.fixture
def connect(home: Home) -> Connect:
    def connected(era: str, *, cwd: Path | None = None, person: Person | None = None, toolset: str = "full") -> Any:
        @asynccontextmanager
        async def run() -> AsyncIterator[Client]:
            CALLER.set(Caller(door="socket", cwd=cwd))
            server = build(SERVER, home, hub=ChangeHub([SERVER]), toolset=toolset)
            told: Any = person.answer if person else None
            named = types.Implementation(name="editor", version="1")
            async with Client(server, mode=era, client_info=named, elicitation_callback=told) as client:
                yield client

        return run()

    return connected


def text_of(result: Any) -> str:
    """Return the first text of a resource, a prompt or a tool's answer."""
    if hasattr(result, "messages"):
        return str(result.messages[0].content.text)
    return str((result.contents if hasattr(result, "contents") else result.content)[0].text)


def bytes_of(result: Any) -> bytes:
    return base64.b64decode(result.contents[0].blob)


def test_the_core_tools_leave_room_for_those_to_come() -> None:
    tools = [published.tool(each, shallow=True) for each in SERVER.tools("core")]
    listed = types.ListToolsResult(tools=tools).model_dump(mode="json", by_alias=True, exclude_none=True)
    size = len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode())
    assert tuple(tool.name for tool in tools) == CORE
    assert size < SHARE_BYTES * 0.7


def test_the_instructions_are_short_and_name_tools_that_exist() -> None:
    assert len(INSTRUCTIONS.encode()) <= 1536
    words = {word.strip(".,;()") for word in INSTRUCTIONS.split()}
    assert {word for word in words if word.startswith("skill_")} <= set(SERVER.by_name)


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_lists_activates_and_reads(
    era: str, mine: Path, connect: Connect, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", files={"raw.bin": b"\x00\xff"})
    async with connect(era) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(SERVER.by_name)
        found = await client.call_tool("skill_list", {"query": "tides"})
        assert [item["qualified_name"] for item in found.structured_content["items"]] == ["user:tides"]
        active = (await client.call_tool("skill_activate", {"name": "tides"})).structured_content
        assert "Read this first." in active["content"]
        read = {"activation_id": active["activation_id"], "path": "raw.bin"}
        raw = (await client.call_tool("skill_read", read)).structured_content
        assert base64.b64decode(raw["base64"]) == b"\x00\xff"
        ended = await client.call_tool("skill_deactivate", {"activation_id": active["activation_id"]})
        assert ended.structured_content["end_reason"] == "deactivated"
        refused = await client.call_tool("skill_read", read)
        assert refused.is_error
        assert text_of(refused).startswith("activation.ended: ")


@pytest.mark.parametrize("era", ERAS)
async def test_a_person_answers_for_new_content_in_the_host(
    era: str, home: Home, project: Path, connect: Connect, write_skill: WriteSkill
) -> None:
    await home.state.write(trust_host, "editor", forms_only=True)
    folder = write_skill(project / ".claude/skills", "tides")
    person = Principal.user(at_terminal=True)
    await trust_skills(Call(home, person, cwd=project), workspace_id=None, mode="content")
    (folder / "run.sh").write_text("echo\n")
    answering = Person()
    async with connect(era, cwd=project, person=answering) as client:
        answer = await client.call_tool("skill_activate", {"name": "tides"})
    assert not answer.is_error, answer.content
    (asked,) = answering.asked
    assert "workspace:tides" in asked
    assert "run.sh" in asked
    assert hold(Place(folder, ())).tree_id in asked


@pytest.mark.parametrize("era", ERAS)
async def test_served_skills_are_resources_and_others_are_not(
    era: str, mine: Path, connect: Connect, write_skill: WriteSkill
) -> None:
    folder = write_skill(mine, "my tides", files={"tables/a.txt": "high", "raw.bin": b"\xff"})
    write_skill(mine, "hidden", body="a\u200bb")
    async with connect(era) as client:
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert "skill://user/my%20tides/SKILL.md" in listed
        assert not any("hidden" in uri for uri in listed)
        text = await client.read_resource("skill://user/my%20tides/SKILL.md")
        assert text_of(text) == (folder / "SKILL.md").read_text()
        assert text_of(await client.read_resource("skill://user/my%20tides/tables/a.txt")) == "high"
        assert bytes_of(await client.read_resource("skill://user/my%20tides/raw.bin")) == b"\xff"
        names = [item["name"] for item in json.loads(text_of(await client.read_resource(CATALOGUE)))["items"]]
        assert "my tides" in names
        for uri in (
            "skill://user/hidden/SKILL.md",
            "skill://user/my%20tides/missing.txt",
            "skill://user/my%20tides/..%2F..%2Fconfig.toml",
            "skill://user/nothing/SKILL.md",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


@pytest.mark.parametrize("era", ERAS)
async def test_a_skill_is_a_prompt(era: str, mine: Path, connect: Connect, write_skill: WriteSkill) -> None:
    write_skill(mine, "tides", files={"a.txt": "x"})
    async with connect(era) as client:
        prompt = await client.get_prompt("use_skill", {"name": "tides"})
    text = text_of(prompt)
    assert "Read this first." in text
    assert "Its files (a.txt)" in text
    assert "<skill-content mark=" in text


async def test_a_skill_reserved_for_people_is_no_resource_and_still_a_prompt(
    mine: Path, connect: Connect, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", fields="disable-model-invocation: true\n", files={"a.txt": "x"})
    async with connect("legacy") as client:
        assert not any("tides" in str(resource.uri) for resource in (await client.list_resources()).resources)
        for path in ("SKILL.md", "a.txt"):
            with pytest.raises(MCPError, match=r"skill\.user_only"):
                await client.read_resource(f"skill://user/tides/{path}")
        assert "Read this first." in text_of(await client.get_prompt("use_skill", {"name": "tides"}))


async def test_reading_a_resource_activates_nothing(
    home: Home, mine: Path, connect: Connect, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    async with connect("legacy") as client:
        await client.read_resource("skill://user/tides/SKILL.md")
        await client.get_prompt("use_skill", {"name": "tides"})
    assert await home.state.read(lambda r: r.value("SELECT COUNT(*) FROM activations")) == 0


async def test_the_catalogue_is_announced_when_it_may_have_changed(home: Home, mine: Path) -> None:
    await home.state.write(lambda tx: tx.journal("skills.skill.disabled", subject="skill:a:b", body={}))
    await home.state.write(lambda tx: tx.journal("memory.text.kept", subject="mem_x", body={}))
    entries = await home.state.read(lambda r: r.entries(0))
    changed = [list(SERVER.changes(entry)) for entry in entries if entry.kind.startswith(("skills.", "memory."))]
    assert changed == [["agentstead://skills/catalogue"], []]


@pytest.mark.parametrize("era", ERAS)
async def test_a_secret_in_a_skill_appears_in_no_answer_and_no_record(
    era: str, home: Home, mine: Path, connect: Connect, write_skill: WriteSkill
) -> None:
    secret = "ghp_" + "Zq7" * 12
    write_skill(
        mine, "tides", description=f"uses {secret}", body=f"token {secret}\n", files={"a.txt": f"export T={secret}\n"}
    )
    seen: list[str] = []
    async with connect(era) as client:
        seen.append(str(await client.call_tool("skill_list", {"detail": "full"})))
        active = await client.call_tool("skill_activate", {"name": "tides"})
        read = {"activation_id": active.structured_content["activation_id"], "path": "a.txt"}
        seen += [str(active), str(await client.call_tool("skill_read", read))]
        seen.append(str(await client.call_tool("skill_explain", {"name": "tides"})))
        seen.append(str(await client.call_tool("skill_activate", {"name": secret})))
        seen.append(text_of(await client.read_resource("skill://user/tides/a.txt")))
        seen.append(text_of(await client.read_resource(CATALOGUE)))
        seen.append(str(await client.get_prompt("use_skill", {"name": "tides"})))
    seen.append(str(await home.state.read(lambda r: [tuple(row) for row in r.all("SELECT * FROM activations")])))
    seen.append(str(await home.state.read(lambda r: r.entries(0))))
    assert [text for text in seen if secret in text] == []
