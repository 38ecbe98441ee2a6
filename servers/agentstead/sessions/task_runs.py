"""Tasks as owners of runs: when one is queued, what its worker gets, and what follows a lost one."""

import json
from collections.abc import Mapping
from typing import Any

from agentstead.sessions import runs, tasks
from agentstead.sessions.machines import EffectClass, EffectState
from agentstead.sessions.runs import Run
from agentstead.sessions.tasks import Draft, Saved, Task
from agentstead.state import Conflict, Reading, Tx

ATTEMPTS_IN_PACKET = 5

_EFFECTS = "SELECT key, class, state, note FROM run_effects WHERE subject_ref = :subject ORDER BY key"
_EFFECT = "SELECT class, state FROM run_effects WHERE subject_ref = :subject AND key = :key"
_NOTE_EFFECT = """
INSERT INTO run_effects (subject_ref, key, run_id, class, state, request_hash, note, outcome)
VALUES (:subject, :key, :run_id, :class, :state, '', :note, '')
ON CONFLICT (subject_ref, key) DO UPDATE
SET state = excluded.state,
    run_id = excluded.run_id,
    note = CASE WHEN excluded.note = '' THEN run_effects.note ELSE excluded.note END
"""
_BLOCK = """
INSERT INTO task_blocks (id, task_id, kind, reason, expires_at, cleared_at)
VALUES (:id, :task_id, :kind, :reason, NULL, NULL)
"""
_CLEAR = "UPDATE task_blocks SET cleared_at = :now WHERE task_id = :task_id AND cleared_at IS NULL"
_MADE_BY = """
SELECT value AS id
FROM json_each(:ids)
WHERE NOT EXISTS (
    SELECT 1 FROM tasks
    WHERE tasks.id = value
        AND tasks.workspace_id = :workspace
)
"""


class TaskRuns:
    """The `RunOwner` of tasks."""

    def claimable(self, tx: Tx, run: Run) -> bool:
        """Tell whether the task is still to be done."""
        return tasks.get(tx, run.owner_id).status == "ready"

    def packet(self, tx: Tx, run: Run) -> Mapping[str, Any]:
        """Return the task, what its blockers delivered, earlier attempts, and effects already declared."""
        task = tasks.get(tx, run.owner_id)
        return {
            "task_id": task.id,
            "title": task.title,
            "body": task.body,
            "effects": task.effects,
            "workspace_mode": task.workspace_mode,
            "inputs": [_delivered(tx, blocker) for blocker in tasks.blockers(tx, task.id)],
            "earlier_attempts": [_attempt(each) for each in _earlier(tx, run)],
            "declared_effects": [dict(row) for row in tx.all(_EFFECTS, subject=task.id)],
        }

    def settled(self, tx: Tx, run: Run) -> None:
        """Derive the task's status again, and queue what became ready by it."""
        tasks.refresh(tx, run.owner_id)
        queue_ready(tx, run.owner_id)

    def lost(self, tx: Tx, run: Run) -> None:
        """Try again by the declared effects; flag the task where that would be unsafe or pointless."""
        task = tasks.get(tx, run.owner_id)
        if run.attempt >= task.max_attempts:
            _flag(tx, task, "attempts_exhausted")
        elif task.effects == "external" and _has_open_effect(tx, task.id):
            _flag(tx, task, "effect_unknown")
        else:
            _again(tx, task, run)


def save(tx: Tx, workspace: str, drafts: tuple[Draft, ...]) -> Saved:
    """Save a batch of tasks and queue a run for each that is ready."""
    saved = tasks.save(tx, workspace, drafts)
    for task_id in saved.order:
        queue_ready(tx, task_id)
    return saved


def cancel(tx: Tx, task_id: str, *, reason: str, expected_version: int | None = None) -> Task:
    """Cancel a task with its open run: the holder of its lease can change nothing any more."""
    canceled = tasks.cancel(tx, task_id, reason=reason, expected_version=expected_version)
    for run in runs.attempts(tx, "task", task_id, most=1):
        if tasks.is_open(run.state):
            runs.end(tx, run, "cancel", runs.Outcome(summary=reason))
    return canceled


