"""Forks: copies that can touch nothing else, written whole or not at all, and kept until they are stored."""

import base64
from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.state import AgentsteadError, Conflict, Exhausted, Invalid, NotFound, Reading, Unavailable
from agentstead.workspace import forking, forks, keeping, service
from agentstead.workspace.starting import start
from tests.conftest import Invoke
from tests.workspace.directories import File, Folder, Link, make, seen

pytestmark = pytest.mark.anyio

IGNORED = (b".git", b".agentstead")


async def open_forks(home: Home, invoke: Invoke, project: Path, **arguments: Any) -> list[Any]:
    return list((await invoke(home, service.fork_open, cwd=project, **arguments)).forks)


async def open_fork(home: Home, invoke: Invoke, project: Path, **arguments: Any) -> tuple[str, Path]:
    (fork,) = await open_forks(home, invoke, project, **arguments)
    return fork["fork_id"], Path(fork["path"])


async def write(home: Home, invoke: Invoke, fork_id: str, *files: dict[str, Any], **arguments: Any) -> Any:
    return await invoke(home, service.fork_write, fork_id=fork_id, files=list(files), **arguments)


async def test_forks_hold_the_tree_and_share_nothing_with_it(home: Home, invoke: Invoke, project: Path) -> None:
    make(
        Folder({b"d": Folder({b"run": File(b"#!", 0o750), b"ln": Link(b"../readme.txt")}), b"e": Folder({}, 0o700)}),
        project,
    )
    (project / ".env").write_text("secret")
    before = seen(project, ignored=IGNORED)

    opened = await open_forks(home, invoke, project, count=3, labels=["one", "two"], hypotheses=["why"])

    assert [fork["label"] for fork in opened] == ["one", "two", None]
    assert opened[0]["hypothesis"] == "why"
    assert {fork["tree"] for fork in opened} == {opened[0]["tree"]}
    names = {name: node for name, node in before.names.items() if name != b".env"}
    for fork in opened:
        root = Path(fork["path"])
        assert root.is_relative_to(home.path / "forks")
        assert seen(root) == Folder(names)
        for path in root.rglob("*"):
            original = project / path.relative_to(root)
            assert path.lstat().st_ino != original.lstat().st_ino
            assert path.is_dir() or path.lstat().st_nlink == 1
    assert seen(project, ignored=IGNORED) == before


async def test_writing_in_a_fork_leaves_the_live_tree_and_its_siblings_alone(
    home: Home, invoke: Invoke, project: Path
) -> None:
    first, second = await open_forks(home, invoke, project, count=2)
    before = seen(project, ignored=IGNORED)

    await write(home, invoke, first["fork_id"], {"path": "readme.txt", "text": "changed\n"})
    (Path(first["path"]) / "by hand").write_text("x")

    assert seen(project, ignored=IGNORED) == before
    assert seen(Path(second["path"])) == before


async def test_every_kind_of_edit_is_applied_together(home: Home, invoke: Invoke, project: Path) -> None:
    (project / "script").write_text("echo\n")
    (project / "old").write_text("old\n")
    fork_id, root = await open_fork(home, invoke, project)

    written = await write(
        home,
        invoke,
        fork_id,
        {"path": "a/b/c.txt", "text": "deep\n"},
        {"path": "bytes.bin", "base64": base64.b64encode(b"\0\xff").decode(), "mode": "600"},
        {"path": "link", "link": "a/b/c.txt"},
        {"path": "old", "delete": True},
        {"path": "script", "mode": "755"},
        {"path_b64": base64.b64encode(b"odd\xffname").decode(), "text": "odd"},
        {"path": "esc\\x0aaped", "text": "newline in the name"},
    )

    assert seen(root) == Folder(
        {
            b"a": Folder({b"b": Folder({b"c.txt": File(b"deep\n")})}),
            b"bytes.bin": File(b"\0\xff", 0o600),
            b"esc\naped": File(b"newline in the name"),
            b"link": Link(b"a/b/c.txt"),
            b"odd\xffname": File(b"odd"),
            b"readme.txt": File(b"hello\n"),
            b"script": File(b"echo\n", 0o755),
        }
    )
    assert "odd\\xffname" in written.written
    assert written.state == "open"


