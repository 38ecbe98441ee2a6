"""Activations as rows: begun once for a content, used while they live, ended with what they rest on."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from agentstead.skills.store import HeldFile, HeldTree
from agentstead.state import Conflict, Exhausted, NotFound, Reading, RefFacts, Tx

MOST_LIVE: Final = 64

EndReason = Literal[
    "deactivated", "session_closed", "expired", "not_served", "content_changed", "revoked", "extension_disabled"
]

_COLUMNS = "id, session_id, workspace_id, principal, origin_key, qualified_name, tree_id, state, end_reason, expires_at"
_BY_ID = f"SELECT {_COLUMNS} FROM activations WHERE id = :id"
_SAME = f"""
SELECT {_COLUMNS}
FROM activations
WHERE state = 'active'
    AND session_id = :session_id
    AND (session_id <> '' OR principal = :principal)
    AND workspace_id = :workspace_id
    AND origin_key = :origin_key
    AND tree_id = :tree_id
"""
_LIVE = """
SELECT COUNT(*)
FROM activations
WHERE state = 'active'
    AND session_id = :session_id
    AND (session_id <> '' OR principal = :principal)
"""
_LIVE_TREES = """
SELECT origin_key, tree_id
FROM activations
WHERE state = 'active'
    AND expires_at > :now
    AND (principal = :principal OR session_id = :session_id AND session_id <> '')
"""
_OVER = f"SELECT {_COLUMNS} FROM activations WHERE state = 'active' AND expires_at <= :now"
_OF_SESSION = f"SELECT {_COLUMNS} FROM activations WHERE state = 'active' AND session_id = :session_id"
_SESSIONS = "SELECT DISTINCT session_id FROM activations WHERE state = 'active' AND session_id <> ''"
_BEGIN = """
INSERT INTO activations (
    id, session_id, workspace_id, principal, origin_key, qualified_name, tree_id,
    state, end_reason, grants, created_at, expires_at, ended_at, version
)
VALUES (
    :id, :session_id, :workspace_id, :principal, :origin_key, :qualified_name, :tree_id,
    'active', '', '[]', :now, :expires_at, NULL, 1
)
"""
_END = """
UPDATE activations
SET state = 'ended', end_reason = :reason, ended_at = :now, version = version + 1
WHERE id = :id
    AND state = 'active'
"""
_KEEP_FILE = """
INSERT INTO tree_files (tree_id, path, size, blob_id, exec, media_type)
VALUES (:tree_id, :path, :size, :blob_id, :exec, :media_type)
ON CONFLICT (tree_id, path) DO NOTHING
"""
_FILES = "SELECT path, size, blob_id, exec FROM tree_files WHERE tree_id = :tree_id ORDER BY path"
_DROP_FILES = """
DELETE FROM tree_files
WHERE tree_id = :tree_id
    AND NOT EXISTS (SELECT 1 FROM activations WHERE state = 'active' AND tree_id = :tree_id)
"""


@dataclass(frozen=True, slots=True)
class Activation:
    """A skill in use: of one content, in one session or by one caller."""

    id: str
    session_id: str
    workspace_id: str
    principal: str
    origin_key: str
    qualified_name: str
    tree_id: str
    state: str
    end_reason: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The outcome of beginning one: it may have been there already."""

    activation: Activation
    already_active: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """What is to be activated: which skill, for whom, until when (microseconds UTC)."""

    origin_key: str
    qualified_name: str
    workspace_id: str
    session_id: str
    expires_at: int


def begin(tx: Tx, terms: Terms, tree: HeldTree) -> Begun:
    """Begin an activation of ``tree`` and hold its list of files; the same one that is live already is returned.

    Raises Exhausted (``activation.limit``).
    """
    end_over(tx)
    same = {"session_id": terms.session_id, "principal": tx.principal, "workspace_id": terms.workspace_id}
    row = tx.one(_SAME, **same, origin_key=terms.origin_key, tree_id=tree.tree_id)
    if row is not None:
        return Begun(_activation(row), already_active=True)
    live = tx.value(_LIVE, session_id=terms.session_id, principal=tx.principal)
    if live >= MOST_LIVE:
        raise Exhausted(
            "activation.limit",
            f"{live} skills are active here.",
            remedy="End one that is no longer needed: skill_deactivate(activation_id).",
        )
    _hold(tx, tree)
    activation_id = tx.new_id("act_")
    fields = {"origin_key": terms.origin_key, "qualified_name": terms.qualified_name, "tree_id": tree.tree_id}
    tx.execute(_BEGIN, id=activation_id, **same, **fields, expires_at=terms.expires_at, now=tx.now_us)
    body = {"skill": terms.qualified_name, "tree_id": tree.tree_id, "session_id": terms.session_id}
    tx.journal("skills.activation.started", subject=activation_id, workspace=terms.workspace_id, body=body)
    return Begun(find(tx, activation_id), already_active=False)


