"""Names for snapshots: moved only on purpose, and what they name is kept while they are pinned."""

import re
from dataclasses import dataclass
from typing import Final

from agentstead.state import Invalid, Reading, Tx, check_version

_NAME: Final = re.compile(r"^[a-z0-9][a-z0-9._/-]{0,63}$")
_FIND: Final = "SELECT name, snapshot_id, pinned, version FROM labels WHERE workspace_id = :workspace AND name = :name"
_LIST: Final = """
SELECT name, snapshot_id, pinned, version
FROM labels
WHERE workspace_id = :workspace
ORDER BY name
"""
_SET: Final = """
INSERT INTO labels (workspace_id, name, snapshot_id, pinned)
VALUES (:workspace, :name, :snapshot, :pinned)
ON CONFLICT (workspace_id, name) DO UPDATE
SET snapshot_id = excluded.snapshot_id, pinned = excluded.pinned, version = labels.version + 1
"""


@dataclass(frozen=True, slots=True)
class Label:
    """A name in a workspace, and the snapshot that it stands for."""

    name: str
    snapshot_id: str
    pinned: bool
    version: int


def find(reading: Reading, workspace_id: str, name: str) -> Label | None:
    """Return the label of a name."""
    row = reading.one(_FIND, workspace=workspace_id, name=name)
    return None if row is None else Label(row["name"], row["snapshot_id"], bool(row["pinned"]), row["version"])


def listed(reading: Reading, workspace_id: str) -> list[Label]:
    """Return the labels of a workspace by name."""
    rows = reading.all(_LIST, workspace=workspace_id)
    return [Label(row["name"], row["snapshot_id"], bool(row["pinned"]), row["version"]) for row in rows]


def put(
    tx: Tx,
    workspace_id: str,
    name: str,
    snapshot_id: str,
    *,
    pinned: bool = False,
    expected_version: int | None = None,
) -> Label:
    """Let a name stand for a snapshot; raise Conflict `version.conflict` where it moved since it was read."""
    if not _NAME.match(name):
        raise Invalid(
            "ref.not_found",
            f"{name[:80]!r} cannot be a label",
            remedy="Use up to 64 of a-z, 0-9, '.', '_', '/', '-', beginning with a letter or digit.",
        )
    known = find(tx, workspace_id, name)
    check_version(known.version if known else 0, expected_version, noun="label", ref=name)
    tx.execute(_SET, workspace=workspace_id, name=name, snapshot=snapshot_id, pinned=int(pinned))
    was = known.snapshot_id if known else ""
    body = {"name": name, "was": was, "pinned": pinned}
    tx.journal("workspace.label.moved", subject=snapshot_id, workspace=workspace_id, body=body)
    moved = find(tx, workspace_id, name)
    assert moved is not None
    return moved