async def test_a_patch_from_one_fork_applies_in_another(home: Home, invoke: Invoke, project: Path) -> None:
    (project / "gone.txt").write_text("1\n2\n3\n")
    one, other = await open_forks(home, invoke, project, count=2)
    files: list[dict[str, Any]] = [
        {"path": "readme.txt", "text": "hello\nagain\n"},
        {"path": "gone.txt", "delete": True},
    ]
    wanted = await write(home, invoke, one["fork_id"], *files, {"path": "new/x", "text": "no end"})
    found = await invoke(home, service.tree_diff, to=one["fork_id"], detail="patch", cwd=project)

    written = await invoke(home, service.fork_write, fork_id=other["fork_id"], patch=found.patch)

    assert seen(Path(other["path"])) == seen(Path(one["path"]))
    assert written.tree == wanted.tree
    assert sorted(written.written) == ["gone.txt", "new", "new/x", "readme.txt"]
    assert "diff --git a/new b/new\n" not in found.patch, "a directory has no patch of its own"


@pytest.mark.parametrize(
    ("files", "patch", "code"),
    [
        ([{"path": "ok", "text": "x"}, {"path": "missing", "delete": True}], None, "path.invalid"),
        ([{"path": "ok", "text": "x"}, {"path": "missing", "mode": "755"}], None, "path.invalid"),
        ([{"path": "ok", "text": "x"}, {"path": "bad", "base64": "%%%"}], None, "path.invalid"),
        (
            [{"path": "ok", "text": "x"}],
            "--- a/readme.txt\n+++ b/readme.txt\n@@ -1 +1 @@\n-no\n+yes\n",
            "patch.rejected",
        ),
        ([{"path": "ok", "text": "x"}], "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-no\n+yes\n", "patch.rejected"),
        ([{"path": "ok", "text": "x"}], "--- /dev/null\n+++ b/readme.txt\n@@ -0,0 +1 @@\n+yes\n", "patch.rejected"),
        ([{"path": "ok", "text": "x"}], "--- a/readme.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-hello\n", None),
        ([{"path": "ok", "text": "x"}], "not a patch", "patch.invalid"),
        ([{"path": "ok", "text": "x"}, {"path": ".env", "text": "TOKEN"}], None, "path.invalid"),
        ([{"path": "ok", "text": "x"}, {"path": ".git/hooks/post-commit", "text": "evil"}], None, "path.invalid"),
        ([{"path": "ok", "text": "x"}, {"path": "node_modules/x.js", "text": "x"}], None, "path.invalid"),
        ([{"path": "ok", "text": "x"}, {"path": ".agentstead/workspace.json", "text": "{}"}], None, "path.invalid"),
    ],
)
async def test_a_write_is_applied_whole_or_not_at_all(
    home: Home, invoke: Invoke, project: Path, files: list[dict[str, Any]], patch: str | None, code: str | None
) -> None:
    fork_id, root = await open_fork(home, invoke, project)
    before = seen(root)

    if code is None:
        await invoke(home, service.fork_write, fork_id=fork_id, files=files, patch=patch)
        assert seen(root) == Folder({b"ok": File(b"x")})
        return
    with pytest.raises(AgentsteadError) as caught:
        await invoke(home, service.fork_write, fork_id=fork_id, files=files, patch=patch)
    assert caught.value.code == code
    assert seen(root) == before


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../up",
        "a/../../up",
        "",
        ".",
        "a//b",
        "a/./b",
        "C:\\x",
        "nul\\x00byte",
        "x" * 300,
        "a/" * 300 + "b",
    ],
)
async def test_a_path_that_could_lead_outside_is_refused_before_anything_is_written(
    home: Home, invoke: Invoke, project: Path, path: str
) -> None:
    fork_id, root = await open_fork(home, invoke, project)
    before = seen(root)

    with pytest.raises(Invalid, match=r"path\.invalid|tool\.invalid_arguments"):
        await write(home, invoke, fork_id, {"path": "ok", "text": "x"}, {"path": path, "text": "evil"})

    assert seen(root) == before
    assert not (root.parent / "up").exists()


