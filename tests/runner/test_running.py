"""Running a command: exact argv and environment, measured, capped, bounded in time, and ended as a whole."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentstead.runner import Command, Exit, Limits, Runner, environment, identify, is_alive, runner_of
from agentstead.runner.sightings import start_ticks
from agentstead.state import AgentsteadError, Invalid, Reading, State, Unavailable

pytestmark = pytest.mark.anyio

PYTHON = sys.executable
FOREVER = "import time\nwhile True: time.sleep(0.05)"


def command(code: str, directory: Path, **limits: Any) -> Command:
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    return Command((PYTHON, "-I", "-S", "-c", code), directory, environ, Limits(**limits))


def row_of(reading: Reading, process_id: str) -> Mapping[str, Any]:
    row = reading.one("SELECT * FROM processes WHERE id = :id", id=process_id)
    assert row is not None
    return dict(row)


async def gone(pid: int) -> bool:
    with anyio.move_on_after(10):
        while start_ticks(pid):  # noqa: ASYNC110 - the system makes it true
            await anyio.sleep(0.01)
        return True
    return False


async def test_a_command_runs_in_its_directory_and_its_end_is_measured(
    runner: Runner, state: State, tmp_path: Path
) -> None:
    code = "import os,sys\nsum(range(2_000_000))\nprint(os.getcwd())\nsys.stderr.write('bad')\nsys.exit(3)"

    result = await runner.run(command(code, tmp_path), owner="rcp_test")

    assert (result.reason, result.exit_code, result.signal) == ("exit", 3, None)
    assert result.stdout.kept == f"{tmp_path}\n".encode()
    assert result.stderr.kept == b"bad"
    assert result.cpu_user_us > 0
    assert 0 < result.wall_us < 60_000_000
    assert result.peak_rss_bytes > 2**20
    assert (result.orphans_killed, result.usage_complete) == (0, True)
    row = await state.read(row_of, result.process_id)
    assert (row["state"], row["reason"], row["owner"], row["isolation"]) == ("exited", "exit", "rcp_test", "none")
    assert json.loads(row["exit"])["exit_code"] == 3
    assert set(json.loads(row["enforced"]).values()) == {"unknown"}
    assert row["ended_at"] >= row["started_at"] > 0


async def test_the_arguments_are_never_read_by_a_shell(runner: Runner, tmp_path: Path) -> None:
    hostile = ("; rm -rf /", "$(id)", "a b", "*", "")
    code = "import json,sys\nprint(json.dumps(sys.argv[1:]))"

    result = await runner.run(Command((PYTHON, "-I", "-S", "-c", code, *hostile), tmp_path, {}), owner="rcp_test")

    assert json.loads(result.stdout.kept) == list(hostile)


async def test_the_environment_is_exactly_what_was_given_and_a_mark(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_TOKEN", "never inherited")
    code = "import json,os\nprint(json.dumps(dict(os.environ)))"
    given = environment(
        home=tmp_path / "h",
        temporary=tmp_path / "t",
        caller={"PATH": "/caller/bin", "WANTED": "1", "OTHER": "2", "AGENTSTEAD_TOKEN": "secret"},
        allowed=["WANTED", "ABSENT", "AGENTSTEAD_TOKEN"],
        values={"MODE": "fast", "AGENTSTEAD_PROCESS": "prc_forged"},
    )

    result = await runner.run(Command((PYTHON, "-I", "-S", "-c", code), tmp_path, given), owner="rcp_test")

    seen = json.loads(result.stdout.kept)
    seen.pop("LC_CTYPE", None)
    assert seen == {
        "AGENTSTEAD_PROCESS": result.process_id,
        "HOME": str(tmp_path / "h"),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "MODE": "fast",
        "PATH": "/caller/bin",
        "SHELL": "/bin/sh",
        "TMPDIR": str(tmp_path / "t"),
        "TZ": "UTC",
        "USER": "agentstead",
        "WANTED": "1",
    }


async def test_a_signal_is_told_apart_from_an_exit(runner: Runner, tmp_path: Path) -> None:
    result = await runner.run(command("import os\nos.kill(os.getpid(), 11)", tmp_path), owner="rcp_test")

    assert (result.reason, result.exit_code, result.signal) == ("signal", None, 11)


async def test_what_runs_too_long_is_ended_and_says_so(runner: Runner, tmp_path: Path) -> None:
    result = await runner.run(command(FOREVER, tmp_path, wall_s=0.3, grace_s=0.2), owner="rcp_test")

    assert (result.reason, result.signal) == ("wall_limit", 15)
    assert result.wall_us >= 300_000


async def test_what_ignores_the_request_to_end_is_killed_after_the_grace(runner: Runner, tmp_path: Path) -> None:
    code = "import signal,time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready', flush=True)\n" + FOREVER

    result = await runner.run(command(code, tmp_path, wall_s=1.5, grace_s=0.2), owner="rcp_test")

    assert result.stdout.kept == b"ready\n"
    assert (result.reason, result.signal) == ("wall_limit", 9)


async def test_output_beyond_the_cap_is_counted_and_hashed_but_not_kept(runner: Runner, tmp_path: Path) -> None:
    code = "import sys\nsys.stdout.write('x' * 1_000_000)\nsys.stderr.write('e' * 70_000)"

    result = await runner.run(
        command(code, tmp_path, stdout_kept_bytes=1000, stderr_kept_bytes=100_000), owner="rcp_test"
    )

    assert result.stdout.kept == b"x" * 1000
    assert (result.stdout.size_bytes, result.stdout.truncated) == (1_000_000, True)
    assert result.stdout.sha256 == hashlib.sha256(b"x" * 1_000_000).hexdigest()
    assert (len(result.stderr.kept), result.stderr.truncated) == (70_000, False)


async def test_a_flood_of_output_ends_the_process(runner: Runner, tmp_path: Path) -> None:
    code = "import sys\nwhile True: sys.stdout.write('y' * 65536)"

    result = await runner.run(
        command(code, tmp_path, output_bytes=2**20, grace_s=0.2, stdout_kept_bytes=10), owner="rcp_test"
    )

    assert result.reason == "output_limit"
    assert result.stdout.kept == b"y" * 10


@pytest.mark.parametrize("leave", ["pass", "os.setsid()"])
async def test_children_left_behind_are_killed_whether_or_not_they_left_the_group(
    runner: Runner, tmp_path: Path, leave: str
) -> None:
    code = f"""
