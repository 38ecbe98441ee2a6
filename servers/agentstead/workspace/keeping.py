"""The further operations: lists, labels, checks, leases of forks, and the care of the object store."""

from typing import Annotated, Literal

from pydantic import Field

from agentstead.blobs import MIN_GRACE_US
from agentstead.kit import Call, operation
from agentstead.state import NotFound, Tx
from agentstead.workspace import boundaries, checks, forks, labels, operations, promotions, receipts, snapshots
from agentstead.workspace.acting import changing
from agentstead.workspace.checks import CheckCommand
from agentstead.workspace.choosing import base_snapshot
from agentstead.workspace.forking import close_fork
from agentstead.workspace.forks import MAX_TTL_S, MIN_TTL_S
from agentstead.workspace.parameters import Cursor, ExpectedVersion, ForkId, Limit, Workspace
from agentstead.workspace.places import live_place
from agentstead.workspace.results import Item, Listed, StoreReport, View
from agentstead.workspace.shapes import (
    check_object,
    fork_object,
    label_object,
    operation_object,
    promotion_object,
    receipt_object,
    snapshot_object,
)
from agentstead.workspace.views import Looked, page_of, show

_HOUR_US = MIN_GRACE_US


@operation("snapshot_list", action="workspace.view", risk="read", title="List snapshots")
async def snapshot_list(
    call: Call,
    *,
    place: Annotated[str, Field(description="live, a fork id, or empty for all.")] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    workspace: Workspace = None,
) -> Listed:
    """List the snapshots of a workspace, newest first."""
    facts = await call.workspace(workspace)
    filters = {"list": "snapshots", "workspace": facts.id, "place": place}
    page = await page_of(
        call, filters, cursor, limit, lambda r, **page: snapshots.listed(r, facts.id, place=place, **page)
    )
    return Listed(items=[snapshot_object(each) for each in page.rows], next_cursor=page.cursor)


@operation("snapshot_label", action="workspace.snapshot", risk="write", title="Label a snapshot", idempotent=True)
async def snapshot_label(
    call: Call,
    *,
    ref: Annotated[str, Field(description="Snapshot, or a place to snapshot now.")],
    name: Annotated[str, Field(description="Label.", max_length=64)],
    pin: Annotated[bool, Field(description="Keep it for good.")] = False,
    expected_version: ExpectedVersion = None,
    workspace: Workspace = None,
) -> Item:
    """Let a name stand for a snapshot; it can be used as @name from then on. A moved label keeps its history."""
    facts = await call.workspace(workspace)
    snapshot = await base_snapshot(call, facts, ref)
    await call.write(_put_label, facts.id, name, snapshot.id, pin, expected_version)
    label = await call.read(labels.find, facts.id, name)
    assert label is not None
    return Item(item=label_object(label))


