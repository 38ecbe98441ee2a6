"""The face: what is declared works, resources say what their tools say, and changes name what changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.identity import Principal
from agentstead.kit import Call, Home, Resource
from agentstead.state import Reading
from agentstead.workspace import keeping, service
from agentstead.workspace.server import CORE, INSTRUCTIONS, SERVER
from tests.conftest import Invoke

pytestmark = pytest.mark.anyio


@pytest.fixture
def call(home: Home, project: Path) -> Call:
    return Call(home=home, principal=Principal.user(at_terminal=True), cwd=project)


def resource(scheme: str) -> Resource:
    return next(each for each in SERVER.resources if each.uri_template.startswith(f"{scheme}://"))


def test_the_core_set_is_the_eight_tools_of_the_specification() -> None:
    assert tuple(tool.name for tool in SERVER.tools("core")) == CORE
    assert len(CORE) == 8
    assert len(INSTRUCTIONS) <= 1500


@pytest.mark.parametrize(
    ("name", "arguments", "action", "risk"),
    [
        ("workspace_view", {}, "workspace.view", "read"),
        ("snapshot_take", {}, "workspace.snapshot", "write"),
        ("tree_diff", {}, "workspace.diff", "read"),
        ("fork_open", {}, "workspace.fork", "write"),
        ("fork_write", {}, "workspace.write", "write"),
        ("check_run", {}, "workspace.check", "execute"),
        ("tree_promote", {}, "workspace.view", "read"),
        ("tree_promote", {"dry_run": True}, "workspace.view", "read"),
        ("tree_promote", {"dry_run": False}, "workspace.promote", "destructive"),
        ("tree_restore", {}, "workspace.view", "read"),
        ("tree_restore", {"dry_run": False}, "workspace.restore", "destructive"),
        ("tree_restore", {"dry_run": False, "undo": "opr_x"}, "workspace.undo", "destructive"),
    ],
)
def test_what_the_policy_is_asked_follows_the_arguments(
    name: str, arguments: dict[str, Any], action: str, risk: str
) -> None:
    assert SERVER.by_name[name].action_for(arguments) == (action, risk)


async def test_a_resource_says_what_its_tool_says(home: Home, invoke: Invoke, project: Path, call: Call) -> None:
    taken = await invoke(home, service.snapshot_take, cwd=project)
    ran = await invoke(home, service.check_run, ref="live", command={"argv": ["echo", "hi"]}, cwd=project)
    receipt_id = ran.receipts[0]["receipt_id"]
    workspace = await home.state.read(Reading.value, "SELECT id FROM workspaces")

    snapshot = json.loads(await resource("snapshot").read(call, snapshot_id=taken.snapshot_id))
    receipt = json.loads(await resource("receipt").read(call, receipt_id=receipt_id))
    timeline = json.loads(await resource("timeline").read(call, workspace=workspace))

    assert snapshot["item"]["tree"] == taken.tree
    assert (receipt["text"], receipt["item"]["document"]["status"]) == ("hi\n", "pass")
    assert timeline["items"][0]["snapshot_id"] == taken.snapshot_id
    entries = resource("receipt").entries
    assert entries is not None
    assert await entries(call) == [(f"receipt://{receipt_id}", "command: pass")]


async def test_a_host_without_a_folder_is_shown_an_empty_list(home: Home) -> None:
    entries = resource("receipt").entries
    assert entries is not None
    assert await entries(Call(home=home, principal=Principal.user(at_terminal=True), cwd=None)) == []


async def test_a_promotion_is_readable_as_a_resource(home: Home, invoke: Invoke, project: Path, call: Call) -> None:
    fork_id = (await invoke(home, service.fork_open, cwd=project)).forks[0]["fork_id"]
    await invoke(home, service.fork_write, fork_id=fork_id, files=[{"path": "n", "text": "x"}])
    plan: dict[str, Any] = {"from": fork_id, "cwd": project}
    digest = (await invoke(home, service.tree_promote, **plan)).plan_digest
    done = await invoke(home, service.tree_promote, **plan, dry_run=False, plan_digest=digest, principal=call.principal)

    shown = json.loads(await resource("promotion").read(call, promotion_id=done.promotion_id))

    assert shown["item"]["state"] == "committed"


async def test_prompts_name_tools_that_exist(call: Call) -> None:
    names = set(SERVER.by_name)
    for prompt in SERVER.prompts:
        text = await prompt.render(call, **dict.fromkeys(prompt.arguments, "WHAT THE PERSON SAID"))
        used = {word.strip(".,()'") for word in text.replace("(", " ").split() if "_" in word and "=" not in word}
        assert "WHAT THE PERSON SAID" in text
        assert {word for word in used if word in names}, prompt.name
        assert {word for word in used if word.islower()} <= names | {"plan_digest", "dry_run"}, prompt.name


async def test_what_a_change_touches_is_named(home: Home, invoke: Invoke, project: Path) -> None:
    head = await home.state.head()
    await invoke(home, service.snapshot_take, cwd=project)
    ran = await invoke(home, service.check_run, ref="live", command={"argv": ["true"]}, cwd=project)
    workspace = await home.state.read(Reading.value, "SELECT id FROM workspaces")

    entries = await home.state.wait(head.seq, kinds=("workspace.*",), timeout_s=5)
    touched = {uri for entry in entries for uri in SERVER.changes(entry)}

    assert touched == {f"timeline://{workspace}", f"receipt://{ran.receipts[0]['receipt_id']}"}


async def test_every_reference_of_this_server_is_answered_for(home: Home, invoke: Invoke, project: Path) -> None:
    taken = await invoke(home, service.snapshot_take, cwd=project)
    opened = await invoke(home, service.fork_open, cwd=project)
    ran = await invoke(home, service.check_run, ref="live", command={"argv": ["false"]}, cwd=project)
    written = await invoke(
        home, service.fork_write, fork_id=opened.forks[0]["fork_id"], files=[{"path": "n", "text": "x"}]
    )
    workspace = await home.state.read(Reading.value, "SELECT id FROM workspaces")

    def facts(ref: str) -> Callable[[Reading], Any]:
        return lambda reading: home.state.refs.look(reading, ref)

    snapshot = await home.state.read(facts(taken.snapshot_id))
    fork = await home.state.read(facts(opened.forks[0]["fork_id"]))
    receipt = await home.state.read(facts(ran.receipts[0]["receipt_id"]))
    operation = await home.state.read(facts(written.operation_id))

    assert {each.workspace for each in (snapshot, fork, receipt, operation)} == {workspace}
    assert (snapshot.state, fork.state, receipt.state, operation.state) == ("complete", "open", "recorded", "done")
    assert (receipt.facts["status"], receipt.facts["tree"]) == ("fail", taken.tree)
    assert fork.facts["base_snapshot"] == taken.snapshot_id
    for prefix in SERVER.refs:
        assert not (await home.state.read(facts(prefix + "01ARZ3NDEKTSV4RRFFQ69G5FAV"))).exists


async def test_summaries_are_short_and_the_structure_is_whole(home: Home, invoke: Invoke, project: Path) -> None:
    for number in range(150):
        (project / f"file-{number:03}").write_text("x")
    taken = await invoke(home, service.snapshot_take, cwd=project)
    diff = await invoke(home, service.tree_diff, **{"from": "tree:" + taken.tree}, cwd=project)
    listed = await invoke(home, keeping.snapshot_list, cwd=project)

    assert len(taken.summary()) < 600
    assert diff.totals == {"files": 0}
    assert listed.items[0]["files"] == 151
