"""Snapshots as rows: what a place held, when and why, and which snapshots each came from."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agentstead.state import Reading, RefFacts, Tx
from agentstead.workspace.classes import POLICY_BODY, POLICY_ID
from agentstead.workspace.walk import Walked

SnapshotReason = Literal[
    "asked", "before", "after", "turn", "watch", "merge", "import", "write", "barrier", "safety"
]  # fmt: skip
EdgeKind = Literal[
    "edit", "fork", "write", "check", "restore", "undo", "merge", "resolve", "replay", "import", "promote"
]  # fmt: skip

LIVE: Final = "live"

_COLUMNS: Final = """id, workspace_id, place, tree, policy_id, omissions, completeness, reason, principal, session_id,
operation_id, files, bytes, new_bytes, created_at"""
_BY_ID: Final = f"SELECT {_COLUMNS} FROM snapshots WHERE id = :id"
_LATEST: Final = f"""
SELECT {_COLUMNS}
FROM snapshots
WHERE workspace_id = :workspace AND place = :place
ORDER BY id DESC
LIMIT 1
"""
_OF_PLACE: Final = f"""
SELECT {_COLUMNS}
FROM snapshots
WHERE workspace_id = :workspace
    AND (:place = '' OR place = :place)
    AND (:before = '' OR id < :before)
ORDER BY id DESC
LIMIT :most
"""
_OF_TREE: Final = f"""
SELECT {_COLUMNS}
FROM snapshots
WHERE workspace_id = :workspace
    AND tree = :tree
ORDER BY id DESC
LIMIT 1
"""
_TREES_OF_PLACE: Final = """
SELECT DISTINCT tree
FROM snapshots
WHERE workspace_id = :workspace AND place = :place AND id < :before
"""
_INSERT: Final = """
INSERT INTO snapshots (id, workspace_id, place, tree, policy_id, omissions, completeness, reason, principal,
    session_id, operation_id, files, bytes, new_bytes, created_at)
VALUES (:id, :workspace, :place, :tree, :policy_id, :omissions, :completeness, :reason, :principal,
    :session_id, :operation_id, :files, :bytes, :new_bytes, :now)
"""
_EDGE: Final = "INSERT INTO edges (child, ordinal, parent, kind) VALUES (:child, :ordinal, :parent, :kind)"
_PARENTS: Final = "SELECT parent, kind FROM edges WHERE child = :child ORDER BY ordinal"
_POLICY: Final = "INSERT INTO path_policies (id, body) VALUES (:id, :body) ON CONFLICT (id) DO NOTHING"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One recorded tree of a place; `bytes` counts what the tree holds, `new_bytes` what was stored for it."""

    id: str
    workspace_id: str
    place: str
    tree: str
    policy_id: str
    omissions: str
    completeness: str
    reason: str
    principal: str
    session_id: str
    operation_id: str
    files: int
    bytes: int
    new_bytes: int
    created_at: int


@dataclass(frozen=True, slots=True)
class Why:
    """Why a snapshot is taken, and what it comes from besides the last one of its place."""

    reason: SnapshotReason
    edge: EdgeKind = "edit"
    operation_id: str = ""
    session_id: str = ""
    also_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """A snapshot, and whether it is new: where nothing changed, the last one of the place is returned."""

    snapshot: Snapshot
    created: bool


def record(tx: Tx, workspace_id: str, place: str, walked: Walked, omissions: str, why: Why) -> Recorded:
    """Record a walked tree; its objects must be durable already."""
    last = latest(tx, workspace_id, place)
    facts = (walked.tree, omissions, walked.completeness, POLICY_ID)
    if last is not None and (last.tree, last.omissions, last.completeness, last.policy_id) == facts:
        return Recorded(last, created=False)
    snapshot_id = tx.new_id("snp_")
    tx.execute(_POLICY, id=POLICY_ID, body=POLICY_BODY)
    tx.execute(
        _INSERT,
        id=snapshot_id,
        workspace=workspace_id,
        place=place,
        tree=walked.tree,
        policy_id=POLICY_ID,
        omissions=omissions,
        completeness=walked.completeness,
        reason=why.reason,
        principal=tx.principal,
        session_id=why.session_id,
        operation_id=why.operation_id,
        files=walked.files,
        bytes=walked.size_bytes,
        new_bytes=walked.new_bytes,
        now=tx.now_us,
    )
    parents = [*([last.id] if last is not None else []), *why.also_from]
    for ordinal, parent in enumerate(dict.fromkeys(parents)):
        tx.execute(_EDGE, child=snapshot_id, ordinal=ordinal, parent=parent, kind=why.edge)
    body = {"place": place, "tree": walked.tree, "reason": why.reason, "completeness": walked.completeness}
    tx.journal("workspace.snapshot.taken", subject=snapshot_id, workspace=workspace_id, body=body)
    taken = find(tx, snapshot_id)
    assert taken is not None
    return Recorded(taken, created=True)


def find(reading: Reading, snapshot_id: str) -> Snapshot | None:
    """Return a snapshot by its id."""
    return _snapshot(reading.one(_BY_ID, id=snapshot_id))


def latest(reading: Reading, workspace_id: str, place: str) -> Snapshot | None:
    """Return the newest snapshot of a place."""
    return _snapshot(reading.one(_LATEST, workspace=workspace_id, place=place))


def listed(reading: Reading, workspace_id: str, *, place: str = "", before: str = "", most: int = 50) -> list[Snapshot]:
    """Return snapshots of a workspace newest first; `before` is the id to go on behind."""
    rows = reading.all(_OF_PLACE, workspace=workspace_id, place=place, before=before, most=most)
    return [Snapshot(*row) for row in rows]


def of_tree(reading: Reading, workspace_id: str, snapshot_id: str, tree: str) -> Snapshot | None:
    """Return a snapshot of a workspace: the one of the id, or else the newest that holds the tree."""
    return find(reading, snapshot_id) or _snapshot(reading.one(_OF_TREE, workspace=workspace_id, tree=tree))


def trees_before(reading: Reading, workspace_id: str, place: str, snapshot_id: str) -> list[str]:
    """Return the trees that a place had in snapshots older than one."""
    rows = reading.all(_TREES_OF_PLACE, workspace=workspace_id, place=place, before=snapshot_id)
    return [row["tree"] for row in rows]


def parents(reading: Reading, snapshot_id: str) -> Sequence[tuple[str, str]]:
    """Return what a snapshot came from: (snapshot id, kind of edge), the first parent first."""
    return [(row["parent"], row["kind"]) for row in reading.all(_PARENTS, child=snapshot_id)]


def look_snapshot(reading: Reading, ref: str) -> RefFacts | None:
    """Return what other servers may know of a snapshot."""
    found = find(reading, ref)
    if found is None:
        return None
    return RefFacts(True, found.workspace_id, found.completeness, {"tree": found.tree, "place": found.place})


def _snapshot(row: sqlite3.Row | None) -> Snapshot | None:
    return None if row is None else Snapshot(*row)