async def test_a_directory_that_is_a_link_is_replaced_and_never_written_through(
    home: Home, invoke: Invoke, project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    fork_id, root = await open_fork(home, invoke, project)
    (root / "out").symlink_to(outside)

    await write(home, invoke, fork_id, {"path": "out/file", "text": "inside\n"})

    assert list(outside.iterdir()) == []
    assert (root / "out" / "file").read_text() == "inside\n"
    assert not (root / "out").is_symlink()


async def test_what_other_programs_wrote_is_recorded_and_can_be_expected(
    home: Home, invoke: Invoke, project: Path
) -> None:
    fork_id, root = await open_fork(home, invoke, project)
    tree = (await write(home, invoke, fork_id, {"path": "a", "text": "1"})).tree
    (root / "by hand").write_text("edit")

    with pytest.raises(Conflict, match=r"fork\.tree_changed") as caught:
        await write(home, invoke, fork_id, {"path": "b", "text": "2"}, expected_tree=tree)
    present = caught.value.details["tree"]
    await write(home, invoke, fork_id, {"path": "b", "text": "2"}, expected_tree=present)

    assert (root / "by hand").read_text() == "edit"
    fork = await home.state.read(forks.the_fork, fork_id)
    kinds = await home.state.read(
        Reading.all,
        "SELECT edges.kind FROM edges JOIN snapshots ON child = snapshots.id WHERE place = :fork ORDER BY child",
        fork=fork.id,
    )
    assert [row["kind"] for row in kinds] == ["fork", "write", "edit", "write"]


async def test_writing_what_is_there_already_changes_nothing(home: Home, invoke: Invoke, project: Path) -> None:
    fork_id, root = await open_fork(home, invoke, project)
    inode = (root / "readme.txt").stat().st_ino

    written = await write(home, invoke, fork_id, {"path": "readme.txt", "text": "hello\n"})

    assert (list(written.written), written.operation_id) == ([], None)
    assert (root / "readme.txt").stat().st_ino == inode


async def test_the_same_key_writes_once_and_opens_once(home: Home, invoke: Invoke, project: Path) -> None:
    once = await open_forks(home, invoke, project, count=2, idempotency_key="k1")
    again = await open_forks(home, invoke, project, count=2, idempotency_key="k1")
    fork_id = once[0]["fork_id"]
    first = await write(home, invoke, fork_id, {"path": "a", "text": "1"}, idempotency_key="k2")
    (Path(once[0]["path"]) / "a").write_text("edited afterwards")
    second = await write(home, invoke, fork_id, {"path": "a", "text": "1"}, idempotency_key="k2")

    assert [fork["fork_id"] for fork in again] == [fork["fork_id"] for fork in once]
    assert (second.operation_id, second.tree) == (first.operation_id, first.tree)
    assert (Path(once[0]["path"]) / "a").read_text() == "edited afterwards"
    with pytest.raises(Conflict, match=r"key\.conflict"):
        await write(home, invoke, fork_id, {"path": "a", "text": "2"}, idempotency_key="k2")


async def test_more_living_forks_than_allowed_are_refused_and_none_is_made(
    home: Home, invoke: Invoke, project: Path
) -> None:
    await open_forks(home, invoke, project, count=forks.MOST_LIVING - 1)

    with pytest.raises(Exhausted, match=r"fork\.limit"):
        await open_forks(home, invoke, project, count=2)

    assert len(list((home.path / "forks").glob("wsp_*/*"))) == forks.MOST_LIVING - 1


@pytest.mark.parametrize("failing", [1, 2, 3])
async def test_when_one_fork_cannot_be_made_none_is(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    written = 0
    write_fork = forking._write

    def fail_at(*arguments: Any) -> None:
        nonlocal written
        written += 1
        if written == failing:
            raise OSError(28, "No space left on device")
        write_fork(*arguments)

    monkeypatch.setattr(forking, "_write", fail_at)
    with pytest.raises(Unavailable, match=rf"fork\.failed: fork {failing} of 3") as caught:
        await open_forks(home, invoke, project, count=3)

    assert "No space" in caught.value.message
    assert list((home.path / "forks").glob("wsp_*/*")) == []
    states = await home.state.read(Reading.all, "SELECT DISTINCT state FROM forks")
    assert {row["state"] for row in states} <= {"failed", "closed"}


async def test_a_copy_that_reads_back_differently_is_no_fork(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fork = forking._write

    def damaged(store: Any, fork: Any, tree: str) -> None:
        write_fork(store, fork, tree)
        (fork.place.root / "readme.txt").write_text("damaged")

    monkeypatch.setattr(forking, "_write", damaged)
    with pytest.raises(Unavailable, match="reads back as another tree"):
        await open_forks(home, invoke, project)

    assert list((home.path / "forks").glob("wsp_*/*")) == []


async def test_a_fork_can_be_made_of_any_recorded_version(home: Home, invoke: Invoke, project: Path) -> None:
    first = await invoke(home, service.snapshot_take, cwd=project, label="first")
    (project / "readme.txt").write_text("second\n")
    one, one_root = await open_fork(home, invoke, project, **{"from": "@first"})
    (one_root / "more").write_text("x")
    _, two_root = await open_fork(home, invoke, project, **{"from": one})
    _, three_root = await open_fork(home, invoke, project, **{"from": f"tree:{first.tree}"})

    assert (one_root / "readme.txt").read_text() == "hello\n"
    assert (two_root / "more").read_text() == "x"
    assert seen(three_root) == Folder({b"readme.txt": File(b"hello\n")})
    with pytest.raises(NotFound, match=r"ref\.not_found"):
        await open_fork(home, invoke, project, **{"from": "tree:" + "0" * 64})


async def test_closing_stores_the_last_state_and_removes_the_directory(
    home: Home, invoke: Invoke, project: Path
) -> None:
    fork_id, root = await open_fork(home, invoke, project)
    (root / "last words").write_text("kept")

    closed = await invoke(home, keeping.fork_close, fork_id=fork_id)
    again = await invoke(home, keeping.fork_close, fork_id=fork_id)

    assert (closed.item["state"], again.item["state"]) == ("gone", "gone")
    assert not root.exists()
    kept = await invoke(home, service.workspace_view, view="file", ref=fork_id, path="last words", cwd=project)
    assert kept.text == "kept"
    with pytest.raises(Conflict, match=r"fork\.expired") as caught:
        await write(home, invoke, fork_id, {"path": "x", "text": "y"})
    assert closed.item["head_snapshot"] in caught.value.remedy


async def test_an_expired_fork_is_stored_and_swept_at_the_next_start_and_a_renewed_one_stays(
    home: Home, invoke: Invoke, project: Path, clock: Any
) -> None:
    expired, root = await open_fork(home, invoke, project)
    renewed, other = await open_fork(home, invoke, project)
    (root / "unsaved").write_text("kept")
    await invoke(home, keeping.fork_renew, fork_id=renewed, ttl_s=10 * forks.DEFAULT_TTL_S)
    clock.advance(seconds=forks.DEFAULT_TTL_S + 1)
    with pytest.raises(Conflict, match=r"fork\.expired"):
        await write(home, invoke, expired, {"path": "x", "text": "y"})

    await start(home)

    assert (root.exists(), other.exists()) == (False, True)
    view = await invoke(home, service.workspace_view, view="file", ref=expired, path="unsaved", cwd=project)
    assert view.text == "kept"
    listed = await invoke(home, keeping.fork_list, cwd=project)
    assert [each["fork_id"] for each in listed.items] == [renewed]
    assert len((await invoke(home, keeping.fork_list, ended=True, cwd=project)).items) == 2


async def test_a_write_can_close_the_fork_afterwards(home: Home, invoke: Invoke, project: Path) -> None:
    fork_id, root = await open_fork(home, invoke, project)

    written = await write(home, invoke, fork_id, {"path": "a", "text": "1"}, close=True)

    assert written.state == "gone"
    assert not root.exists()


async def test_an_unknown_fork_is_told_apart_from_one_of_another_workspace(
    home: Home, invoke: Invoke, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    fork_id, _ = await open_fork(home, invoke, other)

    with pytest.raises(NotFound, match=r"fork\.not_found"):
        await write(home, invoke, "frk_01ARZ3NDEKTSV4RRFFQ69G5FAV", {"path": "a", "text": "1"})
    with pytest.raises(Invalid, match=r"ref\.foreign"):
        await invoke(home, service.tree_diff, to=fork_id, cwd=project)
    with pytest.raises(AgentsteadError):
        await invoke(home, service.snapshot_take, place=fork_id, cwd=project)


async def test_more_than_sixteen_mebibytes_in_one_write_are_refused(home: Home, invoke: Invoke, project: Path) -> None:
    fork_id, root = await open_fork(home, invoke, project)
    before = seen(root)
    big = "x" * (9 * 2**20)

    with pytest.raises(Invalid, match="16 MiB"):
        await write(home, invoke, fork_id, {"path": "a", "text": big}, {"path": "b", "text": big + "y"})

    assert seen(root) == before


@pytest.mark.parametrize(
    "edit",
    [
        {"path": "a"},
        {"text": "x"},
        {"path": "a", "path_b64": "YQ==", "text": "x"},
        {"path": "a", "text": "x", "delete": True},
        {"path": "a", "text": "x", "mode": "4755"},
        {"path": "a", "text": "x", "owner": "root"},
    ],
)
async def test_an_edit_that_says_two_things_or_nothing_is_refused(
    home: Home, invoke: Invoke, project: Path, edit: dict[str, Any]
) -> None:
    fork_id, _ = await open_fork(home, invoke, project)

    with pytest.raises(Invalid, match=r"tool\.invalid_arguments"):
        await write(home, invoke, fork_id, edit)
