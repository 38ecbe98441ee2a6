"""SIGKILL before and after every commit of a question's life: a yes runs its call once at most, and none is lost."""

import json
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from agentstead import identity, policy
from agentstead.policy import approvals
from agentstead.state import Reading, State, repair_all

pytestmark = pytest.mark.anyio

SCRIPT = """
import asyncio, json, sys
from pathlib import Path
from agentstead import identity, policy
from agentstead.config import Settings
from agentstead.identity import Principal
from agentstead.policy import CallFacts, Enforcement
from agentstead.state import PendingAnswer, State

async def main() -> None:
    home = Path(sys.argv[1])
    state = await State.open(home, sets=(identity.MIGRATIONS, policy.MIGRATIONS), group_limit=1)
    enforcement = Enforcement(state, home, settings=Settings(home, environ={}))
    call = CallFacts("workspace", "tree_promote", "workspace.promote", "destructive", {}, Principal.host("h"),
        state.clock.now_us())

    def said(what: str) -> None:
        with (home / "said").open("a") as file:
            file.write(what + "\\n")

    try:
        ticket = await enforcement.enter(call)
    except PendingAnswer as pending:
        approval_id = pending.details["approval_id"]
        said("asked " + approval_id)
        person = Principal.user(at_terminal=True)
        await enforcement.answer(approval_id, "allow_once", by=person, proof="terminal")
        said("answered " + approval_id)
        ticket = await enforcement.enter(call)

    def effect(tx) -> None:
        ticket.spend(tx)
        tx.journal("test.effect.done", subject=ticket.approval_id, body={})

    await state.write(effect)
    said("done " + ticket.approval_id)
    await enforcement.settle(ticket, completed=True)
    said("settled " + ticket.approval_id)
    await state.close()

asyncio.run(main())
"""
AT_LEAST = {
    "asked": ("none", "uncertain", "completed"),
    "answered": ("none", "uncertain", "completed"),
    "done": ("uncertain", "completed"),
    "settled": ("completed",),
}
COMMITS = 5  # the cursor key, the question, the answer, the effect, how it ended


async def _run(home: Path, crash: str = "") -> int:
    command = [sys.executable, "-c", SCRIPT, str(home)]
    done = await anyio.run_process(command, env={**os.environ, "AGENTSTEAD_CRASH": crash}, check=False, stderr=None)
    return done.returncode


def _said(home: Path) -> list[list[str]]:
    return [line.split() for line in (home / "said").read_text().splitlines()] if (home / "said").exists() else []


@pytest.mark.parametrize("passage", range(1, COMMITS + 1))
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_kill_loses_no_answer_and_runs_nothing_twice(tmp_path: Path, side: str, passage: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert await _run(home, f"commit.{side}:{passage}") == -signal.SIGKILL
    acknowledged = _said(home)
    state = await State.open(home, sets=(identity.MIGRATIONS, policy.MIGRATIONS))
    assert await repair_all(state, [approvals.REPAIR]) == []
    known = {row["id"]: row for row in await state.read(Reading.all, "SELECT * FROM approvals")}
    for what, approval_id in acknowledged:
        assert what == "asked" or known[approval_id]["state"] == "allowed"
        assert known[approval_id]["exec_state"] in AT_LEAST[what]
    await state.close()

    assert await _run(home) == 0
    state = await State.open(home, sets=(identity.MIGRATIONS, policy.MIGRATIONS))
    effects = [entry.subject for entry in await state.read(Reading.entries, 0, kinds=("test.*",))]
    assert len(effects) == len(set(effects))
    spent = await state.read(Reading.all, "SELECT approval_id FROM grants WHERE uses_left = 0")
    assert sorted(row["approval_id"] for row in spent) == sorted(effects)
    recorded = await state.read(Reading.all, "SELECT approval_id FROM policy_decisions WHERE outcome = 'granted'")
    assert sorted(row["approval_id"] for row in recorded) == sorted(effects)
    assert (await state.verify()).holds
    await state.close()


async def test_the_sweep_walks_every_commit_of_the_script(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert await _run(home, f"commit.before:{COMMITS + 1}") == 0
    assert [what for what, _ in _said(home)] == ["asked", "answered", "done", "settled"]
    kinds = await _kinds(home)
    assert kinds[-1] == "permissions.approval.executed"
    assert json.dumps(kinds).count("permissions.grant.spent") == 1


async def _kinds(home: Path) -> list[str]:
    state = await State.open(home, sets=(identity.MIGRATIONS, policy.MIGRATIONS))
    kinds = [entry.kind for entry in await state.read(Reading.entries, 0)]
    await state.close()
    return kinds