import os, time
if os.fork() == 0:
    {leave}
    open("pid", "w").write(str(os.getpid()))
    while True: time.sleep(0.05)
while not os.path.exists("pid") or not open("pid").read(): time.sleep(0.01)
"""
    result = await runner.run(command(code, tmp_path), owner="rcp_test")

    assert (result.exit_code, result.orphans_killed, result.usage_complete) == (0, 1, False)
    assert await gone(int((tmp_path / "pid").read_text()))


async def test_cancelling_the_caller_ends_the_process_and_records_it(
    runner: Runner, state: State, tmp_path: Path
) -> None:
    code = "import os\nopen('pid', 'w').write(str(os.getpid()))\n" + FOREVER
    pid_file = tmp_path / "pid"
    async with anyio.create_task_group() as group:

        async def run() -> None:
            await runner.run(command(code, tmp_path, grace_s=0.2), owner="rcp_test")

        group.start_soon(run)
        with anyio.fail_after(20):
            while not pid_file.exists() or not pid_file.read_text():  # noqa: ASYNC110 - another process writes it
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()

    assert await gone(int(pid_file.read_text()))
    assert await state.read(Reading.value, "SELECT state || ' ' || reason FROM processes") == "exited stopped"


async def test_no_more_run_at_once_than_there_are_places(state: State, tmp_path: Path) -> None:
    runner = Runner(state)
    places = min(4, os.cpu_count() or 1)
    code = "import os,time\nopen(f'at-{os.getpid()}','w')\ntime.sleep(0.3)\nprint(len([n for n in os.listdir() if n.startswith('at-')]))\nos.remove(f'at-{os.getpid()}')"  # noqa: E501
    results: list[Exit] = []

    async def run() -> None:
        results.append(await runner.run(command(code, tmp_path), owner="rcp_test"))

    async with anyio.create_task_group() as group:
        for _ in range(places + 2):
            group.start_soon(run)

    assert len(results) == places + 2
    assert all(int(result.stdout.kept) <= places for result in results)


async def test_a_program_that_is_not_there_is_named_and_nothing_is_recorded(
    runner: Runner, state: State, tmp_path: Path
) -> None:
    (tmp_path / "not-executable").write_text("")
    for argv in (("no-such-program-here",), ("./absent",), ("./not-executable",), (str(tmp_path),)):
        with pytest.raises(Invalid, match=r"runner\.program_missing"):
            await runner.run(Command(argv, tmp_path, {"PATH": os.environ["PATH"]}), owner="rcp_test")

    assert await state.read(Reading.value, "SELECT count(*) FROM processes") == 0


async def test_a_program_that_the_system_refuses_is_recorded_as_not_started(
    runner: Runner, state: State, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF but not really")
    broken.chmod(0o755)

    with pytest.raises(Unavailable, match=r"runner\.start_failed"):
        await runner.run(Command(("./broken",), tmp_path, {}), owner="rcp_test")

    assert await state.read(Reading.value, "SELECT state FROM processes") == "start_failed"


async def test_a_failing_record_of_the_start_ends_the_process(
    runner: Runner, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentstead.runner import records

    def broken(*_arguments: object) -> None:
        raise AgentsteadError("test.broken", "the disk is full")

    monkeypatch.setattr(records, "started", broken)
    began = time.monotonic()

    with pytest.raises(AgentsteadError, match=r"test\.broken"):
        await runner.run(command(FOREVER, tmp_path, grace_s=0.2), owner="rcp_test")

    assert time.monotonic() - began < 30
    assert await state.read(Reading.value, "SELECT state || ' ' || reason FROM processes") == "exited stopped"


def test_a_process_is_known_by_its_start_and_not_by_its_number_alone() -> None:
    own = identify(os.getpid())

    assert is_alive(own)
    assert own.start_ticks == start_ticks(os.getpid()) > 0
    assert not is_alive(type(own)(own.pid, own.start_ticks + 1, own.boot_id))
    assert not is_alive(type(own)(own.pid, own.start_ticks, "another boot"))
    assert not is_alive(type(own)(0, 0, own.boot_id))


async def test_one_home_has_one_runner(state: State) -> None:
    assert runner_of(state) is runner_of(state)
