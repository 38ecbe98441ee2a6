"""Looking: every view of a workspace, page by page, of any version, and never a change."""

import base64
from pathlib import Path
from typing import Any, get_args

import pytest

from agentstead.identity import Principal
from agentstead.kit import Home
from agentstead.state import Invalid, NotFound, Reading
from agentstead.workspace import keeping, service
from agentstead.workspace.views import MAX_LENGTH, ViewName
from tests.conftest import Invoke
from tests.workspace.directories import File, Folder, Link, make

pytestmark = pytest.mark.anyio

PERSON = Principal.user(at_terminal=True)


class Looker:
    """A project and the view of it."""

    def __init__(self, home: Home, invoke: Invoke, project: Path) -> None:
        self.home, self.invoke, self.project = home, invoke, project

    async def __call__(self, view: str, **arguments: Any) -> Any:
        return await self.invoke(self.home, service.workspace_view, view=view, cwd=self.project, **arguments)

    async def run(self, fn: Any, **arguments: Any) -> Any:
        return await self.invoke(self.home, fn, cwd=self.project, **arguments)


@pytest.fixture
def look(home: Home, invoke: Invoke, project: Path) -> Looker:
    return Looker(home, invoke, project)


async def history(look: Looker) -> dict[str, str]:
    """Make one of everything that can be looked at."""
    first = await look.run(service.snapshot_take, label="first")
    fork_id = (await look.run(service.fork_open)).forks[0]["fork_id"]
    await look.run(service.fork_write, fork_id=fork_id, files=[{"path": "new.txt", "text": "new\n"}])
    await look.run(keeping.check_save, name="unit", command={"argv": ["test", "-f", "new.txt"]})
    ran = await look.run(service.check_run, ref=fork_id, checks=["unit"])
    plan: dict[str, Any] = {"from": fork_id}
    digest = (await look.run(service.tree_promote, **plan)).plan_digest
    promoted = await look.run(service.tree_promote, **plan, dry_run=False, plan_digest=digest, principal=PERSON)
    return {
        "snapshot": first.snapshot_id,
        "fork": fork_id,
        "receipt": ran.receipts[0]["receipt_id"],
        "promotion": promoted.promotion_id,
        "operation": promoted.operation_id,
        "check": "unit",
    }


async def test_every_view_of_an_empty_workspace_answers_and_records_nothing(look: Looker) -> None:
    for view in get_args(ViewName):
        if view != "file":
            await look(view)

    for table in ("snapshots", "operations", "forks", "receipts"):
        assert await look.home.state.read(Reading.value, f"SELECT count(*) FROM {table}") == 0
    assert (await look("status")).item["hint"] == "Nothing is stored yet: call snapshot_take."


@pytest.mark.parametrize("view", ["snapshot", "fork", "receipt", "promotion", "operation", "check"])
async def test_a_view_lists_without_a_reference_and_shows_one_with_it(look: Looker, view: str) -> None:
    refs = await history(look)
    listed = await look(view)
    one = await look(view, ref=refs[view])

    key = "name" if view == "check" else f"{view}_id"
    assert refs[view] in [each[key] for each in listed.items]
    assert one.item[key] == refs[view]


