"""Grants: bounded permissions that a person gave. Each expires, none beats a deny, uses are spent with the effect."""

import json
import sqlite3
from dataclasses import dataclass

from agentstead.policy.machines import Effect, MatchKind, Scope
from agentstead.state import NotFound, Reading, Tx

_COLUMNS = """id, effect, scope, match_kind, pattern, session_id, workspace_id, activation_id, actor, taint, uses_left,
    expires_at, approval_id, parent_grant_id, created_by, policy_revision, created_at, last_used_at, revoked_at,
    revoked_by"""

_MATCHING = f"""
SELECT {_COLUMNS}
FROM grants
WHERE pattern IN (:input, :exact, :anywhere)
    AND (:spent OR revoked_at IS NULL)
    AND (:spent OR expires_at > :now)
    AND (:spent OR uses_left IS NULL OR uses_left > 0)
    AND (:spent OR actor = '' OR actor = :principal)
    AND (:spent OR session_id = :session_id OR (session_id = '' AND scope <> 'once'))
    AND (
        :spent
        OR workspace_id = ''
        OR workspace_id = :workspace_id
        OR (scope = 'workspace' AND EXISTS (
            SELECT 1
            FROM workspaces AS mine
            JOIN workspaces AS theirs ON theirs.repository = mine.repository
            WHERE mine.id = :workspace_id
                AND mine.repository <> ''
                AND theirs.id = grants.workspace_id
        ))
    )
ORDER BY
    CASE effect WHEN 'deny' THEN 0 ELSE 1 END,
    CASE scope WHEN 'once' THEN 1 ELSE 0 END,
    created_at DESC,
    id
LIMIT 1
"""
_BY_ID = f"SELECT {_COLUMNS} FROM grants WHERE id = :id"
_LIST = f"""
SELECT {_COLUMNS}
FROM grants
WHERE revoked_at IS NULL
    AND expires_at > :now
    AND (uses_left IS NULL OR uses_left > 0)
    AND (:session_id = '' OR session_id = :session_id)
    AND (:workspace_id = '' OR workspace_id = :workspace_id)
ORDER BY created_at DESC, id
LIMIT :most
"""
_INSERT = """
INSERT INTO grants
    (id, effect, scope, match_kind, pattern, session_id, workspace_id, activation_id, actor, taint, uses_left,
    expires_at, approval_id, parent_grant_id, created_by, policy_revision, created_at, last_used_at, revoked_at,
    revoked_by)
VALUES
    (:id, :effect, :scope, :match_kind, :pattern, :session_id, :workspace_id, '', :actor, '[]', :uses_left,
    :expires_at, :approval_id, '', :created_by, :policy_revision, :now, NULL, NULL, '')
"""
_SPEND = """
UPDATE grants
SET uses_left = uses_left - 1,
    last_used_at = :now
WHERE id = :id
    AND revoked_at IS NULL
    AND expires_at > :now
    AND (uses_left IS NULL OR uses_left > 0)
"""
_REVOKE = """
UPDATE grants
SET revoked_at = :now,
    revoked_by = :by
WHERE id = :id
    AND revoked_at IS NULL
"""
_OF_SESSION = (
    "SELECT id, workspace_id FROM grants WHERE session_id = :owner AND session_id <> '' AND revoked_at IS NULL"
)
_OF_ACTIVATION = """
SELECT id, workspace_id
FROM grants
WHERE activation_id = :owner
    AND activation_id <> ''
    AND revoked_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class MatchKeys:
    """What a call is compared by: this very input here, this action here, this action in any place."""

    input: str
    exact: str
    anywhere: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Who would use a grant, and where."""

    principal: str
    session_id: str = ""
    workspace_id: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """One stored grant; `uses_left` None means that only time bounds it."""

    id: str
    effect: Effect
    scope: Scope
    match_kind: MatchKind
    pattern: str
    session_id: str
    workspace_id: str
    activation_id: str
    actor: str
    taint: tuple[str, ...]
    uses_left: int | None
    expires_at: int
    approval_id: str
    parent_grant_id: str
    created_by: str
    policy_revision: str
    created_at: int
    last_used_at: int | None
    revoked_at: int | None
    revoked_by: str


@dataclass(frozen=True, slots=True)
class NewGrant:
    """The terms of a grant that an answer makes."""

    effect: Effect
    scope: Scope
    match_kind: MatchKind
    pattern: str
    expires_at: int
    approval_id: str
    policy_revision: str
    session_id: str = ""
    workspace_id: str = ""
    actor: str = ""
    uses_left: int | None = None


