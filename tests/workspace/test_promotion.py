"""Promotion: only what was proved or approved, only onto the tree that was planned for, and whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentstead.identity import Principal
from agentstead.kit import Home
from agentstead.policy import find_approval
from agentstead.state import AgentsteadError, Conflict, Denied, Invalid, PendingAnswer, Reading
from agentstead.workspace import apply, exchange, keeping, service
from agentstead.workspace.starting import start
from tests.conftest import Invoke
from tests.workspace.directories import File, Folder, make, seen

pytestmark = pytest.mark.anyio

IGNORED = (b".git", b".agentstead")
PERSON = Principal.user(at_terminal=True)
Edit = Callable[[Path], None]


class Desk:
    """A project with one fork, and short ways to plan and to promote."""

    def __init__(self, home: Home, invoke: Invoke, project: Path) -> None:
        self.home, self.invoke, self.project = home, invoke, project
        self.fork_id = ""
        self.fork_root = Path()

    async def fork(self, **names: Any) -> None:
        fork = (await self.invoke(self.home, service.fork_open, cwd=self.project)).forks[0]
        self.fork_id, self.fork_root = fork["fork_id"], Path(fork["path"])
        files = [{"path": name, "text": text} for name, text in names.items()]
        if files:
            await self.invoke(self.home, service.fork_write, fork_id=self.fork_id, files=files)

    async def plan(self, **arguments: Any) -> Any:
        given = {"from": self.fork_id, "cwd": self.project, **arguments}
        return await self.invoke(self.home, service.tree_promote, **given)

    async def promote(self, digest: str | None = None, **arguments: Any) -> Any:
        given = {"principal": PERSON, "dry_run": False, **arguments}
        return await self.plan(plan_digest=digest or (await self.plan()).plan_digest, **given)

    def live(self) -> Folder:
        return seen(self.project, ignored=IGNORED)


@pytest.fixture
async def desk(home: Home, invoke: Invoke, project: Path) -> Desk:
    return Desk(home, invoke, project)


async def test_a_promotion_makes_exactly_the_forks_tree_the_live_one(desk: Desk) -> None:
    make(Folder({b"old": Folder({b"x": File(b"1"), b"y": File(b"2", 0o755)}), b"kind": File(b"file")}), desk.project)
    await desk.fork()
    (desk.fork_root / "readme.txt").write_text("new\n")
    (desk.fork_root / "old" / "x").unlink()
    (desk.fork_root / "kind").unlink()
    (desk.fork_root / "kind").mkdir()
    (desk.fork_root / "kind" / "below").write_text("b")
    (desk.fork_root / "old" / "y").chmod(0o600)
    (desk.fork_root / "ln").symlink_to("readme.txt")
    wanted = seen(desk.fork_root)
    untouched = (desk.project / ".git").stat().st_mtime_ns

    done = await desk.promote()

    assert done.state == "committed"
    assert desk.live() == wanted
    assert (desk.project / ".git").stat().st_mtime_ns == untouched
    assert not desk.fork_root.exists(), "the fork is closed and swept"
    shown = await desk.invoke(desk.home, service.workspace_view, view="snapshot", cwd=desk.project)
    detail = await desk.invoke(
        desk.home, service.workspace_view, view="snapshot", ref=shown.items[0]["snapshot_id"], cwd=desk.project
    )
    assert [each["edge"] for each in detail.item["parents"]] == ["promote", "promote"], "live and the fork"


async def test_the_plan_alone_changes_nothing_and_asks_nobody(desk: Desk) -> None:
    await desk.fork(new="x")
    before = desk.live()

    planned = await desk.plan()
    again = await desk.plan()

    assert (planned.state, planned.plan_digest) == ("planned", again.plan_digest)
    assert planned.plan["write"] == [{"path": "new", "status": "added"}]
    assert planned.verdict["why"] == "no_checks"
    assert desk.live() == before
    for table in ("approvals", "promotions"):
        assert await desk.home.state.read(Reading.value, f"SELECT count(*) FROM {table}") == 0
    assert await desk.home.state.read(Reading.value, "SELECT count(*) FROM operations WHERE kind = 'promote'") == 0


async def test_a_hosts_promotion_waits_for_a_person_and_goes_through_once(desk: Desk) -> None:
    await desk.fork(new="x")
    planned = await desk.plan()
    before = desk.live()

    with pytest.raises(PendingAnswer, match=r"permission\.pending") as caught:
        await desk.promote(planned.plan_digest, principal="host:claude")
    approval_id = caught.value.details["approval_id"]
    assert desk.live() == before
    question = await desk.home.state.read(find_approval, approval_id)
    assert question is not None
    assert "UNPROVEN" in question.summary
    assert "added new" in question.summary
    waiting = await desk.invoke(desk.home, keeping.promotion_list, cwd=desk.project)
    assert [each["state"] for each in waiting.items] == ["waiting"]

    await allow(desk, approval_id)
    done = await desk.promote(planned.plan_digest, principal="host:claude")

    assert done.state == "committed"
    assert (desk.project / "new").read_text() == "x"
    rows = (await desk.invoke(desk.home, keeping.promotion_list, cwd=desk.project)).items
    assert [(each["state"], each["approval_id"]) for each in rows] == [("committed", approval_id)]


async def allow(desk: Desk, approval_id: str) -> None:
    await desk.home.enforcement.answer(approval_id, "allow_once", by=PERSON, proof="terminal")


async def test_an_approval_holds_for_one_plan_only(desk: Desk) -> None:
    await desk.fork(new="x")
    with pytest.raises(PendingAnswer) as caught:
        await desk.promote(principal="host:claude")
    await allow(desk, caught.value.details["approval_id"])
    (desk.fork_root / "more").write_text("slipped in")

    with pytest.raises(PendingAnswer) as other:
        await desk.promote(principal="host:claude")

    assert other.value.details["approval_id"] != caught.value.details["approval_id"]
    assert not (desk.project / "more").exists()


async def test_a_plan_that_is_not_the_confirmed_one_is_shown_again(desk: Desk) -> None:
    await desk.fork(new="x")
    planned = await desk.plan()
    (desk.fork_root / "more").write_text("slipped in")

    for digest in (planned.plan_digest, "0" * 64):
        with pytest.raises(Conflict, match=r"workspace\.plan_changed") as caught:
            await desk.promote(digest)
        assert caught.value.details["plan_digest"] == (await desk.plan()).plan_digest
    with pytest.raises(Conflict, match=r"workspace\.plan_changed"):
        await desk.plan(dry_run=False, principal=PERSON)


@pytest.mark.parametrize("edit", ["changed", "added", "deleted", "mode"])
async def test_a_live_tree_that_moved_is_stale(desk: Desk, edit: str) -> None:
    await desk.fork(new="x")
    planned = await desk.plan()
    readme = desk.project / "readme.txt"
    edits: dict[str, Callable[[], object]] = {
        "changed": lambda: readme.write_text("saved by the person\n"),
        "added": lambda: (desk.project / "theirs").write_text("y"),
        "deleted": readme.unlink,
        "mode": lambda: readme.chmod(0o600),
    }
    edits[edit]()
    before = desk.live()

    for attempt in (desk.plan(), desk.promote(planned.plan_digest)):
        with pytest.raises(Conflict, match=r"promotion\.stale") as caught:
            await attempt
        assert caught.value.details["paths"] in (["readme.txt"], ["theirs"])
        assert "fork_write" in caught.value.remedy

    assert desk.live() == before


async def test_a_live_tree_that_changes_while_it_is_read_is_moving(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.fork(new="x")
    fstat = os.fstat
    readme = desk.project / "readme.txt"
    inode = readme.stat().st_ino
    (desk.project / "readme.txt").touch()

    def writing_meanwhile(descriptor: int) -> os.stat_result:
        facts = fstat(descriptor)
        if facts.st_ino == inode:
            with readme.open("ab") as file:
                file.write(b"more")
        return facts

    monkeypatch.setattr(os, "fstat", writing_meanwhile)
    with pytest.raises(Conflict, match=r"promotion\.live_moving"):
        await desk.plan()


async def test_a_check_must_pass_on_exactly_the_promoted_tree(desk: Desk) -> None:
    command = {"argv": ["test", "-f", "new"]}
    await desk.invoke(desk.home, keeping.check_save, name="unit", command=command, cwd=desk.project)
    await desk.fork(new="x")
    run: dict[str, Any] = {"checks": ["unit"], "cwd": desk.project}

    with pytest.raises(Denied, match="not run on this tree: unit") as caught:
        await desk.promote()
    tree = caught.value.details["result_tree"]
    await desk.invoke(desk.home, service.check_run, ref="live", **run)
    with pytest.raises(Denied, match="not run on this tree: unit"):
        await desk.promote()
    await desk.invoke(desk.home, service.check_run, ref=f"tree:{tree}", **run)

    assert (await desk.plan()).verdict["outcome"] == "pass"
    (desk.fork_root / "after the proof").write_text("x")
    assert (await desk.plan()).verdict["outcome"] == "pending"
    (desk.fork_root / "after the proof").unlink()
    assert (await desk.promote()).verdict["leaves"][0]["truth"] == "true"


async def test_a_failing_check_cannot_be_approved_away(desk: Desk) -> None:
    await desk.invoke(desk.home, keeping.check_save, name="unit", command={"argv": ["false"]}, cwd=desk.project)
    await desk.fork(new="x")
    await desk.invoke(desk.home, service.check_run, ref=desk.fork_id, checks=["unit"], cwd=desk.project)

    with pytest.raises(Denied, match=r"promotion\.refused: the gate does not pass: not passed: unit"):
        await desk.promote()
    assert not (desk.project / "new").exists()


async def test_an_ad_hoc_command_proves_nothing_to_the_gate(desk: Desk) -> None:
    await desk.invoke(desk.home, keeping.check_save, name="unit", command={"argv": ["true"]}, cwd=desk.project)
    await desk.fork(new="x")
    await desk.invoke(desk.home, service.check_run, ref=desk.fork_id, command={"argv": ["echo"]}, cwd=desk.project)

    assert (await desk.plan()).verdict["outcome"] == "pending"


async def test_what_is_not_stored_in_the_live_tree_is_in_nobodys_way_and_stays(desk: Desk) -> None:
    make(Folder({b"pkg": Folder({b"a.py": File(b"1"), b"__pycache__": Folder({b"a.pyc": File(b"c")})})}), desk.project)
    (desk.project / ".env").write_text("TOKEN")
    await desk.fork()
    (desk.fork_root / "pkg" / "a.py").unlink()
    (desk.fork_root / "pkg").rmdir()

    planned = await desk.plan()
    await desk.promote(planned.plan_digest)

    assert [each["path"] for each in planned.plan["keep"]] == ["pkg"]
    assert not (desk.project / "pkg" / "a.py").exists()
    assert (desk.project / "pkg" / "__pycache__" / "a.pyc").read_bytes() == b"c"
    assert (desk.project / ".env").read_text() == "TOKEN"


async def test_a_pipe_in_the_live_tree_where_the_fork_has_a_file_is_protected(desk: Desk) -> None:
    os.mkfifo(desk.project / "pipe")
    await desk.fork(pipe="a file")

    with pytest.raises(Conflict, match=r"promotion\.protected"):
        await desk.plan()


async def test_protected_paths_are_named_in_the_question(desk: Desk) -> None:
    await desk.fork(**{".envrc": "use flake", ".github/workflows/ci.yml": "on: push"})

    with pytest.raises(PendingAnswer) as caught:
        await desk.promote(principal="host:claude")

    question = await desk.home.state.read(find_approval, caught.value.details["approval_id"])
    assert question is not None
    assert "PROTECTED PATH: .envrc" in question.summary
    assert "PROTECTED PATH: .github/workflows/ci.yml" in question.summary


@pytest.mark.parametrize("where", ["first", "last"])
async def test_an_edit_met_while_applying_takes_every_step_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    for name in ("a", "b", "c"):
        (desk.project / name).write_text(f"{name} before\n")
    await desk.fork(a="a after\n", b="b after\n", c="c after\n", d="new\n")
    planned = await desk.plan()
    victim = desk.project / ("a" if where == "first" else "c")
    place = exchange.place
    calls = 0

    def saved_meanwhile(source: Any, target: Any, aside: Any, **given: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == (1 if where == "first" else 3):
            draft = victim.with_name("draft~")
            draft.write_text("saved by the person\n")
            draft.replace(victim)
        place(source, target, aside, **given)

    monkeypatch.setattr(apply, "place", saved_meanwhile)
    with pytest.raises(Conflict, match=r"workspace\.conflict") as caught:
        await desk.promote(planned.plan_digest)

    expected = {name: File(f"{name} before\n".encode()) for name in ("a", "b", "c")}
    expected[victim.name] = File(b"saved by the person\n")
    live = desk.live().names
    assert {name: live[name.encode()] for name in expected} == expected
    assert b"d" not in live
    (path,) = caught.value.details["paths"]
    assert path["path"] == victim.name
    assert path["found"] != path["expected"]
    rows = (await desk.invoke(desk.home, keeping.promotion_list, cwd=desk.project)).items
    assert rows[0]["state"] == "rolled_back"
    fork = (await desk.invoke(desk.home, keeping.fork_list, cwd=desk.project)).items[0]
    assert fork["state"] == "open"


async def test_without_an_exchange_of_names_it_works_too_and_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_CALL", (None, "linux"))
    await desk.fork(**{"readme.txt": "new\n", "added": "x"})

    with pytest.raises(PendingAnswer) as caught:
        await desk.promote(principal="host:claude")
    question = await desk.home.state.read(find_approval, caught.value.details["approval_id"])
    assert question is not None
    assert "cannot be exchanged" in question.summary
    await desk.promote()

    assert (desk.project / "readme.txt").read_text() == "new\n"
    assert await desk.home.state.read(Reading.value, "SELECT cas FROM promotions WHERE state = 'committed'") == "weak"


async def test_the_fork_can_be_kept_and_promoted_again(desk: Desk) -> None:
    await desk.fork(new="1")
    first = await desk.promote(then="keep")
    assert desk.fork_root.exists()

    await desk.invoke(desk.home, service.fork_write, fork_id=desk.fork_id, files=[{"path": "new", "text": "2"}])
    with pytest.raises(Conflict, match=r"promotion\.stale"):
        await desk.plan()

    assert first.state == "committed"


async def test_the_same_key_promotes_once(desk: Desk) -> None:
    await desk.fork(new="1")
    planned = await desk.plan()

    first = await desk.promote(planned.plan_digest, idempotency_key="k")
    (desk.project / "new").write_text("edited afterwards")
    second = await desk.promote(planned.plan_digest, idempotency_key="k")

    assert second.promotion_id == first.promotion_id
    assert second.operation_id == first.operation_id
    assert (desk.project / "new").read_text() == "edited afterwards"


async def test_displaced_files_are_kept_a_week_and_late_writes_to_them_are_stored(desk: Desk, clock: Any) -> None:
    await desk.fork(**{"readme.txt": "new\n"})
    with (desk.project / "readme.txt").open("r+b") as held_open:
        await desk.promote()
        held_open.write(b"LATE ")
    (kept,) = [path for path in (desk.project / ".agentstead" / "trash").rglob("*") if path.is_file()]
    assert kept.read_bytes() == b"LATE \n"

    await start(desk.home)
    assert kept.exists(), "its week is not over"
    clock.advance(seconds=8 * 86_400)
    await start(desk.home)

    assert not kept.exists()
    late = await desk.home.state.read(Reading.value, "SELECT late_id FROM displaced")
    assert await desk.home.blobs.get("blob", late) == b"LATE \n"
    assert await desk.home.state.read(
        Reading.value, "SELECT count(*) FROM journal WHERE kind = 'workspace.displaced.changed'"
    )


async def test_only_a_fork_can_be_promoted(desk: Desk) -> None:
    taken = await desk.invoke(desk.home, service.snapshot_take, cwd=desk.project)
    for ref in ("live", taken.snapshot_id, "snp_none", f"tree:{taken.tree}"):
        with pytest.raises(Invalid, match=r"ref\.not_found"):
            await desk.plan(**{"from": ref})


async def test_a_snapshot_of_a_fork_can_be_promoted(desk: Desk) -> None:
    await desk.fork(new="proved")
    taken = await desk.invoke(desk.home, service.snapshot_take, place=desk.fork_id, cwd=desk.project)
    (desk.fork_root / "new").write_text("moved on")

    planned = await desk.plan(**{"from": taken.snapshot_id})
    done = await desk.plan(
        **{"from": taken.snapshot_id}, dry_run=False, plan_digest=planned.plan_digest, principal=PERSON
    )

    assert done.state == "committed"
    assert (desk.project / "new").read_text() == "proved"


async def test_two_promotions_at_once_wait_for_each_other(desk: Desk) -> None:
    await desk.fork(new="1")
    one = desk.fork_id
    first = await desk.plan()
    await desk.fork(other="2")
    second = await desk.plan()
    ends: list[str] = []

    async def promote(ref: str, digest: str) -> None:
        try:
            done = await desk.plan(**{"from": ref}, dry_run=False, plan_digest=digest, principal=PERSON)
            ends.append(done.state)
        except AgentsteadError as error:
            ends.append(error.code)

    async with anyio.create_task_group() as group:
        group.start_soon(promote, one, first.plan_digest)
        group.start_soon(promote, desk.fork_id, second.plan_digest)

    assert sorted(ends) == ["committed", "promotion.stale"]
