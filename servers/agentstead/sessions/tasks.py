"""Tasks: saved all or nothing, linked without a cycle, their status derived and never commanded."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from agentstead.sessions.machines import OPEN_RUN_STATES, Effects, Priority, TaskStatus, WorkspaceMode
from agentstead.state import Conflict, Exhausted, Invalid, NotFound, Reading, RefFacts, Tx, check_version

LINKS = 32
CHILDREN = 64
DEPTH = 8

_COLUMNS = (
    "id, workspace_id, title, body, priority, labels, parent_id, owner, required_caps, effects, workspace_mode, "
    "max_attempts, status, draft, canceled, paused, approval, auto_enqueue, attention_code, created_by, created_at, "
    "version"
)
_BY_ID = f"SELECT {_COLUMNS} FROM tasks WHERE id = :id"
_LIST = f"""
SELECT {_COLUMNS}
FROM tasks
WHERE (:workspace = '' OR workspace_id = :workspace)
    AND (:status = '' OR status = :status)
    AND (:query = '' OR title LIKE :like ESCAPE '\\')
    AND id > :after
ORDER BY id
LIMIT :most
"""
_INSERT = """
INSERT INTO tasks (
    id, workspace_id, title, body, priority, labels, parent_id, owner, required_caps, preferred_caps, checks,
    done_when, output_schema, effects, workspace_mode, max_attempts, max_runtime_s, status, draft, canceled, paused,
    approval, auto_enqueue, review_policy, review_rounds, attention_code, spec_path, spec_digest, created_by,
    created_at, version
)
VALUES (
    :id, :workspace, :title, :body, :priority, :labels, :parent, '', :caps, '[]', '[]',
    '', '', :effects, :workspace_mode, :max_attempts, NULL, :status, :draft, 0, 0,
    'none', 1, 'none', 0, '', '', '', :created_by,
    :now, 1
)
"""
_UPDATE = """
UPDATE tasks
SET title = :title,
    body = :body,
    priority = :priority,
    labels = :labels,
    parent_id = :parent,
    required_caps = :caps,
    effects = :effects,
    workspace_mode = :workspace_mode,
    max_attempts = :max_attempts,
    draft = :draft,
    version = version + 1
WHERE id = :id
"""
_SET_STATUS = "UPDATE tasks SET status = :status WHERE id = :id"
_CANCEL = "UPDATE tasks SET canceled = 1, version = version + 1 WHERE id = :id"
_ATTENTION = "UPDATE tasks SET attention_code = :code WHERE id = :id"
_LINK = "INSERT INTO task_links (blocker_id, blocked_id) VALUES (:blocker, :blocked) ON CONFLICT DO NOTHING"
_UNLINK = "DELETE FROM task_links WHERE blocked_id = :blocked"
_BLOCKERS = "SELECT blocker_id FROM task_links WHERE blocked_id = :id ORDER BY blocker_id"
_BLOCKED = "SELECT blocked_id FROM task_links WHERE blocker_id = :id ORDER BY blocked_id"
_CHILDREN = "SELECT id, status FROM tasks WHERE parent_id = :id ORDER BY id"
_REACHED = """
WITH RECURSIVE reached (id) AS (
    SELECT blocked_id FROM task_links WHERE blocker_id = :id
    UNION
    SELECT task_links.blocked_id FROM task_links JOIN reached ON task_links.blocker_id = reached.id
)
SELECT 1 FROM reached WHERE id = :id
"""
_FACTS = """
SELECT
    (SELECT COUNT(*) FROM task_links AS link JOIN tasks AS blocker ON blocker.id = link.blocker_id
        WHERE link.blocked_id = :id AND blocker.status <> 'completed') AS blockers,
    (SELECT COUNT(*) FROM task_blocks
        WHERE task_id = :id AND cleared_at IS NULL AND (expires_at IS NULL OR expires_at > :now)) AS blocks,
    (SELECT COUNT(*) FROM tasks WHERE parent_id = :id AND status NOT IN ('completed', 'canceled')) AS children
"""
_LAST_RUN = """
SELECT state, attempt
FROM runs
WHERE owner_kind = 'task'
    AND owner_id = :id
ORDER BY attempt DESC, id DESC
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work."""

    id: str
    workspace_id: str
    title: str
    body: str
    priority: Priority
    labels: tuple[str, ...]
    parent_id: str
    owner: str
    required_caps: tuple[str, ...]
    effects: Effects
    workspace_mode: WorkspaceMode
    max_attempts: int
    status: TaskStatus
    draft: bool
    canceled: bool
    paused: bool
    approval: str
    auto_enqueue: bool
    attention_code: str
    created_by: str
    created_at: int
    version: int


@dataclass(frozen=True, slots=True)
class Draft:
    """One task to save: a known `id` is edited, else a new one is made; `key` names it inside its batch."""

    title: str
    id: str = ""
    key: str = ""
    body: str = ""
    after: tuple[str, ...] = ()
    parent: str = ""
    priority: Priority = "medium"
    labels: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    effects: Effects = "contained"
    workspace_mode: WorkspaceMode = "fork"
    max_attempts: int = 3
    draft: bool = False
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """The ids behind a batch's keys, and every id in an order that the links allow."""

    ids: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()


