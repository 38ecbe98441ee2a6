"""What workspace_view shows: each view reads rows, or the store, and nothing else."""

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from agentstead.blobs import BlobStore
from agentstead.identity import WorkspaceFacts
from agentstead.kit import Call
from agentstead.policy import Redactor
from agentstead.state import Invalid, NotFound, Reading
from agentstead.workspace import checks, evidence, forks, labels, operations, promotions, receipts, snapshots
from agentstead.workspace.contents import Trees
from agentstead.workspace.omissions import decode_omissions
from agentstead.workspace.paths import given, join, shown
from agentstead.workspace.refs import REMEDY, Resolved, refuse_foreign, resolve
from agentstead.workspace.results import View
from agentstead.workspace.sealing import RECEIPT_KEY
from agentstead.workspace.shapes import (
    Object,
    check_object,
    entry_object,
    fork_object,
    label_object,
    omissions_object,
    operation_object,
    promotion_object,
    receipt_object,
    snapshot_object,
)
from agentstead.workspace.unified import is_binary

ViewName = Literal[
    "status", "timeline", "tree", "file", "snapshot", "fork", "check", "receipt", "gate", "promotion", "operation",
    "store",
]  # fmt: skip
VIEWS: Final = get_args(ViewName)

MAX_LENGTH: Final = 65_536
_STATUS_ROWS: Final = 5


@dataclass(frozen=True, slots=True)
class Looked:
    """What is looked at: a reference and a path where the view takes them, and which page of it."""

    view: ViewName
    ref: str | None
    path: str | None
    offset: int
    limit: int
    cursor: str | None


