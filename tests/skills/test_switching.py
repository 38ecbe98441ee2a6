"""Switching skills off and on: everywhere at once, per workspace, and a person's yes to let one back in."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.skills.service import skill_activate, skill_list, skill_read, skill_switch
from agentstead.state import AgentsteadError, PendingAnswer

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
WriteSkill = Callable[..., Path]
HOST = "host:editor"


async def code_of(call: Awaitable[Any]) -> str:
    with pytest.raises(AgentsteadError) as caught:
        await call
    assert caught.value.remedy
    return caught.value.code


async def rulings(home: Home, invoke: Invoke, **arguments: Any) -> dict[str, str]:
    page = await invoke(home, skill_list, principal=HOST, ruling="any", query="tides", **arguments)
    return {item.qualified_name: item.ruling for item in page.items}


async def test_a_skill_that_is_off_is_served_nowhere_and_ends(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    active = await invoke(home, skill_activate, principal=HOST, name="tides")
    off = await invoke(home, skill_switch, principal=HOST, selector="skill:user:tides", enabled=False)
    assert (off.selector, off.enabled, off.scope) == ("skill:user:tides", False, "home")
    assert await rulings(home, invoke) == {"user:tides": "disabled"}
    assert await code_of(invoke(home, skill_activate, principal=HOST, name="tides")) == "skill.disabled"
    read = {"principal": HOST, "activation_id": active.activation_id, "path": "SKILL.md"}
    assert await code_of(invoke(home, skill_read, **read)) == "activation.ended"


async def test_only_a_person_switches_on_again(home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill) -> None:
    write_skill(mine, "tides")
    await invoke(home, skill_switch, principal=HOST, selector="skill:user:tides", enabled=False)
    with pytest.raises(PendingAnswer):
        await invoke(home, skill_switch, principal=HOST, selector="skill:user:tides", enabled=True)
    assert await rulings(home, invoke) == {"user:tides": "disabled"}
    await invoke(home, skill_switch, principal="user", selector="skill:user:tides", enabled=True)
    assert await rulings(home, invoke) == {"user:tides": "served"}


async def test_a_switch_of_a_workspace_holds_there_alone(
    home: Home, mine: Path, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    switch = {"principal": HOST, "selector": "skill:user:tides", "enabled": False, "scope": "workspace"}
    assert await code_of(invoke(home, skill_switch, **switch)) == "workspace.unknown"
    await invoke(home, skill_switch, cwd=project, **switch)
    assert await rulings(home, invoke, cwd=project) == {"user:tides": "disabled"}
    assert await rulings(home, invoke) == {"user:tides": "served"}


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        ("tides", "tool.invalid_arguments"),
        ("skill:tides", "tool.invalid_arguments"),
        ("extension:notes", "tool.invalid_arguments"),
        ("skill:user:moon", "skill.not_found"),
    ],
)
async def test_a_selector_names_a_skill_that_stands_here(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill, selector: str, code: str
) -> None:
    write_skill(mine, "tides")
    switch = {"principal": HOST, "selector": selector, "enabled": False}
    assert await code_of(invoke(home, skill_switch, **switch)) == code
    assert await home.state.read(lambda r: r.value("SELECT COUNT(*) FROM switches")) == 0
