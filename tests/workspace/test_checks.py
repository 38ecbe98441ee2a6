"""Checks and receipts: what is recorded is what we ran on exactly that tree, and nobody can write it by hand."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentstead.kit import Home
from agentstead.runner.sightings import start_ticks
from agentstead.state import Conflict, Invalid, NotFound, PendingAnswer, Reading, Unavailable
from agentstead.workspace import keeping, receipts, service
from agentstead.workspace.background import background_of
from agentstead.workspace.starting import start
from tests.conftest import Invoke

pytestmark = pytest.mark.anyio

FOREVER = "import os,time\nopen('pid','w').write(str(os.getpid()))\nwhile True: time.sleep(0.05)"


def python(code: str, *arguments: str) -> dict[str, Any]:
    return {"argv": [sys.executable, "-I", "-S", "-c", code, *arguments]}


async def run(home: Home, invoke: Invoke, project: Path, **arguments: Any) -> Any:
    given = {"ref": "live", "cwd": project, "environ": {"PATH": os.environ["PATH"]}, **arguments}
    return await invoke(home, service.check_run, **given)


async def document(home: Home, invoke: Invoke, project: Path, receipt_id: str) -> dict[str, Any]:
    view = await invoke(home, service.workspace_view, view="receipt", ref=receipt_id, cwd=project)
    found: dict[str, Any] = view.item["document"]
    return found


def scratch(home: Home) -> list[Path]:
    return [path for path in (home.path / "forks").glob("wsp_*/*") if path.name.startswith("rcp_")]


async def test_a_passing_command_gives_a_sealed_receipt_of_its_tree(home: Home, invoke: Invoke, project: Path) -> None:
    ran = await run(home, invoke, project, command=python("print('checked')"))

    (row,) = ran.receipts
    assert (ran.outcome, row["status"], row["exit"], row["isolation"], row["tests"]) == (
        "pass",
        "pass",
        0,
        "none",
        None,
    )
    assert row["tree_in"] == row["tree_out"]
    found = await document(home, invoke, project, row["receipt_id"])
    assert found["schema"] == "agentstead.receipt/1"
    assert found["check"]["argv"] == python("print('checked')")["argv"]
    assert found["streams"]["stdout"]["bytes"] == len("checked\n")
    assert set(found["enforced"].values()) == {"unknown"}
    assert found["environment"]["program"]["sha256"]
    assert found["exit"]["wall_us"] > 0
    shown = await invoke(home, keeping.receipt_get, receipt_id=row["receipt_id"], cwd=project)
    assert shown.text == "checked\n"
    assert scratch(home) == []


@pytest.mark.parametrize(
    ("command", "status", "exit_code"),
    [
        (python("raise SystemExit(3)"), "fail", 3),
        ({**python("raise SystemExit(3)"), "expect_exit": [0, 3]}, "pass", 3),
        (python("import os\nos.kill(os.getpid(), 9)"), "fail", None),
        ({**python("import time\ntime.sleep(60)"), "timeout_s": 1}, "timeout", None),
        ({"argv": ["no-such-program-at-all"]}, "error", None),
        ({"argv": ["cat", "readme.txt"], "cwd": "nowhere"}, "error", None),
    ],
)
async def test_every_way_to_end_has_its_status(
    home: Home, invoke: Invoke, project: Path, command: dict[str, Any], status: str, exit_code: int | None
) -> None:
    ran = await run(home, invoke, project, command=command)

    (row,) = ran.receipts
    assert (row["status"], row["exit"]) == (status, exit_code)
    assert ran.outcome == ("pass" if status == "pass" else "fail")
    assert (await document(home, invoke, project, row["receipt_id"]))["status"] == status
    assert scratch(home) == []


async def test_a_check_runs_in_a_copy_that_holds_the_tree_and_nothing_else(
    home: Home, invoke: Invoke, project: Path
) -> None:
    (project / ".env").write_text("TOKEN=planted-secret")
    (project / "sub").mkdir()
    (project / "sub" / "file").write_text("x")
    code = "import os\nprint(sorted(os.listdir('..')), os.path.basename(os.getcwd()))\nopen('made','w').write('y')"

    ran = await run(home, invoke, project, command={**python(code), "cwd": "sub"})

    (row,) = ran.receipts
    shown = await invoke(home, keeping.receipt_get, receipt_id=row["receipt_id"], cwd=project)
    assert shown.text == "['readme.txt', 'sub'] sub\n"
    assert not (project / "sub" / "made").exists()
    assert row["tree_out"] != row["tree_in"]
    assert (await document(home, invoke, project, row["receipt_id"]))["changed"] == ["sub/made"]
    found = await invoke(
        home, service.tree_diff, cwd=project, **{"from": f"{row['receipt_id']}:in"}, to=f"{row['receipt_id']}:out"
    )
    assert [each["path"] for each in found.files] == ["sub/made"]


async def test_the_receipt_is_of_the_tree_as_it_was_although_the_fork_moves_on(
    home: Home, invoke: Invoke, project: Path
) -> None:
    opened = await invoke(home, service.fork_open, cwd=project)
    fork = opened.forks[0]
    (Path(fork["path"]) / "readme.txt").write_text("by hand\n")
    ran = await run(home, invoke, project, ref=fork["fork_id"], command={"argv": ["cat", "readme.txt"]}, wait_s=0)
    (Path(fork["path"]) / "readme.txt").write_text("later\n")
    (row,) = ran.receipts
    with anyio.fail_after(30):
        while background_of(home).running:  # noqa: ASYNC110 - a child process ends it
            await anyio.sleep(0.01)

    shown = await invoke(home, keeping.receipt_get, receipt_id=row["receipt_id"], cwd=project)

    assert ran.outcome == "running"
    assert shown.text == "by hand\n"
    assert shown.item["tree_in"] != fork["tree"], "what was written by hand is part of the tree that was checked"


async def test_secrets_reach_no_receipt_and_foreign_variables_no_check(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "a1B2" * 9
    monkeypatch.setenv("PLANTED", "environment-secret")
    code = f"import os,sys\nprint(sorted(os.environ))\nprint({token!r})\nsys.stderr.write(sys.argv[1])"

    ran = await run(
        home,
        invoke,
        project,
        command={**python(code, token), "env": {"GIVEN": "yes", "KEY": token}, "env_allow": ["ALLOWED", "ABSENT"]},
        environ={"PATH": os.environ["PATH"], "ALLOWED": "1", "OTHER": "2"},
    )

    (row,) = ran.receipts
    sealed = json.dumps(await document(home, invoke, project, row["receipt_id"]))
    shown = await invoke(home, keeping.receipt_get, receipt_id=row["receipt_id"], cwd=project)
    errors = await invoke(home, keeping.receipt_get, receipt_id=row["receipt_id"], stream="stderr", cwd=project)
    assert "'ALLOWED'" in shown.text
    assert "'GIVEN'" in shown.text
    assert "OTHER" not in shown.text
    assert "PLANTED" not in shown.text
    assert token not in sealed + shown.text + errors.text
    for file in (home.path / "blobs").rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes()


async def test_an_equal_run_is_reused_unless_it_is_asked_for_anew(home: Home, invoke: Invoke, project: Path) -> None:
    command = {"argv": ["true"]}
    first = await run(home, invoke, project, command=command)
    again = await run(home, invoke, project, command=command)
    fresh = await run(home, invoke, project, command=command, fresh=True)
    other = await run(home, invoke, project, command={**command, "env": {"A": "1"}})
    (project / "readme.txt").write_text("another tree\n")
    moved = await run(home, invoke, project, command=command)

    ids = [each.receipts[0]["receipt_id"] for each in (first, again, fresh, other, moved)]
    assert ids[1] == ids[0]
    assert again.receipts[0]["reused_from"] == ids[0]
    assert len(set(ids)) == 4


async def test_repeats_that_disagree_are_flaky(home: Home, invoke: Invoke, project: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"import os,sys\nseen=os.path.exists({str(mark)!r})\nopen({str(mark)!r},'w')\nsys.exit(0 if seen else 1)"
    await invoke(home, keeping.check_save, name="unit", command=python(code), cwd=project)

    ran = await run(home, invoke, project, checks=["unit"], repeats=4)

    assert (ran.outcome, list(ran.flaky)) == ("fail", ["unit"])
    assert len({row["receipt_id"] for row in ran.receipts}) == 4
    verdict = await invoke(home, service.workspace_view, view="gate", cwd=project)
    assert verdict.item["outcome"] == "fail"
    assert verdict.item["leaves"][0]["status"] == "flaky"


async def test_the_same_key_runs_once(home: Home, invoke: Invoke, project: Path) -> None:
    arguments = {"command": python("print(1)"), "repeats": 2, "idempotency_key": "once"}

    first = await run(home, invoke, project, **arguments)
    second = await run(home, invoke, project, **arguments)

    assert second.receipts == first.receipts
    assert await home.state.read(Reading.value, "SELECT count(*) FROM processes") == 2


async def test_a_failed_run_shows_the_end_of_what_it_printed(home: Home, invoke: Invoke, project: Path) -> None:
    code = "import sys\nprint('x' * 5000)\nsys.stderr.write('the reason')\nsys.exit(1)"

    ran = await run(home, invoke, project, command=python(code))

    assert ran.receipts[0]["tail"].endswith("the reason")
    assert len(ran.receipts[0]["tail"]) <= 2_000
    assert "fail: command on tree" in ran.summary()


async def test_a_receipt_that_was_altered_is_no_evidence(home: Home, invoke: Invoke, project: Path) -> None:
    ran = await run(home, invoke, project, command=python("raise SystemExit(1)"))
    receipt_id = ran.receipts[0]["receipt_id"]
    await home.state.write(lambda tx: tx.execute("UPDATE receipts SET status = 'pass' WHERE id = :id", id=receipt_id))

    with pytest.raises(Unavailable, match=r"receipt\.mac_broken"):
        await invoke(home, keeping.receipt_get, receipt_id=receipt_id, cwd=project)


async def test_a_document_sealed_with_another_key_is_refused(home: Home, invoke: Invoke, project: Path) -> None:
    ran = await run(home, invoke, project, command=python("print(1)"))
    receipt = await home.state.read(receipts.the_receipt, ran.receipts[0]["receipt_id"])
    body = await home.blobs.get("blob", receipt.body)

    assert receipts.opened(receipt, body, home.key("receipts"))["status"] == "pass"
    with pytest.raises(Unavailable, match=r"receipt\.mac_broken"):
        receipts.opened(receipt, body, b"x" * 32)
    with pytest.raises(Unavailable, match=r"receipt\.mac_broken"):
        receipts.opened(receipt, body.replace(b'"pass"', b'"fail"'), home.key("receipts"))


async def test_saved_checks_are_versions_of_a_name(home: Home, invoke: Invoke, project: Path) -> None:
    first = await invoke(home, keeping.check_save, name="unit", command={"argv": ["true"]}, cwd=project)
    same = await invoke(home, keeping.check_save, name="unit", command={"argv": ["true"]}, cwd=project)
    second = await invoke(
        home, keeping.check_save, name="unit", command={"argv": ["false"]}, expected_version=1, cwd=project
    )
    back = await invoke(home, keeping.check_save, name="unit", command={"argv": ["true"]}, cwd=project)

    assert (first.item["version"], same.item["version"], second.item["version"], back.item["version"]) == (1, 1, 2, 3)
    assert back.item["digest"] == first.item["digest"] != second.item["digest"]
    listed = await invoke(home, keeping.check_list, cwd=project)
    assert [(each["name"], each["argv"]) for each in listed.items] == [("unit", ["true"])]
    with pytest.raises(Conflict, match=r"version\.conflict"):
        await invoke(home, keeping.check_save, name="unit", command={"argv": ["x"]}, expected_version=1, cwd=project)


async def test_what_is_asked_for_must_exist_and_be_one_thing(home: Home, invoke: Invoke, project: Path) -> None:
    with pytest.raises(NotFound, match=r"check\.not_found"):
        await run(home, invoke, project, checks=["none"])
    for wrong in ({}, {"checks": ["a"], "command": {"argv": ["true"]}}):
        with pytest.raises(Invalid, match=r"check\.invalid"):
            await run(home, invoke, project, **wrong)
    with pytest.raises(Invalid, match=r"tool\.invalid_arguments"):
        await run(home, invoke, project, command={"argv": []})
    with pytest.raises(Invalid, match=r"tool\.invalid_arguments"):
        await run(home, invoke, project, command={"argv": ["true"]}, repeats=21)


async def test_a_directory_outside_the_tree_is_no_place_to_run(home: Home, invoke: Invoke, project: Path) -> None:
    (project / "out").symlink_to("/")
    for cwd in ("out", "../..", "/"):
        ran = await run(home, invoke, project, command={"argv": ["true"], "cwd": cwd})
        assert ran.receipts[0]["status"] == "error"


async def test_a_host_must_be_allowed_to_run_something(home: Home, invoke: Invoke, project: Path) -> None:
    with pytest.raises(PendingAnswer, match=r"permission\.pending"):
        await run(home, invoke, project, command={"argv": ["true"]}, principal="host:claude")
    assert await home.state.read(Reading.value, "SELECT count(*) FROM receipts") == 0


async def test_a_run_that_is_cut_short_ends_its_process_and_proves_nothing(
    home: Home, invoke: Invoke, project: Path
) -> None:
    await run(home, invoke, project, command=python(FOREVER), wait_s=0)

    def pids() -> list[int]:
        found = (home.path / "forks").glob("wsp_*/rcp_*/tree/pid")
        return [int(path.read_text()) for path in found if path.read_text()]

    with anyio.fail_after(30):
        while not pids():  # noqa: ASYNC110 - a child process writes it
            await anyio.sleep(0.01)
    (pid,) = pids()
    for task in list(background_of(home)._tasks):
        task.cancel()
    with anyio.fail_after(30):
        while background_of(home).running:  # noqa: ASYNC110 - a child process ends it
            await anyio.sleep(0.01)

    assert start_ticks(pid) == 0
    assert scratch(home) == []
    await start(home)
    assert await home.state.read(Reading.value, "SELECT state || status FROM receipts") == "canceled"
