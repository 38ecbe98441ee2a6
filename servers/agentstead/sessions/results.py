"""What the operations of this server return."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentstead.identity import WorkspaceFacts
from agentstead.kit import Result
from agentstead.sessions.recap import Recap
from agentstead.sessions.runs import Run
from agentstead.sessions.sessions import Session
from agentstead.sessions.tasks import Task

Object = Mapping[str, Any]


class WorkspaceUsed(Result):
    """Which workspace an answer is about, and how it was found."""

    id: str
    name: str
    source: str
    root: str


class SessionOpened(Result):
    """An open session, and what to know before going on."""

    session_id: str
    name: str
    created: bool
    workspace: WorkspaceUsed
    recap: Object
    needs_you: Sequence[Object]
    notes: Sequence[str]

    def summary(self) -> str:
        """Say where we are, then what waits."""
        verb = "Opened new" if self.created else "Continuing"
        lines = [f"{verb} session {self.name} ({self.session_id}) in workspace {self.workspace.name}."]
        lines += [str(note) for note in self.notes]
        lines += [f"Needs you: {each.get('title') or each.get('question')}" for each in self.needs_you[:5]]
        if goal := self.recap.get("goal"):
            lines.append(f"Goal: {goal}")
        lines += [f"{each['kind']} #{each['seq']}: {each['text']}" for each in self.recap.get("latest", ())]
        lines += [
            f"Task {each['status']}: {each['title']} ({each['task_id']})" for each in self.recap.get("open_tasks", ())
        ]
        return "\n".join(lines)


class Recorded(Result):
    """The range of events that a call recorded."""

    session_id: str
    first_seq: int
    last_seq: int
    turn_id: str
    notes: Sequence[str] = ()


class SessionRow(Result):
    """One session of a list."""

    session_id: str
    name: str
    state: str
    workspace_id: str
    agent: str
    events: int
    last_active_at: int


class SessionList(Result):
    """Sessions, the last active first."""

    items: Sequence[SessionRow]
    next_cursor: str | None = None


class SessionEnded(Result):
    """A closed session."""

    session_id: str
    state: str
    version: int


class EventItem(Result):
    """One event; a large body lies in the blob store."""

    seq: int
    kind: str
    actor: str
    turn_id: str
    at: int
    body: Object | None = None
    blob: str | None = None
    size: int


class EventPage(Result):
    """Events in order; `next_after` goes on behind the last one, None at the end."""

    session_id: str
    items: Sequence[EventItem]
    next_after: int | None = None


class TaskRow(Result):
    """One task, with why it is blocked where it is."""

    task_id: str
    title: str
    status: str
    priority: str
    workspace_id: str
    version: int
    key: str | None = None
    after: Sequence[str] = ()
    blocked_reasons: Sequence[str] = ()
    attention: str | None = None


class TasksSaved(Result):
    """The saved tasks, and their ids in an order that the links allow."""

    tasks: Sequence[TaskRow]
    order: Sequence[str]
    dry_run: bool = False
    workspace: WorkspaceUsed


class TaskList(Result):
    """Tasks in the order in which they were made."""

    items: Sequence[TaskRow]
    next_cursor: str | None = None


class TaskFull(Result):
    """One task whole, with its attempts."""

    task: TaskRow
    body: str
    effects: str
    workspace_mode: str
    capabilities: Sequence[str]
    runs: Sequence[Object]


class Packet(Result):
    """A claimed run: all that a worker needs, and the lease to report it with."""

    run_id: str | None = None
    attempt: int | None = None
    lease: str | None = None
    lease_until: int | None = None
    renew_before: int | None = None
    packet: Object | None = None
    why: str | None = None
    retry_after_s: int | None = None
    notes: Sequence[str] = ()


class Reported(Result):
    """Where a run stands after a report."""

    run_id: str
    run_state: str
    proof: str
    lease_until: int | None = None
    notes: Sequence[str] = ()
    next: Sequence[Object] = ()


class DeskView(Result):
    """One item in detail, or a list of them."""

    items: Sequence[Object] = ()
    item: Object | None = None
    as_of_seq: int
    next_cursor: str | None = None
    changed: bool = True


def workspace_used(facts: WorkspaceFacts) -> WorkspaceUsed:
    """Return the part of workspace facts that an answer shows."""
    return WorkspaceUsed(id=facts.id, name=facts.name, source=facts.source, root=str(facts.root))


def recap_object(recap: Recap) -> Object:
    """Return a recap as JSON."""
    return {
        "goal": recap.goal,
        "latest": list(recap.latest),
        "files": list(recap.files),
        "open_tasks": list(recap.open_tasks),
        "events": recap.events,
    }


def session_row(session: Session) -> SessionRow:
    """Return the list row of a session."""
    return SessionRow(
        session_id=session.id,
        name=session.name,
        state=session.state,
        workspace_id=session.workspace_id,
        agent=session.agent_name,
        events=session.last_seq,
        last_active_at=session.last_active_at,
    )


def task_row(task: Task, *, key: str | None = None, after: Sequence[str] = (), reasons: Sequence[str] = ()) -> TaskRow:
    """Return the list row of a task."""
    return TaskRow(
        task_id=task.id,
        title=task.title,
        status=task.status,
        priority=task.priority,
        workspace_id=task.workspace_id,
        version=task.version,
        key=key,
        after=after,
        blocked_reasons=reasons,
        attention=task.attention_code or None,
    )


def run_object(run: Run) -> Object:
    """Return a run as JSON, without anything of its lease but the time."""
    return {
        "run_id": run.id,
        "state": run.state,
        "owner": run.owner_id,
        "attempt": run.attempt,
        "session_id": run.session_id,
        "worker": run.worker,
        "fence": run.fence,
        "lease_until": run.lease_until,
        "summary": run.summary,
        "result": run.result,
        "failure": run.failure_class,
        "proof": run.proof,
        "ended_at": run.ended_at,
    }
