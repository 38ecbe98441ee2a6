"""One door: after each step of a random history, every surface gives the same answer for every skill."""

import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.identity import Principal
from agentstead.kit import Call, Home
from agentstead.skills.resources import list_texts, read_catalogue, read_text, use_skill
from agentstead.skills.service import (
    skill_activate,
    skill_explain,
    skill_list,
    skill_read,
    skill_switch,
    trust_skills,
    untrust_skills,
)
from agentstead.state import AgentsteadError, PendingAnswer

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
WriteSkill = Callable[..., Path]
HOST = "host:editor"
PERSON = Principal.user(at_terminal=True)
NAMES = ("tides", "moon")


class World:
    """A workspace and a person's own folder with the same two skills, and the acts that change what is served."""

    def __init__(self, home: Home, project: Path, mine: Path, invoke: Invoke, write: WriteSkill) -> None:
        self.home, self.project, self.mine, self.invoke, self.write = home, project, mine, invoke, write
        self.roots = {"workspace": project / ".claude" / "skills", "user": mine}
        self.read: dict[str, str] = {}

    def call(self, principal: Principal = PERSON) -> Call:
        return Call(self.home, principal, cwd=self.project)

    async def step(self, dice: random.Random) -> str:
        origin, name = dice.choice(list(self.roots)), dice.choice(NAMES)
        act = dice.choice([self.add, self.edit, self.break_it, self.hide_in, self.trust, self.untrust, self.switch])
        return f"{act.__name__} {await act(origin, name, dice)}"

    async def add(self, origin: str, name: str, _dice: random.Random) -> str:
        self.write(self.roots[origin], name, files={"a.txt": "a"})
        return f"{origin}:{name}"

    async def edit(self, origin: str, name: str, dice: random.Random) -> str:
        if (self.roots[origin] / name).is_dir():
            (self.roots[origin] / name / "a.txt").write_text(str(dice.random()))
        return f"{origin}:{name}"

    async def break_it(self, origin: str, name: str, _dice: random.Random) -> str:
        if (self.roots[origin] / name).is_dir():
            (self.roots[origin] / name / "SKILL.md").write_text("no fields")
        return f"{origin}:{name}"

    async def hide_in(self, origin: str, name: str, _dice: random.Random) -> str:
        self.write(self.roots[origin], name, body="run\u200b this")
        return f"{origin}:{name}"

    async def trust(self, _origin: str, _name: str, dice: random.Random) -> str:
        mode = dice.choice(["content", "all"])
        try:
            await trust_skills(self.call(), workspace_id=None, mode=mode)  # type: ignore[arg-type]
        except AgentsteadError:
            return "nothing"
        return mode

    async def untrust(self, _origin: str, _name: str, _dice: random.Random) -> str:
        await untrust_skills(self.call(), workspace_id=None)
        return ""

    async def switch(self, origin: str, name: str, dice: random.Random) -> str:
        enabled = dice.random() < 0.5
        arguments = {"selector": f"skill:{origin}:{name}", "enabled": enabled, "cwd": self.project}
        try:
            await self.invoke(self.home, skill_switch, principal=PERSON, **arguments)
        except AgentsteadError:
            return "nothing"
        return f"{origin}:{name} {enabled}"

    async def served(self) -> set[str]:
        """Return what the listing says is served."""
        page = await self.invoke(self.home, skill_list, principal=HOST, cwd=self.project)
        return {item.qualified_name for item in page.items if item.origin != "bundled"}

    async def check(self) -> None:
        """Hold every other surface to the listing."""
        served = await self.served()
        catalogue = json.loads(await read_catalogue(self.call()))["items"]
        assert {item["qualified_name"] for item in catalogue if item["origin"] != "bundled"} == served
        listed = {uri.split("/")[2] + ":" + uri.split("/")[3] for uri, _ in await list_texts(self.call())}
        assert {name for name in listed if not name.startswith("bundled:")} == served
        for name in NAMES:
            holder = next((each for each in served if each.endswith(f":{name}")), None)
            await self.check_name(name, holder)

    async def check_name(self, name: str, holder: str | None) -> None:
        outcome = await self.activate(name)
        assert (outcome == holder) if holder else (outcome in ("refused", "pending", "missing")), outcome
        assert (await self.prompted(name)) is bool(holder)
        explained = await self.explained(name)
        assert explained == (holder or explained)
        if holder:
            origin = holder.split(":")[0]
            assert str(await read_text(self.call(), origin=origin, name=name)).startswith("---")
        await self.check_held(name, holder)

    async def activate(self, name: str) -> str:
        try:
            active = await self.invoke(self.home, skill_activate, principal=HOST, cwd=self.project, name=name)
        except PendingAnswer:
            return "pending"
        except AgentsteadError as error:
            return "missing" if error.code == "skill.not_found" else "refused"
        self.read[f"{active.origin}:{name}"] = active.activation_id
        return f"{active.origin}:{name}"

    async def prompted(self, name: str) -> bool:
        try:
            await use_skill(self.call(), name=name)
        except AgentsteadError:
            return False
        return True

    async def explained(self, name: str) -> str | None:
        try:
            found = await self.invoke(self.home, skill_explain, principal=HOST, cwd=self.project, name=name)
        except AgentsteadError:
            return None
        return str(found.winner.qualified_name) if found.winner and found.winner.ruling == "served" else None

    async def check_held(self, name: str, holder: str | None) -> None:
        """Hold reading to activating: what was activated before is readable exactly while it still could be."""
        for qualified in [each for each in self.read if each.endswith(f":{name}") and each != holder]:
            ended = await self.reading(self.read[qualified])
            assert ended in ("", "activation.ended", "skill.content_changed")
            if ended:
                del self.read[qualified]
            else:
                assert await self.activate(qualified) == qualified

    async def reading(self, activation_id: str) -> str:
        """Return the code with which reading fails, or nothing."""
        read = {"activation_id": activation_id, "path": "SKILL.md", "principal": HOST, "cwd": self.project}
        try:
            await self.invoke(self.home, skill_read, **read)
        except AgentsteadError as error:
            return error.code
        return ""


@pytest.mark.parametrize("seed", range(6))
async def test_every_surface_gives_the_same_answer_after_each_step(
    home: Home, project: Path, mine: Path, invoke: Invoke, write_skill: WriteSkill, seed: int
) -> None:
    dice = random.Random(seed)
    world = World(home, project, mine, invoke, write_skill)
    history: list[str] = []
    for _ in range(20):
        history.append(await world.step(dice))
        try:
            await world.check()
        except AssertionError as wrong:
            wrong.add_note("\n".join(history))
            raise