@pytest.mark.parametrize(
    ("view", "code"),
    [
        ("snapshot", r"ref\.not_found"),
        ("fork", r"fork\.not_found|ref\.not_found"),
        ("receipt", r"receipt\.not_found"),
        ("promotion", r"ref\.not_found"),
        ("operation", r"operation\.not_found"),
        ("check", r"check\.not_found"),
    ],
)
async def test_a_reference_to_nothing_is_an_error_that_says_where_to_look(look: Looker, view: str, code: str) -> None:
    await look.run(service.snapshot_take)
    prefix = {"snapshot": "snp_", "fork": "frk_", "receipt": "rcp_", "promotion": "prm_", "operation": "opr_"}

    with pytest.raises(NotFound, match=code) as caught:
        await look(view, ref=prefix.get(view, "") + "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert caught.value.remedy


async def test_the_status_says_what_is_there(look: Looker) -> None:
    refs = await history(look)
    other = (await look.run(service.fork_open, labels=["second"])).forks[0]

    status = (await look("status")).item

    assert status["root"] == str(look.project)
    assert [fork["fork_id"] for fork in status["forks"]] == [other["fork_id"]]
    assert status["checks"] == ["unit"]
    assert status["labels"] == [{"name": "first", "snapshot_id": refs["snapshot"], "pinned": False, "version": 1}]
    assert status["operations"][0]["operation_id"] == refs["operation"]
    assert status["last_snapshot"]["place"] == "live"
    assert status["hint"] is None


async def test_the_timeline_holds_snapshots_and_operations_newest_first(look: Looker) -> None:
    refs = await history(look)

    rows = (await look("timeline", limit=200)).items

    assert {row["kind"] for row in rows} == {"snapshot", "operation"}
    assert [row["at_us"] for row in rows] == sorted((row["at_us"] for row in rows), reverse=True)
    assert refs["operation"] in [row.get("operation_id") for row in rows if row["kind"] == "operation"]
    first = await look("timeline", limit=2)
    rest = await look("timeline", limit=200, cursor=first.next_cursor)
    snapshots = [row["snapshot_id"] for row in [*first.items, *rest.items] if row["kind"] == "snapshot"]
    assert snapshots == [row["snapshot_id"] for row in rows if row["kind"] == "snapshot"]


async def test_a_tree_is_listed_directory_by_directory_and_page_by_page(look: Looker) -> None:
    make(Folder({b"d": Folder({b"%02d" % n: File(b"x") for n in range(5)}), b"ln": Link(b"d")}), look.project)
    (look.project / "d" / ".env").write_text("TOKEN")

    top = await look("tree")
    pages, cursor = [], None
    while True:
        page = await look("tree", path="d", limit=2, cursor=cursor)
        pages.append([each["path"] for each in page.items])
        cursor = page.next_cursor
        if cursor is None:
            break

    assert [(each["path"], each["type"]) for each in top.items] == [
        ("d", "directory"),
        ("ln", "link"),
        ("readme.txt", "file"),
    ]
    assert pages == [["d/00", "d/01"], ["d/02", "d/03"], ["d/04"]]
    assert [each["path"] for each in (await look("tree", path="d")).omissions] == ["d/.env"]
    with pytest.raises(NotFound, match=r"no directory 'readme\.txt'"):
        await look("tree", path="readme.txt")
    with pytest.raises(Invalid, match=r"cursor\.foreign"):
        await look("tree", cursor=(await look("tree", path="d", limit=2)).next_cursor)


async def test_a_file_is_shown_as_text_or_base64_and_from_an_offset(look: Looker) -> None:
    (look.project / "big").write_bytes(b"a" * MAX_LENGTH + b"tail")
    (look.project / "bin").write_bytes(b"\0\xff\x01")
    (look.project / "bytes\udcff.txt".encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")).write_text(
        "odd"
    )

    whole = await look("file", path="big")
    tail = await look("file", path="big", offset=MAX_LENGTH)
    binary = await look("file", path="bin")
    odd = await look("file", path="bytes\\xff.txt")

    assert (len(whole.text), whole.item["size"]) == (MAX_LENGTH, MAX_LENGTH + 4)
    assert tail.text == "tail"
    assert base64.b64decode(binary.base64) == b"\0\xff\x01"
    assert binary.text is None
    assert odd.text == "odd"
    assert odd.item["path_b64"] == base64.b64encode(b"bytes\xff.txt").decode()


async def test_what_is_no_file_says_why(look: Looker) -> None:
    (look.project / ".env").write_text("TOKEN=planted")
    (look.project / "d").mkdir()

    with pytest.raises(Invalid, match="needs a path"):
        await look("file")
    with pytest.raises(NotFound, match="it is secret and not stored"):
        await look("file", path=".env")
    for path in ("none", "d", "readme.txt/below"):
        with pytest.raises(NotFound, match="there is no file"):
            await look("file", path=path)


async def test_secrets_in_a_files_text_are_not_shown(look: Looker) -> None:
    token = "ghp_" + "a1B2" * 9
    (look.project / "config.txt").write_text(f"token = {token}\n")
    await look.run(service.snapshot_take)
    (look.project / "config.txt").write_text("token = none\n")

    shown = await look("file", ref="live~1", path="config.txt")
    diff = await look.run(service.tree_diff, detail="patch")

    assert token not in shown.text
    assert token not in diff.patch
    assert "redacted" in shown.text


async def test_what_belongs_to_another_workspace_is_not_shown(look: Looker, tmp_path: Path) -> None:
    refs = await history(look)
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)

    for view in ("snapshot", "fork", "receipt", "promotion", "operation"):
        with pytest.raises(Invalid, match=r"ref\.foreign"):
            await look.invoke(look.home, service.workspace_view, view=view, ref=refs[view], cwd=other)