def get(reading: Reading, task_id: str) -> Task:
    """Return a task; raises `NotFound` with `task.not_found`."""
    row = reading.one(_BY_ID, id=task_id)
    if row is None:
        raise NotFound(
            "task.not_found",
            f"No task {task_id[:40]!r} is known.",
            remedy="desk_view(kind='task') lists those that exist.",
        )
    return _task(row)


def list_tasks(
    reading: Reading, *, workspace: str = "", status: str = "", query: str = "", after: str = "", most: int = 20
) -> list[Task]:
    """Return tasks in the order in which they were made, from behind the id `after`."""
    escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = reading.all(
        _LIST, workspace=workspace, status=status, query=query, like=f"%{escaped}%", after=after, most=most
    )
    return [_task(row) for row in rows]


def blockers(reading: Reading, task_id: str) -> list[str]:
    """Return the ids of the tasks that must be completed first."""
    return [row["blocker_id"] for row in reading.all(_BLOCKERS, id=task_id)]


def save(tx: Tx, workspace: str, drafts: Sequence[Draft]) -> Saved:
    """Save a batch whole: rows first, then links, then each status; raises before anything lasts."""
    ids = {draft.key or draft.id or f"#{index}": _store(tx, workspace, draft) for index, draft in enumerate(drafts)}
    saved = list(ids.values())
    for draft, task_id in zip(drafts, saved, strict=True):
        _set_parent(tx, draft, task_id, ids)
        _link(tx, draft, task_id, ids)
    order = _order(tx, saved)
    for task_id in order:
        refresh(tx, task_id)
    for task_id in saved:
        task = get(tx, task_id)
        body = {"title": task.title, "status": task.status, "version": task.version}
        tx.journal("sessions.task.saved", subject=task_id, workspace=task.workspace_id, body=body)
    return Saved(ids, tuple(order))


def cancel(tx: Tx, task_id: str, *, reason: str, expected_version: int | None = None) -> Task:
    """Cancel a task; a canceled one stays so. Its open run is the caller's to end, afterwards."""
    task = get(tx, task_id)
    check_version(task.version, expected_version, noun="task", ref=task_id)
    if task.canceled:
        return task
    tx.execute(_CANCEL, id=task_id)
    tx.journal("sessions.task.canceled", subject=task_id, workspace=task.workspace_id, body={"reason": reason})
    refresh(tx, task_id)
    return get(tx, task_id)


def set_attention(tx: Tx, task_id: str, code: str) -> None:
    """Flag a task for a person, or take the flag off with an empty code."""
    tx.execute(_ATTENTION, id=task_id, code=code)


def refresh(tx: Tx, task_id: str) -> TaskStatus:
    """Derive a task's status again, and that of everything whose status depends on it."""
    task = get(tx, task_id)
    status = derive(tx, task)
    if status != task.status:
        tx.execute(_SET_STATUS, id=task_id, status=status)
        for row in tx.all(_BLOCKED, id=task_id):
            refresh(tx, row["blocked_id"])
        if task.parent_id:
            refresh(tx, task.parent_id)
    return status


def derive(reading: Reading, task: Task) -> TaskStatus:
    """Return the status that the first matching rule gives."""
    last = reading.one(_LAST_RUN, id=task.id)
    run = "" if last is None else str(last["state"])
    facts = reading.one(_FACTS, id=task.id, now=reading.now_us)
    assert facts is not None
    if task.canceled:
        return "canceled"
    if task.draft:
        return "draft"
    if run in ("leased", "proving", "stopping"):
        return "in_progress"
    if run == "completed" and facts["children"] == 0:
        return "completed"
    if task.attention_code or run == "attention":
        return "needs_attention"
    if run == "failed" and last is not None and last["attempt"] >= task.max_attempts:
        return "failed"
    if facts["blockers"] or facts["blocks"] or facts["children"] or task.paused:
        return "blocked"
    return "ready" if task.approval in ("none", "approved") else "pending"


def blocked_reasons(reading: Reading, task: Task) -> list[str]:
    """Return why a task is blocked: dependency, block, children, paused."""
    facts = reading.one(_FACTS, id=task.id, now=reading.now_us)
    assert facts is not None
    found = {
        "dependency": facts["blockers"],
        "block": facts["blocks"],
        "children": facts["children"],
        "paused": task.paused,
    }
    return [reason for reason, holds in found.items() if holds]


