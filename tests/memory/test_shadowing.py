"""Equal keys in several scopes: over every pair the stronger shadows the weaker, in recall and in packs."""

from itertools import combinations
from typing import Any

import pytest

from agentstead.memory.service import memory_context
from agentstead.sessions.service import session_open
from agentstead.state import SimulatedClock

pytestmark = pytest.mark.anyio

# Strongest first.
SCOPES = ("session", "agent", "agent:desk", "workspace", "home")


@pytest.fixture
async def desk(host: Any, invoke: Any) -> Any:
    """A host with a session, whose every write a person confirms by being the person."""
    opened = await invoke(host.home, session_open, cwd=host.cwd, principal=host.principal)
    host.session = opened.session_id
    return host


async def write(desk: Any, user: Any, scope: str, text: str) -> str:
    by = user if scope == "home" else desk
    change = {"op": "add", "type": "fact", "text": text, "key": "indent", "scope": scope}
    written = await by.write(change, session_id=desk.session)
    assert written.state == "accepted"
    return str(written.decisions[0].memory_id)


def environ(desk: Any) -> dict[str, str]:
    return {"AGENTSTEAD_SESSION": desk.session}


@pytest.mark.parametrize(("strong", "weak"), list(combinations(SCOPES, 2)))
async def test_the_stronger_of_two_is_shown_whichever_came_first(
    desk: Any, user: Any, clock: SimulatedClock, strong: str, weak: str
) -> None:
    for first in (strong, weak):
        second = weak if first == strong else strong
        ids = {first: await write(desk, user, first, f"Indent as {first} says.")}
        clock.advance(seconds=60)
        ids[second] = await write(desk, user, second, f"Indent as {second} says.")
        found = await desk.found("indent", environ=environ(desk))
        assert found == [ids[strong]], (strong, weak)
        both = await desk.recall("indent", environ=environ(desk), include=["shadowed"])
        shadowed = {item.memory_id: item.shadowed_by for item in both.items}
        assert shadowed == {ids[strong]: None, ids[weak]: ids[strong]}
        pack = await desk.call(memory_context, environ=environ(desk), refresh=True)
        assert pack.text.count("Indent as") == 1
        for scope, memory_id in ids.items():
            by = user if scope == "home" else desk
            await by.write({"op": "archive", "memory_id": memory_id}, session_id=desk.session)
        # Past the loop guard's day, so that the second round's words are not taken for recalled ones.
        clock.advance(seconds=2 * 86_400)


async def test_what_is_no_more_shadows_nothing(desk: Any, user: Any) -> None:
    home = await write(desk, user, "home", "Indent with tabs.")
    here = await write(desk, user, "workspace", "Indent with spaces.")
    assert await desk.found("indent") == [here]
    await desk.write({"op": "archive", "memory_id": here})
    assert await desk.found("indent") == [home]


async def test_another_type_or_key_shadows_nothing(desk: Any, user: Any) -> None:
    home = await write(desk, user, "home", "Indent with tabs.")
    choice = (await desk.add("Indent was discussed.", type="choice", key="indent")).memory_id
    other = (await desk.add("Indent by four.", key="indent-width")).memory_id
    assert sorted(await desk.found("indent")) == sorted([home, choice, other])


async def test_a_shadow_in_another_workspace_does_not_fall_here(desk: Any, user: Any, other_project: Any) -> None:
    home = await write(desk, user, "home", "Indent with tabs.")
    await desk.at(other_project).add("Indent with spaces.", key="indent")
    assert await desk.found("indent") == [home]
