"""A scripted tour of every tool that the six core toolsets list, the same through every door and era."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

CallTool = Callable[..., Awaitable[Any]]

CHECK = ["python3", "-I", "-c", "import pathlib, sys; sys.exit('42' not in pathlib.Path('answer.txt').read_text())"]

SKILL = """---
name: greeting
description: How to greet people. Use it when somebody says hello.
---
Say hello, and read notes.txt.
"""


def lay_out(project: Path, home: Path) -> None:
    """Make the small project that the tour works on, and a skill in the person's own home."""
    (project / ".git").mkdir(parents=True)
    (project / "answer.txt").write_text("41\n")
    (home / "config.toml").write_text("[prompt]\nwait_s = 0\n")
    skill = home / "skills" / "greeting"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "notes.txt").write_text("Hello means hello.\n")


async def tour(call: CallTool, project: Path) -> list[tuple[str, Any]]:
    """Call every tool at least once; return what each answered, in order."""
    told: list[tuple[str, Any]] = []

    async def step(server: str, tool: str, /, **arguments: Any) -> Any:
        answer = await call(server, tool, arguments)
        told.append((tool, answer))
        return answer

    workspace = str(project)
    opened = await step("sessions", "session_open", workspace=workspace, name="tour")
    session = opened["session_id"]
    await _sessions(step, workspace, session)
    await _workspace(step, workspace, session)
    await _memory(step, f"workspace:{opened['workspace']['id']}")
    await _skills(step, workspace, session)
    await _network(step, workspace, session)
    await _permissions(step, session)
    return told


async def _sessions(step: CallTool, workspace: str, session: str) -> None:
    events = [{"kind": "prompt", "text": "Make the answer right."}, {"kind": "reply", "text": "It was 41."}]
    await step("sessions", "session_record", session_id=session, events=events, turn="begin")
    await step(
        "sessions",
        "task_save",
        workspace=workspace,
        tasks=[{"key": "a", "title": "Find"}, {"key": "b", "title": "Fix", "after": ["a"]}],
    )
    packet = await step("sessions", "task_claim", session_id=session)
    await step("sessions", "task_report", lease=packet["lease"], state="completed", summary="found")
    await step("sessions", "desk_view", ref=session, view="recap")
    await step("sessions", "desk_view", kind="task", workspace=workspace)


async def _workspace(step: CallTool, workspace: str, session: str) -> None:
    """Fork, write, check, promote what is proved, and go back."""
    before = await step("workspace", "snapshot_take", workspace=workspace, label="before")
    opened = await step("workspace", "fork_open", workspace=workspace, **{"from": before["snapshot_id"]})
    fork = opened["forks"][0]["fork_id"]
    await step("workspace", "fork_write", fork_id=fork, files=[{"path": "answer.txt", "text": "42\n"}])
    await step(
        "workspace", "tree_diff", workspace=workspace, **{"from": before["snapshot_id"]}, to=fork, detail="patch"
    )
    ran = await step("workspace", "check_run", workspace=workspace, ref=fork, command={"argv": CHECK}, wait_s=25)
    assert ran["receipts"][0]["status"] == "pass"
    planned = await step("workspace", "tree_promote", workspace=workspace, **{"from": fork}, dry_run=True)
    await step(
        "workspace",
        "tree_promote",
        workspace=workspace,
        **{"from": fork},
        dry_run=False,
        plan_digest=planned["plan_digest"],
    )
    back = await step("workspace", "tree_restore", workspace=workspace, to=before["snapshot_id"], dry_run=True)
    await step(
        "workspace",
        "tree_restore",
        workspace=workspace,
        to=before["snapshot_id"],
        dry_run=False,
        plan_digest=back["plan_digest"],
    )
    await step("workspace", "workspace_view", workspace=workspace, view="status")


