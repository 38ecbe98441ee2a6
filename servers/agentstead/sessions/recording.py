"""Operations on sessions: open, record, find, read, close."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agentstead.kit import Call, operation
from agentstead.policy import list_approvals
from agentstead.sessions import events as log
from agentstead.sessions import sessions
from agentstead.sessions.events import BODY_BYTES, INLINE_BYTES, Stored, TurnMark
from agentstead.sessions.machines import EventKind, SessionState
from agentstead.sessions.recap import Detail, recap
from agentstead.sessions.results import (
    EventItem,
    EventPage,
    Object,
    Recorded,
    SessionEnded,
    SessionList,
    SessionOpened,
    recap_object,
    session_row,
    workspace_used,
)
from agentstead.sessions.sessions import NAME_CHARS, Opened, Session, Wanted
from agentstead.sessions.tasks import list_tasks
from agentstead.state import Exhausted, Reading, Tx
from agentstead.state.ports import redact_value

SessionId = Annotated[str, Field(description="The session (ses_...).", max_length=40)]
WorkspaceName = Annotated[
    str | None, Field(description="Workspace id, name or absolute path; by default the caller's.", max_length=4096)
]
Cursor = Annotated[str | None, Field(description="next_cursor of the page before.", max_length=2000)]
Limit = Annotated[int, Field(description="Rows a page.", ge=1, le=100)]


class EventInput(BaseModel):
    """One event to record: text, or a JSON body."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: EventKind
    text: str | None = Field(default=None, max_length=BODY_BYTES)
    body: dict[str, Any] | None = None
    tool: str | None = Field(default=None, max_length=200)
    call_id: str | None = Field(default=None, max_length=200)
    path: str | None = Field(default=None, max_length=4096)


@operation(
    "session_open",
    action="sessions.session_open",
    risk="write",
    title="Open a session",
    idempotent=True,
    starts_work=True,
)
async def session_open(
    call: Call,
    *,
    workspace: WorkspaceName = None,
    name: Annotated[
        str | None, Field(description="Name in the workspace.", min_length=1, max_length=NAME_CHARS)
    ] = None,
    session_id: Annotated[str | None, Field(description="Go on in this session.", max_length=40)] = None,
    parent_id: Annotated[str | None, Field(description="Session that this one belongs to.", max_length=40)] = None,
    agent: Annotated[str | None, Field(description="Your agent's name.", max_length=64)] = None,
    reuse: Annotated[bool, Field(description="Go on in the session that has the name.")] = True,
    detail: Annotated[Detail, Field(description="How much recap.")] = "brief",
) -> SessionOpened:
    """Call first: opens a session, or goes on in one from any host, and says what was done and what needs you.
    Keep session_id for the other tools."""
    place = await call.workspace(workspace, session_id=session_id)
    wanted = Wanted(
        workspace_id=place.id,
        session_id=session_id or "",
        name=name or "",
        parent_id=parent_id or "",
        agent=agent or "",
        client=call.principal.text,
        reuse=reuse,
    )
    opened = await call.write(_open, wanted)
    told, waiting = await call.read(_told, opened.session.id, detail)
    return SessionOpened(
        session_id=opened.session.id,
        name=opened.session.name,
        created=opened.created,
        workspace=workspace_used(place),
        recap=told,
        needs_you=waiting,
        notes=[place.note] if place.note else [],
    )


@operation("session_record", action="sessions.session_record", risk="write", title="Record events", idempotent=False)
async def session_record(
    call: Call,
    *,
    session_id: SessionId,
    events: Annotated[
        Sequence[EventInput],
        Field(description="1 to 100 of {kind, text or body, tool, call_id, path}.", min_length=1, max_length=100),
    ],
    turn: Annotated[TurnMark, Field(description="begin starts a turn here, end closes it.")] = "none",
    close: Annotated[bool, Field(description="Close the session afterwards.")] = False,
) -> Recorded:
    """Record what was said and done, in order. What comes back is on disk and readable from any host."""
    rows = [await _store(call, event) for event in events]
    found = await call.write(log.append, session_id, rows, turn=turn)
    if close:
        await call.write(sessions.close_session, session_id, reason="recorded")
    return Recorded(session_id=session_id, first_seq=found.first_seq, last_seq=found.last_seq, turn_id=found.turn_id)


