"""Snapshots and references: what is stored, what is said of the rest, and how any version is named."""

import os
from pathlib import Path
from typing import Any

import pytest

from agentstead.identity import registry
from agentstead.kit import Home
from agentstead.state import AgentsteadError, Conflict, Invalid, NotFound, Reading
from agentstead.workspace import keeping, service, snapshots
from agentstead.workspace.places import stat_caches
from tests.conftest import Invoke

pytestmark = pytest.mark.anyio

DAY_S = 86_400


async def take(home: Home, invoke: Invoke, project: Path, **arguments: Any) -> Any:
    return await invoke(home, service.snapshot_take, cwd=project, **arguments)


async def diff(home: Home, invoke: Invoke, project: Path, old: str, new: str) -> dict[str, str]:
    found = await invoke(home, service.tree_diff, cwd=project, **{"from": old}, to=new)
    return {each["path"]: each["status"] for each in found.files}


async def test_a_snapshot_stores_what_is_there_and_names_what_it_left_out(
    home: Home, invoke: Invoke, project: Path
) -> None:
    (project / ".env").write_text("TOKEN=planted-secret")
    (project / "node_modules").mkdir()
    (project / "ignored.log").write_text("kept although git ignores it")
    (project / ".gitignore").write_text("*.log\n")

    taken = await take(home, invoke, project)

    assert taken.created
    assert taken.parent is None
    assert taken.completeness == "complete"
    assert taken.omissions["counts"] == {"derived": 1, "secret": 1, "vcs": 1}
    assert {each["path"]: each["class"] for each in taken.omissions["first"]} == {
        ".env": "secret",
        ".git": "vcs",
        "node_modules": "derived",
    }
    listed = await invoke(home, service.workspace_view, view="tree", ref=taken.snapshot_id, cwd=project)
    assert [each["path"] for each in listed.items] == [".gitignore", "ignored.log", "readme.txt"]
    assert "planted-secret" not in taken.summary()
    assert "Not stored: 1 derived, 1 secret, 1 vcs." in taken.summary()


async def test_the_first_answer_says_that_the_folder_was_registered_and_the_next_does_not(
    home: Home, invoke: Invoke, project: Path
) -> None:
    first, second = await take(home, invoke, project), await take(home, invoke, project)

    assert "Registered" in first.notes[0]
    assert list(second.notes) == []


async def test_nothing_changed_means_the_same_snapshot_no_row_and_no_byte(
    home: Home, invoke: Invoke, project: Path
) -> None:
    first = await take(home, invoke, project)
    before = await home.blobs.stats()

    second = await take(home, invoke, project)

    assert (second.created, second.snapshot_id, second.changed) == (
        False,
        first.snapshot_id,
        {"added": 0, "modified": 0, "deleted": 0},
    )
    assert await home.blobs.stats() == before
    assert await home.state.read(Reading.value, "SELECT count(*) FROM snapshots") == 1


async def test_a_change_makes_a_child_and_counts_what_changed(home: Home, invoke: Invoke, project: Path) -> None:
    (project / "gone").write_text("x")
    first = await take(home, invoke, project)
    (project / "readme.txt").write_text("changed\n")
    (project / "new").write_text("y")
    (project / "gone").unlink()

    second = await take(home, invoke, project)

    assert second.parent == first.snapshot_id
    assert second.changed == {"added": 1, "modified": 1, "deleted": 1}
    shown = await invoke(home, service.workspace_view, view="snapshot", ref=second.snapshot_id, cwd=project)
    assert shown.item["parents"] == [{"snapshot_id": first.snapshot_id, "edge": "edit"}]


async def test_the_same_key_answers_with_the_same_snapshot(home: Home, invoke: Invoke, project: Path) -> None:
    first = await take(home, invoke, project, label="kept", idempotency_key="k")
    (project / "readme.txt").write_text("second\n")

    again = await take(home, invoke, project, label="kept", idempotency_key="k")

    assert again.model_copy(update={"notes": ()}) == first.model_copy(update={"notes": ()})
    with pytest.raises(Conflict, match=r"key\.conflict"):
        await take(home, invoke, project, label="other", idempotency_key="k")