def queue_ready(tx: Tx, task_id: str) -> None:
    """Queue a run for a task that is ready and has none open, and for all that its end made ready."""
    task = tasks.get(tx, task_id)
    latest = next(iter(runs.attempts(tx, "task", task_id, most=1)), None)
    if task.status == "ready" and task.auto_enqueue and (latest is None or not tasks.is_open(latest.state)):
        _enqueue(tx, task, latest)
    if task.status == "completed":
        for row in tx.all("SELECT blocked_id FROM task_links WHERE blocker_id = :id ORDER BY blocked_id", id=task_id):
            queue_ready(tx, row["blocked_id"])
        if task.parent_id:
            queue_ready(tx, task.parent_id)


def declare_effect(tx: Tx, run: Run, key: str, *, effect_class: EffectClass, state: EffectState, note: str) -> None:
    """Record an act outside the workspace: `intent` before it, `done` after; one key over all attempts."""
    known = tx.one(_EFFECT, subject=run.owner_id, key=key)
    if known is not None and known["state"] == "done" and state == "intent":
        raise Conflict(
            "run.transition_refused",
            f"Effect {key!r} is done already.",
            remedy="Do not act again; go on from its outcome.",
            details={"legal": ["undone"]},
        )
    values = {"class": effect_class}
    tx.execute(_NOTE_EFFECT, subject=run.owner_id, key=key, run_id=run.id, state=state, note=tx.redact(note), **values)
    tx.journal(
        "sessions.effect.declared", subject=run.id, workspace=run.workspace_id, body={"key": key, "state": state}
    )


def block(tx: Tx, run: Run, *, kind: str, reason: str) -> None:
    """Hold a task back until somebody clears the block; its run goes back into the queue."""
    tx.execute(_BLOCK, id=tx.new_id("blk_"), task_id=run.owner_id, kind=kind, reason=tx.redact(reason))
    runs.release(tx, run, reason=reason)


def unblock(tx: Tx, task_id: str) -> None:
    """Clear every open block of a task."""
    task = tasks.get(tx, task_id)
    tx.execute(_CLEAR, task_id=task_id, now=tx.now_us)
    tx.journal("sessions.task.unblocked", subject=task_id, workspace=task.workspace_id, body={})
    tasks.refresh(tx, task_id)
    queue_ready(tx, task_id)


def refuse_phantoms(reading: Reading, workspace: str, ids: tuple[str, ...]) -> None:
    """Raise `Conflict` with `task.phantom_ids` for ids that a worker claims to have made and did not."""
    phantom = [row["id"] for row in reading.all(_MADE_BY, ids=json.dumps(list(ids)), workspace=workspace)]
    if phantom:
        raise Conflict(
            "task.phantom_ids",
            f"These tasks do not exist in this workspace: {', '.join(phantom[:5])}.",
            remedy="Make them with task_save, or leave them out; the run is still yours.",
            details={"ids": phantom[:50]},
        )


def _enqueue(tx: Tx, task: Task, previous: Run | None) -> None:
    runs.enqueue(
        tx,
        "task",
        task.id,
        workspace=task.workspace_id,
        capabilities=task.required_caps,
        priority=task.priority,
        previous=previous,
    )


def _again(tx: Tx, task: Task, lost: Run) -> None:
    if tasks.refresh(tx, task.id) != "ready":
        return
    latest = runs.attempts(tx, "task", task.id, most=1)[0]
    if not tasks.is_open(latest.state):
        _enqueue(tx, task, lost)


def _flag(tx: Tx, task: Task, code: str) -> None:
    tasks.set_attention(tx, task.id, code)
    tx.journal("sessions.task.flagged", subject=task.id, workspace=task.workspace_id, body={"code": code})
    tasks.refresh(tx, task.id)


def _has_open_effect(tx: Tx, task_id: str) -> bool:
    return any(row["state"] in ("intent", "unknown") for row in tx.all(_EFFECTS, subject=task_id))


def _delivered(tx: Tx, task_id: str) -> dict[str, str]:
    done = next((run for run in runs.attempts(tx, "task", task_id) if run.state == "completed"), None)
    title = tasks.get(tx, task_id).title
    return {
        "task_id": task_id,
        "title": title,
        "summary": done.summary if done else "",
        "result": done.result if done else "",
    }


def _earlier(tx: Tx, run: Run) -> list[Run]:
    found = runs.attempts(tx, "task", run.owner_id, most=ATTEMPTS_IN_PACKET + 1)
    return [each for each in found if each.id != run.id][:ATTEMPTS_IN_PACKET]


def _attempt(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "attempt": run.attempt,
        "state": run.state,
        "summary": run.summary,
        "failure": run.failure_class,
    }


runs.register_owner("task", TaskRuns())
