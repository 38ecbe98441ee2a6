"""The MCP face of the workspace server."""

from collections.abc import Iterable

from agentstead.kit import Call, Prompt, Resource, ServerDeclaration
from agentstead.state import AgentsteadError, Entry, Migrations
from agentstead.workspace import keeping, receipts, service
from agentstead.workspace.forks import look_fork
from agentstead.workspace.operations import look_operation
from agentstead.workspace.promotions import look_promotion
from agentstead.workspace.snapshots import look_snapshot
from agentstead.workspace.starting import start, verify
from agentstead.workspace.views import Looked, show

INSTRUCTIONS = (
    "Versions of the whole working tree, and proof before anything becomes live. Take snapshot_take before risky work. "
    "To change code safely: fork_open, edit with fork_write (or in the fork's path), check_run on the fork, then "
    "tree_promote twice: the first call shows the plan, the second (dry_run=false, plan_digest) asks the person and "
    "applies it whole. tree_restore goes back, also file by file, and undoes operations. tree_diff and workspace_view "
    "show any version. Only receipts of check_run prove something. The user's .git is never written."
)

_ROOTS = {
    "workspace snapshots": """
        SELECT 'tree' AS kind, tree AS id FROM snapshots
        UNION SELECT 'blob', omissions FROM snapshots
    """,
    "workspace operations": """
        SELECT 'tree' AS kind, before_tree AS id FROM operations
        UNION SELECT 'tree', after_tree FROM operations
        UNION SELECT 'blob', plan FROM operations
    """,
    "workspace receipts": """
        SELECT 'tree' AS kind, tree_in AS id FROM receipts
        UNION SELECT 'tree', tree_out FROM receipts
        UNION SELECT 'blob', body FROM receipts
        UNION SELECT 'blob', stdout FROM receipts
        UNION SELECT 'blob', stderr FROM receipts
    """,
    "workspace promotions": """
        SELECT 'tree' AS kind, base_tree AS id FROM promotions
        UNION SELECT 'tree', live_tree FROM promotions
        UNION SELECT 'tree', result_tree FROM promotions WHERE state NOT IN ('waiting', 'refused', 'stale')
    """,
    "workspace displaced files": """
        SELECT 'blob' AS kind, id_at_move AS id FROM displaced
        UNION SELECT 'blob', late_id FROM displaced
    """,
}


async def _receipt(call: Call, receipt_id: str) -> str:
    view = await keeping.receipt_get(call, receipt_id=receipt_id)
    return view.model_dump_json(exclude_none=True)


async def _snapshot(call: Call, snapshot_id: str) -> str:
    facts = await call.workspace()
    view = await show(call, facts, Looked("snapshot", snapshot_id, None, 0, 50, None))
    return view.model_dump_json(exclude_none=True)


async def _promotion(call: Call, promotion_id: str) -> str:
    facts = await call.workspace()
    view = await show(call, facts, Looked("promotion", promotion_id, None, 0, 50, None))
    return view.model_dump_json(exclude_none=True)


async def _timeline(call: Call, workspace: str) -> str:
    view = await service.workspace_view(call, view="timeline", workspace=workspace)
    return view.model_dump_json(exclude_none=True)


async def _receipts(call: Call) -> list[tuple[str, str]]:
    try:
        facts = await call.workspace()
    except AgentsteadError as error:
        if error.code != "workspace.unknown":
            raise
        # A list is asked for by every host at once, also by one that has no folder: it then holds nothing.
        return []
    found = await call.read(receipts.listed, facts.id)
    return [(f"receipt://{each.id}", f"{each.check_name or 'command'}: {each.status or each.state}") for each in found]


async def _try_three_fixes(_call: Call, problem: str, check: str = "") -> str:
    how = f"the saved check {check!r}" if check else "the command that shows the problem"
    return (
        f"Problem: {problem}. Take a snapshot with snapshot_take. Open three forks with fork_open(count=3) and a "
        f"hypothesis each, write a different fix into each with fork_write, and run {how} on each with check_run. "
        "Show me the receipts side by side, with tree_diff of each. Then plan the promotion of the best one with "
        "tree_promote and show me the plan; apply it only when I agree."
    )


async def _restore_safely(_call: Call, what: str) -> str:
    return (
        f"I want to go back: {what}. Find the version with workspace_view(view='timeline') and tree_diff, then call "
        "tree_restore with dry_run=true and show me what it writes, deletes and keeps. Apply it with the plan_digest "
        "when I agree, and tell me the safety snapshot's id."
    )


def changes(entry: Entry) -> Iterable[str]:
    """Name the resources that a journal entry changed."""
    if entry.kind.startswith("workspace.promotion."):
        yield f"promotion://{entry.subject}"
    if entry.kind.startswith("workspace.receipt."):
        yield f"receipt://{entry.subject}"
    if entry.kind in ("workspace.snapshot.taken", "workspace.operation.ended") and entry.workspace_id:
        yield f"timeline://{entry.workspace_id}"


CORE = (
    "workspace_view",
    "snapshot_take",
    "tree_diff",
    "fork_open",
    "fork_write",
    "check_run",
    "tree_promote",
    "tree_restore",
)

SERVER = ServerDeclaration(
    name="workspace",
    title="Agentstead workspace",
    instructions=INSTRUCTIONS,
    operations=(
        service.workspace_view,
        service.snapshot_take,
        service.tree_diff,
        service.fork_open,
        service.fork_write,
        service.check_run,
        service.tree_promote,
        service.tree_restore,
        keeping.snapshot_list,
        keeping.snapshot_label,
        keeping.fork_list,
        keeping.fork_close,
        keeping.fork_renew,
        keeping.check_save,
        keeping.check_list,
        keeping.receipt_list,
        keeping.receipt_get,
        keeping.operation_list,
        keeping.promotion_list,
        keeping.workspace_bind,
        keeping.store_stats,
        keeping.store_verify,
        keeping.store_collect,
    ),
    toolsets={"core": CORE},
    migrations=(Migrations(package="workspace", anchor="agentstead.workspace"),),
    resources=(
        Resource("snapshot://{snapshot_id}", "Snapshot", "What a snapshot holds and what it left out.", _snapshot),
        Resource("receipt://{receipt_id}", "Receipt", "The sealed document of a run.", _receipt, entries=_receipts),
        Resource("promotion://{promotion_id}", "Promotion", "What became of a promotion.", _promotion),
        Resource("timeline://{workspace}", "Timeline", "Snapshots and operations, newest first.", _timeline),
    ),
    prompts=(
        Prompt(
            "try-three-fixes",
            "Try three fixes",
            "Three forks, three fixes, one check, and the proof side by side.",
            _try_three_fixes,
            {"problem": "What is wrong.", "check": "The saved check that shows it."},
            frozenset({"check"}),
        ),
        Prompt(
            "restore-safely",
            "Restore safely",
            "Find a version, look at the plan, then go back.",
            _restore_safely,
            {"what": "What to go back to."},
        ),
    ),
    refs={
        "snp_": look_snapshot,
        "frk_": look_fork,
        "rcp_": receipts.look_receipt,
        "prm_": look_promotion,
        "opr_": look_operation,
    },
    roots=_ROOTS,
    changes=changes,
    startup=start,
    verify=verify,
)