def look_task(reading: Reading, ref: str) -> RefFacts | None:
    """Answer `state.refs` for `tsk_` ids."""
    row = reading.one(_BY_ID, id=ref)
    if row is None:
        return None
    return RefFacts(exists=True, workspace=row["workspace_id"], state=row["status"], facts={"title": row["title"]})


def _store(tx: Tx, workspace: str, draft: Draft) -> str:
    fields = {
        "title": tx.redact(draft.title),
        "body": tx.redact(draft.body),
        "priority": draft.priority,
        "labels": json.dumps([tx.redact(label) for label in draft.labels]),
        "parent": draft.parent if draft.parent.startswith("tsk_") else "",
        "caps": json.dumps(sorted(set(draft.capabilities))),
        "effects": draft.effects,
        "workspace_mode": draft.workspace_mode,
        "max_attempts": draft.max_attempts,
        "draft": int(draft.draft),
    }
    if draft.id:
        _check_editable(tx, draft, workspace)
        tx.execute(_UPDATE, id=draft.id, **fields)
        return draft.id
    task_id = tx.new_id("tsk_")
    tx.execute(
        _INSERT,
        id=task_id,
        workspace=workspace,
        status="pending",
        created_by=tx.principal,
        now=tx.now_us,
        **fields,
    )
    return task_id


def _check_editable(tx: Tx, draft: Draft, workspace: str) -> None:
    known = get(tx, draft.id)
    check_version(known.version, draft.expected_version, noun="task", ref=draft.id)
    if known.workspace_id != workspace:
        raise NotFound(
            "task.not_found",
            f"Task {draft.id} is not of this workspace.",
            remedy="Name the task's own workspace.",
        )
    if known.status in ("in_progress", "completed", "canceled"):
        raise Conflict(
            "task.immutable",
            f"Task {draft.id} is {known.status}: it cannot be edited.",
            remedy="Make a new task for what is still to do.",
        )


def _set_parent(tx: Tx, draft: Draft, task_id: str, ids: Mapping[str, str]) -> None:
    if not draft.parent:
        return
    parent = get(tx, ids.get(draft.parent, draft.parent))
    chain = [parent.id]
    while (above := get(tx, chain[-1]).parent_id) and above not in chain and len(chain) <= DEPTH:
        chain.append(above)
    if task_id in chain:
        raise Conflict("task.cycle", f"Task {task_id} would be its own ancestor.", remedy="Choose another parent.")
    if len(chain) >= DEPTH or len(tx.all(_CHILDREN, id=parent.id)) >= CHILDREN:
        raise Exhausted(
            "task.limit",
            f"A tree of tasks has at most {DEPTH} levels and {CHILDREN} children a task.",
            remedy="Use links (after) where order is all that is needed.",
        )
    tx.execute("UPDATE tasks SET parent_id = :parent WHERE id = :id", id=task_id, parent=parent.id)


def _link(tx: Tx, draft: Draft, task_id: str, ids: Mapping[str, str]) -> None:
    if len(draft.after) > LINKS:
        raise Exhausted("task.limit", f"A task waits for at most {LINKS} others.", remedy="Add a task in between.")
    tx.execute(_UNLINK, blocked=task_id)
    for name in draft.after:
        blocker = ids.get(name, name)
        if not blocker.startswith("tsk_"):
            raise Invalid(
                "task.not_found",
                f"after names {name[:40]!r}: no key of this batch and no task id.",
                remedy="Use a key of another task in this call, or a tsk_ id.",
            )
        get(tx, blocker)
        if blocker == task_id:
            raise Conflict("task.cycle", f"Task {name[:40]!r} waits for itself.", remedy="Take it out of after.")
        tx.execute(_LINK, blocker=blocker, blocked=task_id)
    if tx.value(_REACHED, id=task_id):
        raise Conflict(
            "task.cycle", f"The links of {draft.key or task_id} form a circle.", remedy="Take one of them out."
        )


def _order(tx: Tx, ids: Sequence[str]) -> list[str]:
    inside = set(ids)
    graph = {task_id: [each for each in blockers(tx, task_id) if each in inside] for task_id in ids}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise Conflict("task.cycle", "The links of this batch form a circle.", remedy="Take one out.") from error


def _task(row: sqlite3.Row) -> Task:
    fields = dict(row)
    fields["labels"] = tuple(json.loads(row["labels"]))
    fields["required_caps"] = tuple(json.loads(row["required_caps"]))
    for name in ("draft", "canceled", "paused", "auto_enqueue"):
        fields[name] = bool(row[name])
    return Task(**fields)


def is_open(run_state: str) -> bool:
    """Tell whether a run in this state stands in the way of another of the same owner."""
    return run_state in OPEN_RUN_STATES
