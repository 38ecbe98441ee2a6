"""`agentstead answer`: at a terminal, by a person, once."""

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentstead.cli.terminal import Terminal
from agentstead.identity import Principal
from agentstead.kit import Home
from agentstead.policy import Approval, Grant, get_approval, list_grants, subject_ask
from agentstead.policy.approvals import NewApproval, ask

from .conftest import Run

DEADLINE_S = 60.0


async def _asked(path: Path, question: str) -> str:
    home = await Home.open(path)
    try:
        asker = Principal.host("some-host")
        approval = await home.state.write(subject_ask, "promotion", "a" * 64, question=question, asker=asker)
        return approval.id
    finally:
        await home.close()


async def _asked_about_a_call(path: Path) -> str:
    home = await Home.open(path)
    try:
        new = NewApproval(
            kind="call",
            summary="host:some-host wants to use workspace/check_run.",
            principal="host:some-host",
            options=("allow_once", "allow_until", "allow_uses", "deny_once"),
            ttl_us=3_600_000_000,
            workspace_most=10,
            server="workspace",
            tool="check_run",
            action_hash="b" * 64,
            input_digest="c" * 64,
        )
        return (await home.state.write(ask, new)).id
    finally:
        await home.close()


async def _grants(path: Path) -> list[Grant]:
    home = await Home.open(path)
    try:
        return list(await home.state.read(list_grants))
    finally:
        await home.close()


async def _found(path: Path, approval_id: str) -> Approval:
    home = await Home.open(path)
    try:
        return await home.state.read(get_approval, approval_id)
    finally:
        await home.close()


@pytest.fixture
def approval(home_path: Path) -> str:
    """A question of a host that waits for a person."""
    return asyncio.run(_asked(home_path, "Promote \x1b[31mthis\x1b[0m fork?\nTwo files change."))


def at_terminal(arguments: Sequence[str], typed: str = "") -> tuple[int, str]:
    """Run a command with a terminal at both ends and type a text into it; return its exit code and what it showed."""
    mine, its = pty.openpty()
    command = [sys.executable, "-m", "agentstead.cli", *arguments]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, start_new_session=True) as process:
        os.close(its)
        os.write(mine, typed.encode())
        shown = b"".join(_until_closed(mine))
        code = process.wait(timeout=DEADLINE_S)
    os.close(mine)
    return code, shown.decode().replace("\r\n", "\n")


def _until_closed(descriptor: int) -> list[bytes]:
    chunks: list[bytes] = []
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        ready, _, _ = select.select([descriptor], [], [], 1.0)
        try:
            chunk = os.read(descriptor, 65_536) if ready else None
        except OSError:
            break
        if chunk == b"":
            break
        chunks.append(chunk or b"")
    return chunks


def test_the_question_is_shown_and_the_choice_recorded_with_its_proof(home_path: Path, approval: str) -> None:
    code, shown = at_terminal(["answer", approval, "--note", "go on"], "1\n")
    assert code == 0
    assert "host:some-host asks:" in shown
    assert "Two files change." in shown
    assert "\x1b[31m" not in shown
    assert "1  allow_once" in shown
    settled = asyncio.run(_found(home_path, approval))
    assert (settled.state, settled.answer, settled.answered_by, settled.proof, settled.note) == (
        "allowed",
        "allow_once",
        "user",
        "terminal",
        "go on",
    )


def test_a_no_ends_with_1_and_a_second_answer_with_a_conflict(home_path: Path, approval: str) -> None:
    code, _ = at_terminal(["answer", approval, "--choice", "deny_once"])
    assert code == 1
    assert asyncio.run(_found(home_path, approval)).state == "denied"
    code, shown = at_terminal(["answer", approval, "--choice", "allow_once"])
    assert code == 6
    assert "approval.settled: " in shown
    assert asyncio.run(_found(home_path, approval)).state == "denied"


def test_an_empty_line_leaves_the_question_open(home_path: Path, approval: str) -> None:
    code, shown = at_terminal(["answer", approval], "9\n\n")
    assert code == 4
    assert shown.count("or Enter to leave it open") == 2
    assert asyncio.run(_found(home_path, approval)).state == "pending"


def test_a_choice_that_is_not_offered_is_refused(home_path: Path, approval: str) -> None:
    code, shown = at_terminal(["answer", approval, "--choice", "allow_session"])
    assert code == 2
    assert "Choose one of allow_once, deny_once" in shown
    assert asyncio.run(_found(home_path, approval)).state == "pending"