def find(reading: Reading, activation_id: str) -> Activation:
    """Return an activation in any state; raises NotFound (``activation.not_found``)."""
    row = reading.one(_BY_ID, id=activation_id)
    if row is None:
        raise NotFound(
            "activation.not_found",
            f"No activation {activation_id[:40]!r} is known.",
            remedy="Use the activation_id that skill_activate returned.",
        )
    return _activation(row)


def files_of(reading: Reading, tree_id: str) -> tuple[HeldFile, ...]:
    """Return the files that an activation of this content holds."""
    rows = reading.all(_FILES, tree_id=tree_id)
    return tuple(HeldFile(row["path"], row["size"], row["blob_id"], bool(row["exec"])) for row in rows)


def live_trees(reading: Reading, principal: str, *, session_id: str = "") -> frozenset[tuple[str, str]]:
    """Return (origin key, tree id) of what is active for a caller or in a session."""
    rows = reading.all(_LIVE_TREES, principal=principal, session_id=session_id, now=reading.now_us)
    return frozenset((row["origin_key"], row["tree_id"]) for row in rows)


def end(tx: Tx, activation_id: str, reason: EndReason) -> Activation:
    """End an activation; one that ended before stays as it ended. Raises NotFound."""
    found = find(tx, activation_id)
    if tx.execute(_END, id=activation_id, reason=reason, now=tx.now_us):
        tx.execute(_DROP_FILES, tree_id=found.tree_id)
        body = {"skill": found.qualified_name, "tree_id": found.tree_id, "reason": reason}
        tx.journal("skills.activation.ended", subject=activation_id, workspace=found.workspace_id, body=body)
    return find(tx, activation_id)


def end_over(tx: Tx) -> int:
    """End every activation whose time is over; return how many."""
    return _end_all(tx, tx.all(_OVER, now=tx.now_us), "expired")


def end_of_session(tx: Tx, session_id: str) -> int:
    """End every activation of a session; return how many."""
    return _end_all(tx, tx.all(_OF_SESSION, session_id=session_id), "session_closed")


def sessions_in_use(reading: Reading) -> list[str]:
    """Return the sessions that have live activations."""
    return [row["session_id"] for row in reading.all(_SESSIONS)]


def refuse_ended(activation: Activation) -> None:
    """Raise Conflict (``activation.ended``) for one that ended."""
    if activation.state == "active":
        return
    reason = activation.end_reason or activation.state
    raise Conflict(
        "activation.ended",
        f"Activation {activation.id} of {activation.qualified_name} ended: {reason}.",
        remedy=f"Activate it again: skill_activate(name={activation.qualified_name!r}).",
        details={"reason": reason},
    )


def look(reading: Reading, ref: str) -> RefFacts | None:
    """Say to other packages what an activation id stands for."""
    row = reading.one(_BY_ID, id=ref)
    if row is None:
        return None
    facts = {"skill": row["qualified_name"], "tree_id": row["tree_id"], "session_id": row["session_id"]}
    return RefFacts(exists=True, workspace=row["workspace_id"], state=row["state"], facts=facts)


def _hold(tx: Tx, tree: HeldTree) -> None:
    for file in tree.files:
        fields = {"path": file.path, "size": file.size, "blob_id": file.blob_id, "media_type": file.media_type}
        tx.execute(_KEEP_FILE, tree_id=tree.tree_id, exec=int(file.executable), **fields)


def _end_all(tx: Tx, rows: Iterable[sqlite3.Row], reason: EndReason) -> int:
    ended = [end(tx, row["id"], reason) for row in rows]
    return len(ended)


def _activation(row: sqlite3.Row) -> Activation:
    return Activation(**dict(row))