async def show(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    """Return one view of a workspace."""
    return await _VIEWS[looked.view](call, facts, looked)


async def _status(call: Call, facts: WorkspaceFacts, _looked: Looked) -> View:
    last = await call.read(snapshots.latest, facts.id, snapshots.LIVE)
    living = await call.read(forks.listed, facts.id)
    unfinished = await call.read(operations.listed, facts.id, most=_STATUS_ROWS)
    item: Object = {
        "workspace_id": facts.id,
        "name": facts.name,
        "root": str(facts.root),
        "last_snapshot": snapshot_object(last) if last else None,
        "forks": [fork_object(fork) for fork in living],
        "checks": [check.name for check in await call.read(checks.listed, facts.id)],
        "labels": [label_object(label) for label in await call.read(labels.listed, facts.id)],
        "operations": [operation_object(each) for each in unfinished],
        "hint": None if last else "Nothing is stored yet: call snapshot_take.",
        "note": facts.note or None,
    }
    return View(item=item)


async def _timeline(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    taken = await _page(call, looked, lambda r, **page: snapshots.listed(r, facts.id, **page))
    done = await call.read(operations.listed, facts.id, before="", most=looked.limit)
    oldest = taken.rows[-1].created_at if taken.rows and taken.cursor else 0
    rows = [{"kind": "snapshot", **snapshot_object(each)} for each in taken.rows]
    newest = taken.rows[0].created_at if taken.rows and looked.cursor else None
    rows += [
        {**operation_object(each), "kind": "operation", "what": each.kind, "at_us": each.started_at}
        for each in done
        if each.started_at >= oldest and (newest is None or each.started_at <= newest)
    ]
    rows.sort(key=lambda row: (row["at_us"], row.get("snapshot_id") or row["operation_id"]), reverse=True)
    return View(items=rows, next_cursor=taken.cursor)


async def _tree(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    found = await resolve(call.home, facts, looked.ref or snapshots.LIVE)
    directory = given(looked.path) if looked.path else b""
    entries = await call.home.blobs.run(_entries, found.tree, directory)
    basis = {"tree": found.tree, "path": looked.path}
    start = call.home.state.cursors.open(looked.cursor, basis)["at"] if looked.cursor else looked.offset
    end = start + looked.limit
    more = call.home.state.cursors.seal({"at": end}, basis) if end < len(entries) else None
    item = {"tree": found.tree, "snapshot_id": found.snapshot_id or None, "entries": len(entries)}
    omissions = [each for each in found.omissions if each.path.rpartition(b"/")[0] == directory]
    return View(
        item=item,
        items=entries[start:end],
        omissions=[each.as_json() for each in omissions[: looked.limit]],
        next_cursor=more,
    )


async def _file(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    if not looked.path:
        raise Invalid("path.invalid", "view=file needs a path", remedy="Give the path of one file.")
    found = await resolve(call.home, facts, looked.ref or snapshots.LIVE)
    return await call.home.blobs.run(_read_file, call.home.redactor, found, given(looked.path), looked)


async def _snapshot(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    if looked.ref is None:
        page = await _page(call, looked, lambda r, **page: snapshots.listed(r, facts.id, **page))
        return View(items=[snapshot_object(each) for each in page.rows], next_cursor=page.cursor)
    found = await resolve(call.home, facts, looked.ref)
    snapshot = await call.read(snapshots.find, found.snapshot_id)
    if snapshot is None:
        raise NotFound("ref.not_found", f"{looked.ref!r} is no snapshot", remedy=REMEDY)
    parents = await call.read(snapshots.parents, snapshot.id)
    omissions = decode_omissions(await call.home.blobs.get("blob", snapshot.omissions))
    item = {
        **snapshot_object(snapshot),
        "parents": [{"snapshot_id": parent, "edge": edge} for parent, edge in parents],
        "omissions": omissions_object(omissions)["counts"],
    }
    return View(item=item, omissions=[each.as_json() for each in omissions[: looked.limit]])


async def _fork(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    if looked.ref is None:
        page = await _page(call, looked, lambda r, **page: forks.listed(r, facts.id, ended=True, **page))
        return View(items=[fork_object(each) for each in page.rows], next_cursor=page.cursor)
    found = await resolve(call.home, facts, looked.ref)
    fork = await call.read(forks.the_fork, looked.ref)
    base = await call.read(snapshots.find, fork.base_snapshot)
    omissions = [each.as_json() for each in found.omissions[: looked.limit]]
    return View(item={**fork_object(fork, found.tree), "base_tree": base.tree if base else None}, omissions=omissions)


async def _check(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    if looked.ref is None:
        return View(items=[check_object(each) for each in await call.read(checks.listed, facts.id)])
    return View(item=check_object(await call.read(checks.the_check, facts.id, looked.ref)))


async def _receipt(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    if looked.ref is None:
        page = await _page(call, looked, lambda r, **page: receipts.listed(r, facts.id, **page))
        return View(items=[receipt_object(each) for each in page.rows], next_cursor=page.cursor)
    receipt = await call.read(receipts.the_receipt, looked.ref)
    refuse_foreign(facts, receipt.workspace_id, looked.ref)
    item = receipt_object(receipt)
    if receipt.state != "recorded":
        return View(item=item)
    document = await call.home.blobs.get("blob", receipt.body)
    item["document"] = receipts.opened(receipt, document, call.home.key(RECEIPT_KEY))
    item["mac"] = receipt.mac
    stream = receipt.stderr if looked.path == "stderr" else receipt.stdout
    output = await call.home.blobs.get("blob", stream)
    text = output[looked.offset : looked.offset + MAX_LENGTH].decode("utf-8", "replace")
    return View(item=item, text=text)


async def _gate(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    found = await resolve(call.home, facts, looked.ref or snapshots.LIVE)
    verdict = await call.read(evidence.judge, facts.id, found.tree)
    return View(item={**verdict.as_json(), "tree": found.tree})


async def _promotion(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    if looked.ref is None:
        page = await _page(call, looked, lambda r, **page: promotions.listed(r, facts.id, **page))
        return View(items=[promotion_object(each) for each in page.rows], next_cursor=page.cursor)
    found = await call.read(promotions.find, looked.ref)
    if found is None:
        raise NotFound("ref.not_found", f"there is no promotion {looked.ref[:40]}", remedy=REMEDY)
    refuse_foreign(facts, found.workspace_id, looked.ref)
    return View(item=promotion_object(found))


async def _operation(call: Call, facts: WorkspaceFacts, looked: Looked) -> View:
    if looked.ref is None:
        page = await _page(call, looked, lambda r, **page: operations.listed(r, facts.id, **page))
        return View(items=[operation_object(each) for each in page.rows], next_cursor=page.cursor)
    found = await call.read(operations.find, looked.ref)
    if found is None:
        raise NotFound(
            "operation.not_found",
            f"there is no operation {looked.ref[:40]}",
            remedy="workspace_view (view=operation) lists them.",
        )
    refuse_foreign(facts, found.workspace_id, looked.ref)
    steps = await call.read(operations.steps_of, found.id)
    rows = [{"path": shown(each.step.path), "kind": each.step.kind, "phase": each.phase} for each in steps]
    return View(item=operation_object(found), items=rows[looked.offset : looked.offset + looked.limit])


async def _store(call: Call, _facts: WorkspaceFacts, _looked: Looked) -> View:
    found = await call.home.blobs.stats()
    return View(item={name: getattr(found, name) for name in found.__slots__})


_VIEWS: Final[Mapping[ViewName, Callable[[Call, WorkspaceFacts, Looked], Awaitable[View]]]] = {
    "status": _status,
    "timeline": _timeline,
    "tree": _tree,
    "file": _file,
    "snapshot": _snapshot,
    "fork": _fork,
    "check": _check,
    "receipt": _receipt,
    "gate": _gate,
    "promotion": _promotion,
    "operation": _operation,
    "store": _store,
}


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of one page, and the cursor of the next."""

    rows: Sequence[Any]
    cursor: str | None


async def _page(call: Call, looked: Looked, read: Callable[..., Sequence[Any]]) -> Page:
    return await page_of(call, {"view": looked.view}, looked.cursor, looked.limit, read)


async def page_of(
    call: Call, filters: Mapping[str, Any], cursor: str | None, limit: int, read: Callable[..., Sequence[Any]]
) -> Page:
    """Return one page of rows that are ordered by id, the newest first; `read` takes before and most."""
    before = str(call.home.state.cursors.open(cursor, filters)["id"]) if cursor else ""

    def rows(reading: Reading) -> Sequence[Any]:
        return read(reading, before=before, most=limit + 1)

    found = await call.read(rows)
    more = len(found) > limit
    following = call.home.state.cursors.seal({"id": found[limit - 1].id}, filters) if more else None
    return Page(found[:limit], following)


def _entries(store: BlobStore, tree: str, directory: bytes) -> list[Object]:
    trees = Trees(store)
    entry = trees.entry(tree, directory) if directory else None
    if directory and (entry is None or entry.type != "d"):
        raise NotFound(
            "ref.not_found", f"there is no directory {shown(directory)!r} in this tree", remedy="List its parent."
        )
    inside = entry.id if entry is not None else tree
    return [entry_object(join(directory, each.name), each) for each in trees.entries(inside)]


def _read_file(store: BlobStore, redactor: Redactor, found: Resolved, path: bytes, looked: Looked) -> View:
    entry = Trees(store).entry(found.tree, path)
    if entry is None or entry.type == "d":
        left_out = [each.as_json() for each in found.omissions if each.path == path]
        why = f" (it is {left_out[0]['reason']} and not stored)" if left_out else ""
        raise NotFound(
            "ref.not_found", f"there is no file {shown(path)!r} in this tree{why}", remedy="List it: view=tree."
        )
    with store.open_stream(entry.id) as source:
        _skip(source, looked.offset)
        data = source.read(MAX_LENGTH)
        while source.read(2**20):
            pass
    item = entry_object(path, entry)
    if is_binary(data):
        return View(item=item, base64=base64.b64encode(data).decode())
    return View(item=item, text=redactor.text(data.decode("utf-8", "replace")))


def _skip(source: Any, count: int) -> None:
    while count > 0 and (passed := source.read(min(count, 2**20))):
        count -= len(passed)