def find_grant(reading: Reading, keys: MatchKeys, holder: Holder) -> Grant | None:
    """Return the grant that answers a call now: a deny before any allow, a lasting one before one that is used up."""
    return _grant(_matching(reading, keys, holder, spent=False))


def why_no_grant(reading: Reading, keys: MatchKeys, holder: Holder) -> str:
    """Return the reason code of a call that no grant answers: the nearest miss, or `grant.none`."""
    grant = _grant(_matching(reading, keys, holder, spent=True))
    if grant is None:
        return "grant.none"
    if grant.revoked_at is not None:
        return "grant.revoked"
    if grant.uses_left == 0:
        return "grant.exhausted"
    if grant.expires_at <= reading.now_us:
        return "grant.expired"
    if grant.workspace_id not in ("", holder.workspace_id):
        return "grant.other_workspace"
    return "grant.other_session"


def get_grant(reading: Reading, grant_id: str) -> Grant:
    """Return one grant; raises `NotFound` with `grant.not_found`."""
    found = _grant(reading.one(_BY_ID, id=grant_id))
    if found is None:
        raise NotFound("grant.not_found", f"No grant {grant_id[:40]!r} exists.", remedy="List them with grant_list.")
    return found


def list_grants(reading: Reading, *, session_id: str = "", workspace_id: str = "", most: int = 50) -> list[Grant]:
    """Return the grants in force, newest first; '' takes those of every session or workspace."""
    rows = reading.all(_LIST, now=reading.now_us, session_id=session_id, workspace_id=workspace_id, most=most)
    return [grant for row in rows if (grant := _grant(row)) is not None]


def create_grant(tx: Tx, new: NewGrant) -> str:
    """Store a grant that the acting principal gives; return its id."""
    grant_id = tx.new_id("grn_")
    row = {name: getattr(new, name) for name in NewGrant.__slots__}
    tx.execute(_INSERT, id=grant_id, created_by=tx.principal, now=tx.now_us, **row)
    body = {name: row[name] for name in ("effect", "scope", "match_kind", "expires_at", "uses_left", "approval_id")}
    tx.journal("permissions.grant.created", subject=grant_id, workspace=new.workspace_id, body=body)
    return grant_id


def spend_grant(tx: Tx, grant_id: str) -> bool:
    """Use a grant once in this transaction; false where it was revoked, expired or used up meanwhile."""
    if not tx.execute(_SPEND, id=grant_id, now=tx.now_us):
        return False
    grant = get_grant(tx, grant_id)
    body = {"uses_left": grant.uses_left, "approval_id": grant.approval_id}
    tx.journal("permissions.grant.spent", subject=grant_id, workspace=grant.workspace_id, body=body)
    return True


def revoke_grant(tx: Tx, grant_id: str, *, reason: str = "") -> Grant:
    """End a grant now; raises `NotFound` (`grant.not_found`), and nothing happens to one that is revoked already."""
    grant = get_grant(tx, grant_id)
    if grant.revoked_at is None:
        _revoke(tx, grant_id, grant.workspace_id, reason)
    return get_grant(tx, grant_id)


def grants_end(tx: Tx, owner: str, reason: str) -> int:
    """End every grant of a session (`ses_`) or an activation (`act_`); return how many there were."""
    rows = tx.all(_OF_ACTIVATION if owner.startswith("act_") else _OF_SESSION, owner=owner)
    for row in rows:
        _revoke(tx, row["id"], row["workspace_id"], reason)
    return len(rows)


def _revoke(tx: Tx, grant_id: str, workspace_id: str, reason: str) -> None:
    tx.execute(_REVOKE, id=grant_id, by=tx.principal, now=tx.now_us)
    tx.journal("permissions.grant.revoked", subject=grant_id, workspace=workspace_id, body={"reason": reason})


def _matching(reading: Reading, keys: MatchKeys, holder: Holder, *, spent: bool) -> sqlite3.Row | None:
    return reading.one(
        _MATCHING,
        input=keys.input,
        exact=keys.exact,
        anywhere=keys.anywhere,
        principal=holder.principal,
        session_id=holder.session_id,
        workspace_id=holder.workspace_id,
        now=reading.now_us,
        spent=spent,
    )


def _grant(row: sqlite3.Row | None) -> Grant | None:
    if row is None:
        return None
    fields = dict(row)
    fields["taint"] = tuple(json.loads(row["taint"]))
    return Grant(**fields)