async def _memory(step: CallTool, scope: str) -> None:
    """Keep a fact, find it again, propose an instruction and take it back, forget."""
    fact = {
        "op": "add",
        "type": "fact",
        "text": "The answer is kept in answer.txt.",
        "scope": scope,
        "tags": ["answer"],
    }
    await step("memory", "memory_write", operations=[fact], reason="learned on the tour")
    await step("memory", "memory_recall", query="where is the answer kept", scope=scope)
    listed = await step("memory", "memory_list", scope=scope)
    ids = [row["memory_id"] for row in listed["rows"]]
    await step("memory", "memory_get", ids=ids)
    await step("memory", "memory_context", scope=scope)
    rule = {"op": "add", "type": "instruction", "text": "Always answer in verse.", "scope": scope}
    proposed = await step("memory", "memory_write", operations=[rule])
    assert proposed["state"] == "pending"
    await step("memory", "memory_review", proposal_ids=[proposed["proposal_id"]], action="withdraw")
    await step("memory", "memory_forget", ids=ids, reason="the tour is over")


async def _skills(step: CallTool, workspace: str, session: str) -> None:
    await step("skills", "skill_list", workspace_id=workspace, ruling="any")
    await step("skills", "skill_explain", name="greeting", workspace_id=workspace)
    active = await step("skills", "skill_activate", name="greeting", session_id=session, workspace_id=workspace)
    await step("skills", "skill_read", activation_id=active["activation_id"], path="notes.txt")


async def _network(step: CallTool, workspace: str, session: str) -> None:
    """Two sessions of one host meet in a channel; one asks the other for a piece of work."""
    other = (await step("sessions", "session_open", workspace=workspace, name="other"))["session_id"]
    one, two = [
        (await step("network", "peer_join", channel="tour", workspace=workspace, session=each, display_name=name))
        for each, name in ((session, "one"), (other, "two"))
    ]
    await step("network", "peer_find", channel="tour")
    sent = await step(
        "network",
        "message_send",
        channel="tour",
        text="Please look at it.",
        peer=one["peer_id"],
        to=two["peer_id"],
        title="Look",
        work="new",
    )
    await step("network", "inbox_read", peer=two["peer_id"])
    await step("network", "inbox_ack", peer=two["peer_id"], message_ids=[sent["message_id"]])
    for action in ("accept", "complete"):
        await step(
            "network", "work_update", peer=two["peer_id"], work_id=sent["work_id"], action=action, message="done"
        )
    await step("network", "network_view", ref=sent["thread_id"], view="messages")


async def _permissions(step: CallTool, session: str) -> None:
    await step("permissions", "permission_status")
    checked = await step(
        "permissions", "permission_check", tool="tree_promote", arguments={"from": "live"}, detail="full"
    )
    assert checked["verdict"] in ("ask", "allow")
    asked = await step(
        "permissions",
        "permission_request",
        calls=[{"tool": "check_run", "arguments": {"ref": "live", "command": {"argv": ["true"]}}}],
        why="soon",
    )
    approval = asked["calls"][0]["approval_id"]
    await step("permissions", "approval_get", approval_id=approval)
    await step("permissions", "permission_explain", approval_id=approval)
    await step("permissions", "permission_prompt", tool_name="Bash", input={"command": "ls"})


_ID = re.compile(
    r"\b([a-z]{3,9}_)?(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-hjkmnp-tv-z]{26})\b|\b[0-9a-f]{12,128}\b|\b(?:thread|work|msg|direct|peer)_[A-Za-z0-9_-]+\b"
)

_MEASURED = ("age", "age_days", "score", "lexical", "_us", "_ms", "_s", "wall", "cpu", "pid", "seq")


class Normal:
    """Answers with what must differ taken out: ids by the order of their appearance, times, places, measurements."""

    def __init__(self, *places: Path) -> None:
        self._places = sorted((str(place) for place in places), key=len, reverse=True)
        self._seen: dict[str, str] = {}

    def of(self, value: Any, name: str = "") -> Any:
        """Return the comparable form of a JSON value."""
        if isinstance(value, dict):
            return {self._text(key): self.of(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item, name) for item in value]
        if isinstance(value, str):
            return self._text(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (isinstance(value, float) or abs(value) > 10**9 or name.endswith(_MEASURED)):
            return "<number>"
        return value

    def _text(self, text: str) -> str:
        for place in self._places:
            text = text.replace(place, "<place>")
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)", "<time>", text)
        return _ID.sub(lambda match: self._seen.setdefault(match[0], f"<id {len(self._seen)}>"), text)
