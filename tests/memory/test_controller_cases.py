"""The golden table of the write controller: `cases/controller.toml`, case by case."""

import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentstead.memory.changes import Change, read_changes
from agentstead.memory.controller import Writer
from agentstead.memory.scopes import Reach
from agentstead.memory.verifying import verify
from agentstead.memory.writing import Outcome, Request, submit
from agentstead.policy import Redactor
from agentstead.state import AgentsteadError, Migrations, SimulatedClock, State

pytestmark = pytest.mark.anyio

CASES: Sequence[Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "cases" / "controller.toml").read_text("utf-8")
)["case"]
WSP, OTHER = "wsp_01J9ZZZZZZZZZZZZZZZZZZZZZA", "wsp_01J9ZZZZZZZZZZZZZZZZZZZZZB"
AGENT = "agent:coder@ses_01J9ZZZZZZZZZZZZZZZZZZZZZA"

WRITERS = {
    "user": Writer(Reach("user", "user", workspace_id=WSP), channel="cli"),
    "host": Writer(Reach("host:desk", "host", agent="desk", workspace_id=WSP)),
    "nameless": Writer(Reach("host:Desk App", "host", workspace_id=WSP)),
    "agent": Writer(Reach(AGENT, "agent", agent="coder", workspace_id=WSP)),
    "spawned": Writer(Reach(AGENT, "agent", agent="coder", workspace_id=WSP, depth=1)),
    "spawned-free": Writer(Reach(AGENT, "agent", agent="coder", workspace_id=WSP)),
    "extension": Writer(Reach("extension:notes", "extension", workspace_id=WSP), channel="extension"),
    "elsewhere": Writer(Reach("host:desk", "host", agent="desk", workspace_id=OTHER)),
}


@pytest.fixture
async def state(tmp_path: Path, clock: SimulatedClock) -> AsyncIterator[State]:
    sets = [Migrations(package="memory", anchor="agentstead.memory")]
    opened = await State.open(tmp_path, sets=sets, clock=clock, redactor=Redactor(), durability="normal")
    yield opened
    await opened.close()


async def perform(state: State, fields: Mapping[str, Any], by: str, ids: Sequence[str]) -> Outcome:
    given = {name: named(value, ids) for name, value in fields.items() if name != "as"}
    drafts = read_changes([Change.model_validate(given)])
    outcome: Outcome = await state.write(submit, state.refs, Request(drafts), WRITERS[by])
    return outcome


def named(value: Any, ids: Sequence[str]) -> Any:
    return ids[int(value[1:]) - 1] if isinstance(value, str) and value[:1] == "$" else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
async def test_the_controller_says(case: Mapping[str, Any], state: State, clock: SimulatedClock) -> None:
    ids: list[str] = []
    for step in case.get("before", ()):
        outcome = await perform(state, step, step["as"], ids)
        assert outcome.decisions[0].verdict == "accepted"
        if step["op"] in ("add", "supersede"):
            ids.append(outcome.decisions[0].memory_id)
        clock.advance(seconds=60)
    if "error" in case:
        with pytest.raises(AgentsteadError) as refused:
            await perform(state, case["do"], case["as"], ids)
        assert refused.value.code == case["error"]
        assert refused.value.remedy
    else:
        check(await perform(state, case["do"], case["as"], ids), case, ids)
    assert await verify(state) == []


def check(outcome: Outcome, case: Mapping[str, Any], ids: Sequence[str]) -> None:
    [row] = outcome.decisions
    assert (row.verdict, row.op) == (case["verdict"], case["op"])
    assert row.twin == (named(case["twin"], ids) if "twin" in case else None)
    if "conflict" in case:
        assert row.conflict_with == named(case["conflict"], ids)
    if "code" in case:
        assert outcome.refusal is not None
        assert outcome.refusal.code == case["code"]
    else:
        assert outcome.refusal is None
    if "trace" in case:
        assert " ".join(f"{rule['rule']}:{rule['result']}" for rule in row.rules[1:]) == case["trace"]
    if "trust" in case:
        tried = next(rule for rule in row.rules if rule["rule"] == "authority")
        assert tried["trust"] == case["trust"]


def test_every_case_has_a_name_of_its_own_and_every_rule_decides_somewhere() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))
    traces = " ".join(case.get("trace", "") for case in CASES)
    for decided in ("scan:reject", "scan:hold", "exact:duplicate", "key:supersede", "key:pending", "near:duplicate"):
        assert decided in traces
    for decided in ("near:noted", "trust:pending", "authority:pending", "key:earlier"):
        assert decided in traces