@operation("session_find", action="sessions.session_find", risk="read", title="Find sessions")
async def session_find(
    call: Call,
    *,
    workspace: Annotated[str | None, Field(description="Workspace id; by default all.", max_length=40)] = None,
    state: Annotated[SessionState | None, Field(description="Only this state.")] = None,
    query: Annotated[str | None, Field(description="Part of the name.", max_length=64)] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> SessionList:
    """List sessions of this home, the last active first."""
    filters = {"list": "session_find", "workspace": workspace, "state": state, "query": query}
    before = sessions.LATEST
    if cursor is not None:
        basis = call.home.state.cursors.open(cursor, filters)
        before = (int(basis["at"]), str(basis["id"]))
    found = await call.read(
        sessions.list_sessions,
        workspace=workspace or "",
        state=state or "",
        query=query or "",
        before=before,
        most=limit + 1,
    )
    more = None
    if len(found) > limit:
        last = found[limit - 1]
        more = call.home.state.cursors.seal({"at": last.last_active_at, "id": last.id}, filters)
    return SessionList(items=[session_row(each) for each in found[:limit]], next_cursor=more)


@operation("session_events", action="sessions.session_events", risk="read", title="Read events")
async def session_events(
    call: Call,
    *,
    session_id: SessionId,
    after: Annotated[int, Field(description="Only behind this sequence.", ge=0)] = 0,
    kinds: Annotated[Sequence[EventKind], Field(description="Only these kinds.")] = (),
    limit: Annotated[int, Field(description="Events a page.", ge=1, le=1000)] = 200,
) -> EventPage:
    """Read the events of a session as they were recorded, in order."""
    found = await call.read(_page, session_id, after, tuple(kinds), limit)
    items = [
        EventItem(
            seq=row.seq,
            kind=row.kind,
            actor=row.actor,
            turn_id=row.turn_id,
            at=row.at,
            body=row.body,
            blob=row.blob,
            size=row.size,
        )
        for row in found
    ]
    return EventPage(session_id=session_id, items=items, next_after=items[-1].seq if len(items) == limit else None)


@operation("session_close", action="sessions.session_close", risk="write", title="Close a session", idempotent=True)
async def session_close(
    call: Call,
    *,
    session_id: SessionId,
    reason: Annotated[str, Field(description="Why.", max_length=4096)] = "",
) -> SessionEnded:
    """Close a session: its grants end, its record stays and can be opened again."""
    closed = await call.write(sessions.close_session, session_id, reason=reason)
    return SessionEnded(session_id=closed.id, state=closed.state, version=closed.version)


def needs_you(reading: Reading, workspace: str) -> list[Object]:
    """Return what waits for a person: open approvals, and tasks that need attention."""
    approvals: list[Object] = [
        {
            "approval_id": each.id,
            "question": each.summary.splitlines()[0],
            "asked_by": each.principal,
            "expires_at": each.expires_at,
            "answer": f"agentstead answer {each.id}",
        }
        for each in list_approvals(reading, state="pending", workspace_id=workspace, most=10)
        if each.state_at(reading.now_us) == "pending"
    ]
    flagged = list_tasks(reading, workspace=workspace, status="needs_attention", most=10)
    return approvals + [{"task_id": each.id, "title": each.title, "attention": each.attention_code} for each in flagged]


def _open(tx: Tx, wanted: Wanted) -> Opened:
    return sessions.open_session(tx, wanted)


def _told(reading: Reading, session_id: str, detail: Detail) -> tuple[Object, list[Object]]:
    session: Session = sessions.get(reading, session_id)
    return recap_object(recap(reading, session, detail=detail)), needs_you(reading, session.workspace_id)


def _page(reading: Reading, session_id: str, after: int, kinds: tuple[str, ...], most: int) -> list[log.EventRow]:
    sessions.get(reading, session_id)
    return log.page(reading, session_id, after=after, kinds=kinds, most=most)


async def _store(call: Call, event: EventInput) -> Stored:
    """Redact and encode one event; put a large one into the blob store before its row exists."""
    extra = {"tool": event.tool, "call_id": event.call_id, "path": event.path, "text": event.text}
    body: Mapping[str, Any] = {
        **(event.body or {}),
        **{key: value for key, value in extra.items() if value is not None},
    }
    kind, data = log.encode(event.kind, redact_value(call.home.redactor, body))
    if len(data) > BODY_BYTES:
        raise Exhausted(
            "tool.invalid_arguments",
            f"One event has {len(data)} bytes; {BODY_BYTES} are the most.",
            remedy="Record a summary, and keep the rest in a file of the workspace.",
        )
    blob = await call.home.blobs.put(data) if len(data) > INLINE_BYTES else None
    return log.stored(kind, data, blob=blob)
