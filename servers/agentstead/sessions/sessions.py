"""Sessions as rows: opened, found again, closed; what another host needs to go on."""

import sqlite3
from dataclasses import dataclass

from agentstead.policy import session_ended
from agentstead.sessions.machines import SESSION, step
from agentstead.state import Conflict, NotFound, Reading, RefFacts, Tx, refuse_quarantined

NAME_CHARS = 64

_COLUMNS = (
    "id, workspace_id, name, kind, state, agent_name, parent_id, root_id, depth, last_seq, host_client, created_at, "
    "last_active_at, version"
)
_BY_ID = f"SELECT {_COLUMNS} FROM sessions WHERE id = :id"
_BY_NAME = f"""
SELECT {_COLUMNS}
FROM sessions
WHERE workspace_id = :workspace
    AND name = :name
    AND state <> 'archived'
"""
_LIST = f"""
SELECT {_COLUMNS}
FROM sessions
WHERE (:workspace = '' OR workspace_id = :workspace)
    AND (:state = '' OR state = :state)
    AND (:query = '' OR name LIKE :like ESCAPE '\\')
    AND (last_active_at, id) < (:before_at, :before_id)
ORDER BY last_active_at DESC, id DESC
LIMIT :most
"""
_INSERT = """
INSERT INTO sessions (
    id, workspace_id, name, kind, state, driver, agent_name, agent_digest, parent_id, root_id, depth, labels, epoch,
    last_seq, seen_seq, settled_seq, ttl_until, spawn_policy, host_client, external_ref, created_at, last_active_at,
    version
)
VALUES (
    :id, :workspace, :name, 'recorded', 'open', 'none', :agent, '', :parent, :root, :depth, '[]', 0,
    0, 0, 0, NULL, '{}', :client, NULL, :now, :now, 1
)
"""
_SET_STATE = """
UPDATE sessions
SET state = :state,
    last_active_at = :now,
    version = version + 1
WHERE id = :id
"""
_TOUCH = """
UPDATE sessions
SET last_active_at = :now,
    host_client = CASE WHEN :client = '' THEN host_client ELSE :client END
WHERE id = :id
"""

LATEST = (2**62, "~")


@dataclass(frozen=True, slots=True)
class Session:
    """One durable conversation record."""

    id: str
    workspace_id: str
    name: str
    kind: str
    state: str
    agent_name: str
    parent_id: str
    root_id: str
    depth: int
    last_seq: int
    host_client: str
    created_at: int
    last_active_at: int
    version: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which session a caller wants: by id, or by name in a workspace (an empty name makes a fresh one)."""

    workspace_id: str
    session_id: str = ""
    name: str = ""
    parent_id: str = ""
    agent: str = ""
    client: str = ""
    reuse: bool = True


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that is open now, and whether it is new."""

    session: Session
    created: bool


def get(reading: Reading, session_id: str) -> Session:
    """Return a session; raises `NotFound` with `session.not_found`."""
    refuse_quarantined(reading, "sessions", session_id)
    row = reading.one(_BY_ID, id=session_id)
    if row is None:
        raise NotFound(
            "session.not_found",
            f"No session {session_id[:40]!r} is known.",
            remedy="session_open makes one; desk_view(kind='session') lists those that exist.",
        )
    return _session(row)


def get_open(reading: Reading, session_id: str) -> Session:
    """Return a session that takes work; raises `Conflict` for a closed or archived one."""
    found = get(reading, session_id)
    if found.state == "archived":
        raise Conflict("session.archived", f"Session {found.name} is archived.", remedy="Open another session.")
    if found.state == "closed":
        raise Conflict(
            "session.transition_refused",
            f"Session {found.name} is closed.",
            remedy=f"session_open(session_id='{found.id}') opens it again.",
            details={"legal": ["open", "archive"]},
        )
    return found


def open_session(tx: Tx, wanted: Wanted) -> Opened:
    """Open the wanted session again, or make it."""
    known = get(tx, wanted.session_id) if wanted.session_id else _named(tx, wanted)
    if known is None:
        return Opened(_make(tx, wanted), created=True)
    if known.state == "archived":
        raise Conflict("session.archived", f"Session {known.name} is archived.", remedy="Open another session.")
    if known.state == "closed":
        _move(tx, known, "open")
    tx.execute(_TOUCH, id=known.id, now=tx.now_us, client=wanted.client)
    return Opened(get(tx, known.id), created=False)


def close_session(tx: Tx, session_id: str, *, reason: str) -> Session:
    """Close a session: what was bound to it in the policy ends with it. A closed one stays closed."""
    known = get(tx, session_id)
    if known.state == "closed":
        return known
    _move(tx, known, "close", reason=reason)
    session_ended(tx, session_id)
    return get(tx, session_id)


def list_sessions(
    reading: Reading,
    *,
    workspace: str = "",
    state: str = "",
    query: str = "",
    before: tuple[int, str] = LATEST,
    most: int = 20,
) -> list[Session]:
    """Return sessions, the last active first, from behind `before` (last_active_at, id)."""
    escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = reading.all(
        _LIST,
        workspace=workspace,
        state=state,
        query=query,
        like=f"%{escaped}%",
        before_at=before[0],
        before_id=before[1],
        most=most,
    )
    return [_session(row) for row in rows]


def look_session(reading: Reading, ref: str) -> RefFacts | None:
    """Answer `state.refs` for `ses_` ids."""
    row = reading.one(_BY_ID, id=ref)
    if row is None:
        return None
    facts = {"name": row["name"], "root_id": row["root_id"], "agent": row["agent_name"], "client": row["host_client"]}
    return RefFacts(exists=True, workspace=row["workspace_id"], state=row["state"], facts=facts)


def _named(tx: Tx, wanted: Wanted) -> Session | None:
    if not wanted.name:
        return None
    row = tx.one(_BY_NAME, workspace=wanted.workspace_id, name=wanted.name)
    if row is not None and not wanted.reuse:
        raise Conflict(
            "session.name_taken",
            f"Session {wanted.name!r} exists in this workspace ({row['id']}).",
            remedy="Choose another name, or pass reuse=true to go on in it.",
        )
    return None if row is None else _session(row)


def _make(tx: Tx, wanted: Wanted) -> Session:
    session_id = tx.new_id("ses_")
    parent = get(tx, wanted.parent_id) if wanted.parent_id else None
    tx.execute(
        _INSERT,
        id=session_id,
        workspace=wanted.workspace_id,
        name=tx.redact(wanted.name) or f"session-{session_id[-6:].lower()}",
        agent=tx.redact(wanted.agent),
        parent=wanted.parent_id,
        root=parent.root_id if parent else session_id,
        depth=parent.depth + 1 if parent else 0,
        client=wanted.client,
        now=tx.now_us,
    )
    made = get(tx, session_id)
    body = {"name": made.name, "agent": made.agent_name, "parent_id": made.parent_id}
    tx.journal("sessions.session.opened", subject=session_id, workspace=made.workspace_id, body=body)
    return made


def _move(tx: Tx, session: Session, event: str, *, reason: str = "") -> None:
    state = step(SESSION, "session", session.id, state=session.state, event=event)
    tx.execute(_SET_STATE, id=session.id, state=state, now=tx.now_us)
    kind = {"open": "sessions.session.opened", "close": "sessions.session.closed"}[event]
    body = {"name": session.name, "reason": reason}
    tx.journal(kind, subject=session.id, workspace=session.workspace_id, body=body)


def _session(row: sqlite3.Row) -> Session:
    return Session(**dict(row))
