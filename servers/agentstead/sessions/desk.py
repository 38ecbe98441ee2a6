"""The desk: one reading tool over everything of this server that has a handle."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from agentstead.kit import Call, operation
from agentstead.sessions import events, runs, sessions, tasks, working
from agentstead.sessions.recap import recap
from agentstead.sessions.recording import Cursor, Limit, WorkspaceName, needs_you
from agentstead.sessions.results import DeskView, Object, recap_object, run_object, session_row
from agentstead.state import Invalid, Reading

T = TypeVar("T")

Kind = Literal["needs_you", "session", "task", "run"]
View = Literal["brief", "full", "recap", "events", "runs"]

KINDS_OF_PREFIX: Mapping[str, Kind] = {"ses_": "session", "tsk_": "task", "run_": "run"}
EVENTS_SHOWN = 50

_RUNS = """
SELECT id
FROM runs
WHERE (:workspace = '' OR workspace_id = :workspace)
    AND (:state = '' OR state = :state)
    AND id > :after
ORDER BY id
LIMIT :most
"""


@operation("desk_view", action="sessions.desk_view", risk="read", title="Look at the desk", cli=False)
async def desk_view(
    call: Call,
    *,
    ref: Annotated[str | None, Field(description="One handle: ses_, tsk_ or run_.", max_length=40)] = None,
    kind: Annotated[Kind, Field(description="Or a list of this kind.")] = "needs_you",
    view: Annotated[View, Field(description="How much of one handle.")] = "brief",
    workspace: WorkspaceName = None,
    query: Annotated[str | None, Field(description="Part of name or title.", max_length=200)] = None,
    state: Annotated[str | None, Field(description="Only this state or status.", max_length=20)] = None,
    since: Annotated[int | None, Field(description="Wait for news behind this as_of_seq.", ge=0)] = None,
    wait_s: Annotated[float, Field(description="At most so long.", ge=0, le=25)] = 0,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> DeskView:
    """Look at sessions, tasks and runs, or at what needs a person. With since and wait_s the answer comes as soon as
    something changed."""
    changed = True
    if since is not None:
        kinds = ("sessions.*", "permissions.*", "policy.*")
        changed = bool(await call.home.state.wait(since, kinds=kinds, timeout_s=wait_s, most=1))
    if ref is not None:
        as_of, item = await call.read(_now, partial(_item, ref=ref, view=view))
        return DeskView(item=item, as_of_seq=as_of, changed=changed)
    place = "" if workspace is None else (await call.workspace(workspace)).id
    filters = {"list": "desk", "kind": kind, "workspace": place, "query": query, "state": state}
    basis = {} if cursor is None else call.home.state.cursors.open(cursor, filters)
    page = partial(_items, kind=kind, workspace=place, query=query or "", state=state or "", basis=basis, limit=limit)
    as_of, (items, last) = await call.read(_now, page)
    more = None if last is None else call.home.state.cursors.seal(last, filters)
    return DeskView(items=items, as_of_seq=as_of, next_cursor=more, changed=changed)


def _now(reading: Reading, look: Callable[[Reading], T]) -> tuple[int, T]:
    """Return what `look` sees, and the sequence that it is as of: one snapshot, one hop."""
    return reading.head().seq, look(reading)


def _item(reading: Reading, ref: str, view: View) -> Object:
    kind = KINDS_OF_PREFIX.get(ref[:4])
    if kind == "session":
        return _session(reading, ref, view)
    if kind == "task":
        return working.full(reading, ref).model_dump(mode="json", exclude_none=True)
    if kind == "run":
        return run_object(runs.get(reading, ref))
    raise Invalid(
        "desk.ref_invalid",
        f"{ref[:40]!r} is no handle of the desk.",
        remedy=f"Use an id that begins with {', '.join(KINDS_OF_PREFIX)}, or `kind` for a list.",
    )


def _session(reading: Reading, ref: str, view: View) -> Object:
    session = sessions.get(reading, ref)
    row: dict[str, Any] = session_row(session).model_dump(mode="json")
    if view == "events":
        after = max(0, session.last_seq - EVENTS_SHOWN)
        row["events"] = [_event(each) for each in events.page(reading, ref, after=after, most=EVENTS_SHOWN)]
    else:
        detail: Literal["brief", "full"] = "full" if view in ("full", "recap") else "brief"
        row["recap"] = recap_object(recap(reading, session, detail=detail))
    return row


def _event(row: events.EventRow) -> Object:
    return {"seq": row.seq, "kind": row.kind, "actor": row.actor, "at": row.at, "body": row.body, "blob": row.blob}


def _items(
    reading: Reading, kind: Kind, workspace: str, query: str, state: str, basis: Mapping[str, Any], limit: int
) -> tuple[Sequence[Object], dict[str, Any] | None]:
    """Return a page, and the basis of the next one where there is more."""
    if kind == "needs_you":
        return needs_you(reading, workspace)[:limit], None
    if kind == "session":
        return _sessions(reading, workspace, query, state, basis, limit)
    after = str(basis.get("id", ""))
    if kind == "task":
        found = tasks.list_tasks(reading, workspace=workspace, status=state, query=query, after=after, most=limit + 1)
        rows = [working.described(reading, each.id).model_dump(mode="json") for each in found[:limit]]
        return rows, {"id": found[limit - 1].id} if len(found) > limit else None
    ids = [row["id"] for row in reading.all(_RUNS, workspace=workspace, state=state, after=after, most=limit + 1)]
    return [run_object(runs.get(reading, each)) for each in ids[:limit]], {"id": ids[limit - 1]} if len(
        ids
    ) > limit else None


def _sessions(
    reading: Reading, workspace: str, query: str, state: str, basis: Mapping[str, Any], limit: int
) -> tuple[Sequence[Object], dict[str, Any] | None]:
    before = (int(basis["at"]), str(basis["id"])) if basis else sessions.LATEST
    found = sessions.list_sessions(
        reading, workspace=workspace, state=state, query=query, before=before, most=limit + 1
    )
    last = {"at": found[limit - 1].last_active_at, "id": found[limit - 1].id} if len(found) > limit else None
    return [session_row(each).model_dump(mode="json") for each in found[:limit]], last