def test_through_a_pipe_nothing_is_answered(run: Run, home_path: Path, approval: str) -> None:
    ran = run("answer", approval, "--choice", "allow_once")
    assert ran.code == 3
    assert ran.err.startswith(f"pending.person_required: {approval} is answered at a terminal")
    assert asyncio.run(_found(home_path, approval)).state == "pending"


def test_an_agents_process_answers_nothing_even_at_a_terminal(
    home_path: Path, approval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTSTEAD_PROCESS", "prc_1")
    code, shown = at_terminal(["answer", approval, "--choice", "allow_once"])
    assert code == 3
    assert "permission.denied: `agentstead answer` is for a person" in shown
    assert asyncio.run(_found(home_path, approval)).state == "pending"


def test_an_unknown_question_is_said_to_be_unknown(home_path: Path) -> None:
    code, shown = at_terminal(["answer", "apr_01ARZ3NDEKTSV4RRFFQ69G5FAV", "--choice", "allow_once"])
    assert code == 1
    assert "approval.not_found: " in shown


def test_a_person_at_a_terminal_gets_tables_in_colour_unless_they_do_not_want_them(
    home_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plain = at_terminal(["config", "show"])
    assert "\x1b[" not in plain
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm-256color")
    _, coloured = at_terminal(["config", "show"])
    assert "\x1b[1m" in coloured
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in at_terminal(["config", "show"])[1]


@pytest.fixture
def call_approval(home_path: Path) -> str:
    """A question about a call, whose answers may carry a date or a number."""
    return asyncio.run(_asked_about_a_call(home_path))


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Play a terminal in this process, at which these lines are typed."""
    monkeypatch.setattr(Terminal, "at_terminal", True)

    def types(*lines: str) -> None:
        typed = iter(lines)
        monkeypatch.setattr("builtins.input", lambda: next(typed))

    return types


def test_an_answer_until_a_day_asks_for_the_day(
    run: Run, home_path: Path, call_approval: str, typing: Callable[..., None]
) -> None:
    day = datetime.now(UTC).date() + timedelta(days=5)
    typing("2", str(day))
    assert run("answer", call_approval, "-o", "json").code == 0
    (grant,) = asyncio.run(_grants(home_path))
    assert datetime.fromtimestamp(grant.expires_at / 1_000_000, UTC).date() == day


def test_an_answer_for_some_times_asks_how_many(
    run: Run, home_path: Path, call_approval: str, typing: Callable[..., None]
) -> None:
    typing("allow_uses", "3")
    ran = run("answer", call_approval, "-o", "json")
    assert (ran.code, ran.json["answer"]) == (0, "allow_uses")
    assert "How many times: " in ran.err
    (grant,) = asyncio.run(_grants(home_path))
    assert grant.uses_left == 3


@pytest.mark.parametrize(
    ("options", "code", "starts"),
    [
        (["--choice", "allow_until", "--until", "tomorrow"], 1, "grant.expiry_required: 'tomorrow' is no date"),
        (["--choice", "allow_until", "--until", "2001-01-01"], 1, "grant.expiry_required: "),
        (["--choice", "allow_until", "--until", "2999-01-01"], 1, "grant.too_wide: "),
        (["--choice", "allow_uses", "--uses", "0"], 1, "grant.too_wide: "),
        (["--choice", "allow_session"], 2, "tool.invalid_arguments: "),
    ],
)
def test_an_answer_that_may_not_be_given_leaves_the_question_open(
    run: Run,
    home_path: Path,
    call_approval: str,
    typing: Callable[..., None],
    options: list[str],
    code: int,
    starts: str,
) -> None:
    typing()
    ran = run("answer", call_approval, *options)
    assert ran.code == code
    assert ran.err.startswith(starts)
    assert asyncio.run(_found(home_path, call_approval)).state == "pending"
    assert asyncio.run(_grants(home_path)) == []


def test_the_end_of_input_leaves_the_question_open(
    run: Run, home_path: Path, call_approval: str, monkeypatch: pytest.MonkeyPatch, typing: Callable[..., None]
) -> None:
    def end() -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", end)
    ran = run("answer", call_approval)
    assert ran.code == 4
    assert f"agentstead answer {call_approval}" in ran.err


def test_an_operator_token_is_shown_once_at_a_terminal(run: Run, home_path: Path, typing: Callable[..., None]) -> None:
    made = run("home", "token", "--operator", "--days", "2", "-o", "json").json
    assert made["token"].startswith("agst_operator_")
    assert run("home", "token", "--operator", "--days", "2", "-o", "json").json["token"] != made["token"]
    assert made["token"] not in run("events", "-n", "1000", "-o", "json").out
    assert run("home", "token", "--operator", "--days", "1000").code == 2