async def test_a_full_verification_reads_what_a_trusted_time_would_hide(
    home: Home, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await take(home, invoke, project)
    workspace = (await home.state.read(registry.listed))[0]
    caches = stat_caches(home)
    place = next(iter(caches._kept.values()))
    entry = place.directories[b""].entries[b"readme.txt"]
    facts = (project / "readme.txt").stat()
    key = (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino, facts.st_mode)
    place.directories[b""].entries[b"readme.txt"] = entry._replace(key=key, id="0" * 63 + "1")

    assert (await take(home, invoke, project, verify="full")).tree == first.tree
    assert workspace.root == project


async def test_every_way_to_name_a_version_finds_it(home: Home, invoke: Invoke, project: Path) -> None:
    first = await take(home, invoke, project, label="first")
    (project / "readme.txt").write_text("second\n")
    second = await take(home, invoke, project)
    (project / "readme.txt").write_text("unrecorded\n")

    same = {"@first", first.snapshot_id, f"tree:{first.tree}", f"{second.snapshot_id}~1", "live~2", "@first~0"}
    for ref in same:
        assert await diff(home, invoke, project, ref, first.snapshot_id) == {}, ref
    for ref in (second.snapshot_id, "live~1"):
        assert await diff(home, invoke, project, ref, second.snapshot_id) == {}, ref
    assert await diff(home, invoke, project, second.snapshot_id, "live") == {"readme.txt": "modified"}
    assert await home.state.read(Reading.value, "SELECT count(*) FROM snapshots") == 2, "looking records nothing"


@pytest.mark.parametrize(
    "ref",
    ["", "nothing", "@none", "snp_01ARZ3NDEKTSV4RRFFQ69G5FAV", "tree:abc", "live~99", "rcp_x:in", "live~1001", "~1"],
)
async def test_a_reference_to_nothing_says_what_there_is(home: Home, invoke: Invoke, project: Path, ref: str) -> None:
    await take(home, invoke, project)

    with pytest.raises(NotFound, match=r"ref\.not_found") as caught:
        await diff(home, invoke, project, ref, "live")
    assert "workspace_view" in caught.value.remedy


async def test_a_snapshot_of_another_workspace_is_foreign(
    home: Home, invoke: Invoke, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    foreign = await take(home, invoke, other)
    await take(home, invoke, project)

    with pytest.raises(Invalid, match=r"ref\.foreign"):
        await diff(home, invoke, project, foreign.snapshot_id, "live")


async def test_a_label_moves_by_compare_and_swap_and_keeps_what_it_names(
    home: Home, invoke: Invoke, project: Path
) -> None:
    first = await take(home, invoke, project, label="good", pin=True)
    (project / "readme.txt").write_text("second\n")
    second = await take(home, invoke, project)

    with pytest.raises(Conflict, match=r"version\.conflict"):
        await invoke(home, keeping.snapshot_label, ref=second.snapshot_id, name="good", expected_version=7, cwd=project)
    moved = await invoke(
        home, keeping.snapshot_label, ref=second.snapshot_id, name="good", expected_version=1, cwd=project
    )

    assert moved.item == {"name": "good", "snapshot_id": second.snapshot_id, "pinned": False, "version": 2}
    assert first.snapshot_id != second.snapshot_id
    with pytest.raises(AgentsteadError, match="cannot be a label"):
        await invoke(home, keeping.snapshot_label, ref="live", name="No Good", cwd=project)


async def test_a_root_that_became_another_directory_is_refused_until_it_is_bound(
    home: Home, invoke: Invoke, project: Path
) -> None:
    await take(home, invoke, project)
    project.rename(project.with_name("kept"))
    project.mkdir()
    for path in project.with_name("kept").iterdir():
        path.rename(project / path.name)

    with pytest.raises(Conflict, match=r"workspace\.rebound") as caught:
        await take(home, invoke, project)
    assert "workspace bind" in caught.value.remedy

    await invoke(home, keeping.workspace_bind, cwd=project)
    assert not (await take(home, invoke, project)).created


async def test_roots_that_are_no_project_are_refused(home: Home, invoke: Invoke) -> None:
    for root in (home.path, Path.home(), Path("/"), Path("/usr/lib"), Path("/tmp")):
        with pytest.raises(AgentsteadError) as caught:
            await take(home, invoke, root, workspace=os.fspath(root))
        assert caught.value.code in {"workspace.refused", "workspace.unknown"}


async def test_a_host_without_a_directory_is_told_how_to_name_a_workspace(home: Home, invoke: Invoke) -> None:
    with pytest.raises(NotFound, match=r"workspace\.unknown") as caught:
        await invoke(home, service.snapshot_take)
    assert "workspace=" in caught.value.remedy


async def test_what_a_snapshot_holds_is_never_collected(home: Home, invoke: Invoke, project: Path, clock: Any) -> None:
    taken = await take(home, invoke, project)
    await home.blobs.put(b"held by nothing")
    for _ in range(2):
        await invoke(home, keeping.store_collect, dry_run=False)
        clock.advance(seconds=2 * DAY_S)

    report = await invoke(home, keeping.store_verify, level="bytes")

    assert report.ok
    assert (await home.blobs.stats()).blobs == 2, "the file and the list of omissions"
    assert (
        await invoke(home, service.workspace_view, view="file", ref=taken.snapshot_id, path="readme.txt", cwd=project)
    ).text == "hello\n"


async def test_a_store_that_lost_a_file_says_which_and_the_rest_stays_readable(
    home: Home, invoke: Invoke, project: Path
) -> None:
    (project / "other.txt").write_text("other\n")
    taken = await take(home, invoke, project)
    entry = await invoke(home, service.workspace_view, view="file", path="readme.txt", cwd=project)
    key = next(key for key, _ in home.blobs.store.layout.stored() if key.id == entry.item["id"])
    home.blobs.store.layout.path(key).unlink()

    report = await invoke(home, keeping.store_verify)

    assert not report.ok
    assert report.facts["missing"] == [f"blob:{key.id}"]
    with pytest.raises(AgentsteadError, match=r"store\.corrupt"):
        await invoke(home, service.workspace_view, view="file", ref=taken.snapshot_id, path="readme.txt", cwd=project)
    other = await invoke(
        home, service.workspace_view, view="file", ref=taken.snapshot_id, path="other.txt", cwd=project
    )
    assert other.text == "other\n"


async def test_snapshots_are_listed_page_by_page(home: Home, invoke: Invoke, project: Path) -> None:
    ids = []
    for number in range(5):
        (project / "readme.txt").write_text(f"{number}\n")
        ids.append((await take(home, invoke, project)).snapshot_id)

    seen: list[str] = []
    cursor = None
    while True:
        page = await invoke(home, keeping.snapshot_list, limit=2, cursor=cursor, cwd=project)
        seen += [each["snapshot_id"] for each in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert seen == ids[::-1]
    with pytest.raises(Invalid, match=r"cursor\."):
        await invoke(home, keeping.snapshot_list, limit=2, cursor="forged", cwd=project)


async def test_the_rows_of_snapshots_answer_for_other_servers(home: Home, invoke: Invoke, project: Path) -> None:
    taken = await take(home, invoke, project)
    workspace = (await home.state.read(registry.listed))[0]

    found = await home.state.read(lambda reading: home.state.refs.look(reading, taken.snapshot_id))

    assert (found.workspace, found.facts["tree"]) == (workspace.id, taken.tree)
    assert await home.state.read(snapshots.look_snapshot, "snp_none") is None
