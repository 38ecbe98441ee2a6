"""A planted secret in arguments, files and environment appears in no reply, log, journal row or table of the home."""

import base64
import json
import logging
import sqlite3
import urllib.parse
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home, Result
from agentstead.kit.published import failure, success
from agentstead.state import AgentsteadError, SimulatedClock

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]

REGISTERED = "correct-horse-battery-staple-9"
SHAPED = "ghp_" + "Zx9" * 12
FORMS = (
    REGISTERED,
    SHAPED,
    base64.b64encode(REGISTERED.encode()).decode(),
    REGISTERED.encode().hex(),
    urllib.parse.quote(SHAPED + "&", safe=""),
)
PLANTED = f"key {REGISTERED} and {SHAPED} and {FORMS[2]} and {FORMS[3]}"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTSTEAD_SECRET_PLANTED", REGISTERED)


def lay_out(project: Path) -> None:
    (project / ".env").write_text(f"TOKEN={REGISTERED}\n")
    (project / "noisy.py").write_text("import pathlib\nprint(pathlib.Path('.env.copy').read_text())\n")


def calls(project: Path) -> list[tuple[str, dict[str, Any]]]:
    """One call of every tool that takes free text, each with the secret in it."""
    return [
        ("session_open", {"name": PLANTED[:60], "agent": SHAPED}),
        ("session_find", {"query": SHAPED}),
        ("task_save", {"tasks": [{"title": PLANTED, "body": PLANTED, "labels": [SHAPED], "key": SHAPED}]}),
        ("task_find", {"query": PLANTED}),
        ("task_get", {"task_id": SHAPED[:40]}),
        ("desk_view", {"ref": SHAPED[:40]}),
        ("snapshot_take", {"label": "before"}),
        ("snapshot_label", {"ref": "live", "name": SHAPED.lower()}),
        ("fork_open", {"labels": [SHAPED], "hypotheses": [PLANTED]}),
        ("check_run", {"ref": "live", "command": {"argv": ["echo", PLANTED]}, "wait_s": 20}),
        ("check_save", {"name": "noisy", "command": {"argv": ["echo", PLANTED]}}),
        ("workspace_view", {"view": "receipt"}),
        ("workspace_view", {"view": "file", "ref": "live", "path": SHAPED}),
        ("memory_write", {"operations": [{"op": "add", "type": "fact", "text": PLANTED}], "reason": PLANTED}),
        ("memory_write", {"operations": [{"op": "add", "type": "fact", "text": PLANTED}], "redact": True}),
        ("memory_recall", {"query": PLANTED}),
        ("memory_list", {}),
        ("memory_context", {"hint": PLANTED}),
        ("skill_list", {"query": PLANTED}),
        ("skill_explain", {"name": SHAPED}),
        ("peer_find", {"query": PLANTED}),
        ("peer_join", {"channel": "c", "display_name": PLANTED[:60]}),
        ("message_send", {"channel": "c", "text": PLANTED, "title": SHAPED}),
        ("network_view", {"ref": SHAPED}),
        ("permission_check", {"tool": "other/tool", "arguments": {"token": PLANTED}}),
        ("permission_request", {"calls": [{"tool": "other/tool", "arguments": {"token": PLANTED}}], "why": PLANTED}),
        ("permission_explain", {"approval_id": SHAPED[:40]}),
        ("permission_status", {}),
        ("session_open", {SHAPED: SHAPED}),
        ("task_save", {"tasks": SHAPED}),
    ]


def found_in(text: str) -> list[str]:
    return [form for form in FORMS if form in text]


def cells_with_secrets(connection: sqlite3.Connection) -> set[str]:
    """Return `table.column` of every cell that holds a form of the secret."""
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = set()
    for table in tables:
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            found |= {f"{table}.{name}" for name in row.keys() if found_in(str(row[name]))}  # noqa: SIM118
    return found


async def test_no_reply_no_log_and_no_table_shows_a_planted_secret(
    tmp_path: Path, project: Path, clock: SimulatedClock, invoke: Invoke, caplog: pytest.LogCaptureFixture
) -> None:
    lay_out(project)
    home = await Home.open(tmp_path / "home", clock=clock)
    operations = {name: each for server in home.servers for name, each in server.by_name.items()}
    replies: list[str] = []
    with caplog.at_level(logging.DEBUG, logger="agentstead"):
        for tool, arguments in calls(project):
            operation = operations[tool]
            try:
                result: Result = await invoke(home, operation.fn, cwd=project, **arguments)
                wire = success(operation, result, replayed=False, redactor=home.redactor)
            except AgentsteadError as error:
                wire = failure(operation, error, redactor=home.redactor)
            replies.append(wire.model_dump_json(by_alias=True))
            assert not found_in(replies[-1]), (tool, replies[-1])
    assert await home.state.maintain(cells_with_secrets) == set()
    await home.state.maintain(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    await home.close()
    assert not found_in(caplog.text)
    for path in sorted((tmp_path / "home").rglob("*")):
        if path.is_file() and "blobs" not in path.parts:
            content = path.read_bytes().decode("latin-1")
            assert not found_in(content), path.relative_to(tmp_path)
    assert any('"isError":true' in reply for reply in replies)
    assert sum('"isError":true' not in reply for reply in replies) > len(replies) / 2


async def test_what_a_check_prints_is_stored_and_shown_without_the_secret(
    tmp_path: Path, project: Path, invoke: Invoke
) -> None:
    (project / "printed.txt").write_text(f"{REGISTERED}\n{SHAPED}\n")
    home = await Home.open(tmp_path / "home")
    operations = {name: each for server in home.servers for name, each in server.by_name.items()}
    ran = await invoke(
        home,
        operations["check_run"].fn,
        cwd=project,
        ref="live",
        command={"argv": ["sh", "-c", "cat printed.txt; cat printed.txt >&2; exit 1"]},
        wait_s=20,
    )
    receipt = ran.receipts[0]["receipt_id"]
    shown = [ran.model_dump_json(), ran.summary()]
    for stream in ("stdout", "stderr"):
        got = await invoke(home, operations["receipt_get"].fn, cwd=project, receipt_id=receipt, stream=stream)
        shown.append(got.model_dump_json())
    await home.close()
    assert ran.receipts[0]["status"] == "fail"
    assert "redacted" in json.dumps(shown)
    for text in shown:
        assert not found_in(text)


async def test_a_saved_check_with_a_secret_in_it_is_refused(tmp_path: Path, project: Path, invoke: Invoke) -> None:
    home = await Home.open(tmp_path / "home")
    operations = {name: each for server in home.servers for name, each in server.by_name.items()}
    for command in ({"argv": ["echo", REGISTERED]}, {"argv": ["true"], "env": {"GH_TOKEN": SHAPED}}):
        with pytest.raises(AgentsteadError) as caught:
            await invoke(home, operations["check_save"].fn, cwd=project, name="noisy", command=command)
        assert caught.value.code == "runner.secret_literal"
    await home.close()