async def test_an_operation_shows_its_steps(look: Looker) -> None:
    refs = await history(look)

    shown = await look("operation", ref=refs["operation"])

    assert shown.items == [{"path": "new.txt", "kind": "add", "phase": "verified"}]
    assert (shown.item["kind"], shown.item["state"]) == ("promote", "done")


async def test_the_lists_of_the_full_set_page_alike(look: Looker) -> None:
    refs = await history(look)

    receipts = await look.run(keeping.receipt_list)
    operations = await look.run(keeping.operation_list, limit=1)
    more = await look.run(keeping.operation_list, limit=1, cursor=operations.next_cursor)
    promotions = await look.run(keeping.promotion_list)
    stats = await look.run(keeping.store_stats)

    assert [each["receipt_id"] for each in receipts.items] == [refs["receipt"]]
    assert (await look.run(keeping.receipt_list, tree="0" * 64)).items == []
    assert operations.items[0]["operation_id"] == refs["operation"]
    assert more.items[0]["kind"] == "write"
    assert [each["promotion_id"] for each in promotions.items] == [refs["promotion"]]
    assert stats.facts["blobs"] > 0


async def test_a_large_comparison_comes_in_pages_that_make_one_patch(look: Looker) -> None:
    before = await look.run(service.snapshot_take)
    make(Folder({b"f%02d" % n: File((b"%d line\n" % n) * 4000) for n in range(6)}), look.project)

    whole, cursor, pages = "", None, 0
    while True:
        page = await look.run(service.tree_diff, **{"from": before.snapshot_id}, detail="patch", cursor=cursor)
        whole += page.patch
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            break
        (look.project / "readme.txt").write_text(f"moving on {pages}\n")

    assert pages > 1
    assert whole.count("diff --git") == 6, "what changed meanwhile is not mixed in"
    fork = (await look.run(service.fork_open, **{"from": before.snapshot_id})).forks[0]
    await look.run(service.fork_write, fork_id=fork["fork_id"], patch=whole)
    assert (Path(fork["path"]) / "f05").read_bytes() == b"5 line\n" * 4000


async def test_a_comparison_without_a_left_side_begins_where_the_right_one_came_from(look: Looker) -> None:
    assert (await look.run(service.tree_diff)).totals == {"added": 1, "files": 1}, "nothing is stored: all is new"
    await look.run(service.snapshot_take)
    fork = (await look.run(service.fork_open)).forks[0]
    (Path(fork["path"]) / "readme.txt").write_text("fork\n")
    (look.project / "live.txt").write_text("live\n")

    in_fork = await look.run(service.tree_diff, to=fork["fork_id"])
    in_live = await look.run(service.tree_diff)

    assert [(each["path"], each["lines_added"], each["lines_deleted"]) for each in in_fork.files] == [
        ("readme.txt", 1, 1)
    ]
    assert [each["path"] for each in in_live.files] == ["live.txt"]
    assert "modified readme.txt" in in_fork.summary()