@operation("fork_list", action="workspace.view", risk="read", title="List forks")
async def fork_list(
    call: Call,
    *,
    ended: Annotated[bool, Field(description="Closed and failed ones too.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    workspace: Workspace = None,
) -> Listed:
    """List the forks of a workspace, newest first."""
    facts = await call.workspace(workspace)
    filters = {"list": "forks", "workspace": facts.id, "ended": ended}
    page = await page_of(call, filters, cursor, limit, lambda r, **page: forks.listed(r, facts.id, ended=ended, **page))
    return Listed(items=[fork_object(each) for each in page.rows], next_cursor=page.cursor)


@operation("fork_close", action="workspace.close", risk="destructive", title="Close a fork", idempotent=True)
async def fork_close(call: Call, *, fork_id: ForkId) -> Item:
    """Close a fork and remove its directory. Its last state is stored as a snapshot first."""
    await call.write(_spend)
    return Item(item=fork_object(await close_fork(call.home, fork_id)))


@operation("fork_renew", action="workspace.fork", risk="write", title="Renew a fork", idempotent=True)
async def fork_renew(
    call: Call,
    *,
    fork_id: ForkId,
    ttl_s: Annotated[int, Field(description="Seconds from now.", ge=MIN_TTL_S, le=MAX_TTL_S)] = forks.DEFAULT_TTL_S,
) -> Item:
    """Let a fork live longer; an expired one is closed after a last snapshot."""
    await call.write(_renew, fork_id, ttl_s)
    return Item(item=fork_object(await call.read(forks.the_fork, fork_id)))


@operation("check_save", action="workspace.write", risk="write", title="Save a check", idempotent=True)
async def check_save(
    call: Call,
    *,
    name: Annotated[str, Field(description="Name.", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")],
    command: Annotated[CheckCommand, Field(description="argv without a shell, cwd, env, timeout_s, expect_exit.")],
    expected_version: ExpectedVersion = None,
    workspace: Workspace = None,
) -> Item:
    """Save a command as a named check of this workspace. A promotion then needs it to pass on exactly its tree."""
    checks.refuse_secrets(command, call.home.redactor)
    facts = await call.workspace(workspace)
    await call.write(_save_check, facts.id, name, command.model_dump_json(), expected_version)
    return Item(item=check_object(await call.read(checks.the_check, facts.id, name)))


@operation("check_list", action="workspace.view", risk="read", title="List checks")
async def check_list(call: Call, *, workspace: Workspace = None) -> Listed:
    """List the saved checks of a workspace by name."""
    facts = await call.workspace(workspace)
    return Listed(items=[check_object(each) for each in await call.read(checks.listed, facts.id)])


@operation("receipt_list", action="workspace.view", risk="read", title="List receipts")
async def receipt_list(
    call: Call,
    *,
    tree: Annotated[str, Field(description="Only of this tree id.")] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    workspace: Workspace = None,
) -> Listed:
    """List the receipts of a workspace, newest first."""
    facts = await call.workspace(workspace)
    filters = {"list": "receipts", "workspace": facts.id, "tree": tree}
    page = await page_of(
        call, filters, cursor, limit, lambda r, **page: receipts.listed(r, facts.id, tree=tree, **page)
    )
    return Listed(items=[receipt_object(each) for each in page.rows], next_cursor=page.cursor)


@operation("receipt_get", action="workspace.view", risk="read", title="Read a receipt")
async def receipt_get(
    call: Call,
    *,
    receipt_id: Annotated[str, Field(description="Receipt id (rcp_).", pattern="^rcp_")],
    stream: Annotated[Literal["stdout", "stderr"], Field(description="Which output to show.")] = "stdout",
    offset: Annotated[int, Field(description="First byte of the output.", ge=0)] = 0,
) -> View:
    """Read a receipt's sealed document and its output. An error says where it is not what this home recorded."""
    receipt = await call.read(receipts.the_receipt, receipt_id)
    facts = await call.workspace(receipt.workspace_id)
    return await show(call, facts, Looked("receipt", receipt_id, stream, offset, 50, None))


@operation("operation_list", action="workspace.view", risk="read", title="List operations")
async def operation_list(
    call: Call, *, limit: Limit = 50, cursor: Cursor = None, workspace: Workspace = None
) -> Listed:
    """List what was done to the trees of a workspace, newest first: promotions, restores, undos and fork writes."""
    facts = await call.workspace(workspace)
    filters = {"list": "operations", "workspace": facts.id}
    page = await page_of(call, filters, cursor, limit, lambda r, **page: operations.listed(r, facts.id, **page))
    return Listed(items=[operation_object(each) for each in page.rows], next_cursor=page.cursor)


@operation("promotion_list", action="workspace.view", risk="read", title="List promotions")
async def promotion_list(
    call: Call, *, limit: Limit = 50, cursor: Cursor = None, workspace: Workspace = None
) -> Listed:
    """List the promotions of a workspace, newest first."""
    facts = await call.workspace(workspace)
    filters = {"list": "promotions", "workspace": facts.id}
    page = await page_of(call, filters, cursor, limit, lambda r, **page: promotions.listed(r, facts.id, **page))
    return Listed(items=[promotion_object(each) for each in page.rows], next_cursor=page.cursor)


@operation("workspace_bind", action="workspace.bind", risk="destructive", title="Bind a workspace", idempotent=True)
async def workspace_bind(call: Call, *, workspace: Workspace = None) -> Item:
    """Confirm that the directory which stands at a workspace's root now is the one that is meant."""
    facts = await call.workspace(workspace)
    boundaries.refuse_unfit(facts.root, call.home.path)
    identity = boundaries.identity_of(facts.root)
    async with changing(call.home, live_place(facts), doing="workspace_bind"):
        await call.write(_bind, facts.id, identity.device, identity.inode)
    return Item(item={"workspace_id": facts.id, "root": str(facts.root), "state": "ready"})


@operation("store_stats", action="workspace.view", risk="read", title="Store figures")
async def store_stats(call: Call) -> StoreReport:
    """Count what the home's object store holds."""
    found = await call.home.blobs.stats()
    return StoreReport(facts={name: getattr(found, name) for name in found.__slots__})


@operation("store_verify", action="workspace.view", risk="read", title="Verify the store")
async def store_verify(
    call: Call,
    *,
    level: Annotated[Literal["index", "bytes"], Field(description="bytes reads everything.")] = "index",
) -> StoreReport:
    """Check that everything the records refer to is stored, and with level=bytes that every byte is as it was."""
    found = await call.home.blobs.verify(call.home.state, level=level)
    facts = {
        "level": found.level,
        "stored": found.stored,
        "stored_bytes": found.stored_bytes,
        "reached": found.reached,
        "missing": [str(key) for key in found.missing],
        "corrupt": [str(key) for key in found.corrupt],
    }
    return StoreReport(facts=facts, ok=found.ok)


@operation("store_collect", action="workspace.collect", risk="destructive", title="Collect the store", idempotent=True)
async def store_collect(
    call: Call,
    *,
    dry_run: Annotated[bool, Field(description="Only count.")] = True,
    grace_hours: Annotated[int, Field(description="How long unreached.", ge=1, le=720)] = 24,
) -> StoreReport:
    """Remove stored objects that nothing has referred to for longer than the grace period."""
    await call.write(_spend)
    found = await call.home.blobs.collect(call.home.state, dry_run=dry_run, grace_us=grace_hours * _HOUR_US)
    facts = {name: getattr(found, name) for name in found.__slots__ if name != "missing"}
    return StoreReport(facts={**facts, "missing": [str(key) for key in found.missing]}, ok=not found.missing)


def _spend(_tx: Tx) -> None:
    """Use the policy's ticket up before files are touched; the rows follow as the work goes on."""


def _put_label(tx: Tx, workspace_id: str, name: str, snapshot_id: str, pin: bool, expected_version: int | None) -> None:
    labels.put(tx, workspace_id, name, snapshot_id, pinned=pin, expected_version=expected_version)


def _renew(tx: Tx, fork_id: str, ttl_s: int) -> None:
    fork = forks.the_fork(tx, fork_id)
    if fork.state not in forks.LIVING:
        raise NotFound(
            "fork.expired", f"fork {fork_id} is {fork.state}", remedy=f"fork_open(from={fork.head_snapshot!r})"
        )
    forks.renew(tx, fork_id, ttl_s)


def _save_check(tx: Tx, workspace_id: str, name: str, command: str, expected_version: int | None) -> None:
    checks.save(tx, workspace_id, name, CheckCommand.model_validate_json(command), expected_version=expected_version)


def _bind(tx: Tx, workspace_id: str, device: int, inode: int) -> None:
    boundaries.bind(tx, workspace_id, boundaries.RootIdentity(device, inode))
