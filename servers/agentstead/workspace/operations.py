"""Operations and their steps as rows: what was begun, how far it got, and how it ended."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agentstead.blobs import TreeEntry
from agentstead.state import Reading, RefFacts, Tx
from agentstead.workspace.apply import Outcome
from agentstead.workspace.exchange import Cas
from agentstead.workspace.machines import OPERATION
from agentstead.workspace.paths import parts
from agentstead.workspace.steps import Step

OperationKind = Literal["write", "restore", "undo", "promote"]

_COLUMNS: Final = """id, kind, workspace_id, place, plan, before_tree, after_tree, inverse_of, state, progress, error,
cas, principal, version, started_at, ended_at"""
_BY_ID: Final = f"SELECT {_COLUMNS} FROM operations WHERE id = :id"
_OPEN: Final = f"""
SELECT {_COLUMNS}
FROM operations
WHERE state IN ('queued', 'running', 'parked', 'recovering')
    AND (:workspace = '' OR (workspace_id = :workspace AND place = :place))
ORDER BY id
"""
_LIST: Final = f"""
SELECT {_COLUMNS}
FROM operations
WHERE workspace_id = :workspace
    AND (:before = '' OR id < :before)
ORDER BY id DESC
LIMIT :most
"""
_INSERT: Final = """
INSERT INTO operations (id, kind, workspace_id, place, plan, before_tree, after_tree, inverse_of, state, progress, cas,
    principal, started_at)
VALUES (:id, :kind, :workspace, :place, :plan, :before_tree, :after_tree, :inverse_of, :state, :progress, :cas,
    :principal, :now)
"""
_MOVE: Final = """
UPDATE operations
SET state = :state,
    progress = :progress,
    error = :error,
    ended_at = :ended_at,
    version = version + 1
WHERE id = :id AND version = :version
"""
_DIRECTION: Final = "UPDATE operations SET progress = :progress, version = version + 1 WHERE id = :id"
_TROUBLE: Final = "UPDATE operations SET error = :error, version = version + 1 WHERE id = :id"
_STEP: Final = """
INSERT INTO apply_steps (operation_id, ordinal, path, kind, old_type, old_id, old_mode, old_size,
    new_type, new_id, new_mode, new_size, phase)
VALUES (:operation_id, :ordinal, :path, :kind, :old_type, :old_id, :old_mode, :old_size,
    :new_type, :new_id, :new_mode, :new_size, 'planned')
"""
_STEPS: Final = """
SELECT ordinal, path, kind, old_type, old_id, old_mode, old_size, new_type, new_id, new_mode, new_size, staged, phase
FROM apply_steps
WHERE operation_id = :operation_id
ORDER BY ordinal
"""
_STAGED: Final = """
UPDATE apply_steps
SET staged = :inode, phase = 'staged'
WHERE operation_id = :operation_id AND ordinal = :ordinal
"""
_PHASE: Final = """
UPDATE apply_steps
SET phase = :phase
WHERE operation_id = :operation_id AND ordinal = :ordinal
"""


@dataclass(frozen=True, slots=True)
class Operation:
    """One recorded act on a place; `progress` holds its options, and its result once it has ended, as JSON.

    `plan` is the blob of the plan that a person or a caller saw.
    """

    id: str
    kind: OperationKind
    workspace_id: str
    place: str
    plan: str
    before_tree: str
    after_tree: str
    inverse_of: str
    state: str
    progress: str
    error: str
    cas: Cas
    principal: str
    version: int
    started_at: int
    ended_at: int

    @property
    def goes_back(self) -> bool:
        """Tell whether its steps were being taken back."""
        return self.result.get("direction") == "back"

    @property
    def result(self) -> Mapping[str, Any]:
        """Return its options, and what it gave."""
        found: Mapping[str, Any] = json.loads(self.progress)
        return found


@dataclass(frozen=True, slots=True)
class Begin:
    """What a new operation is about."""

    id: str
    kind: OperationKind
    workspace_id: str
    place: str
    before_tree: str
    after_tree: str
    cas: Cas = "exchange"
    plan: str = ""
    inverse_of: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournaledStep:
    """A step as it was journaled: `inode` is that of its prepared content, 0 before there is any."""

    step: Step
    inode: int
    phase: str


def begin(tx: Tx, new: Begin, steps: Iterable[Step]) -> Operation:
    """Record that an operation runs, with the steps that it will take."""
    tx.execute(
        _INSERT,
        id=new.id,
        kind=new.kind,
        workspace=new.workspace_id,
        place=new.place,
        plan=new.plan,
        before_tree=new.before_tree,
        after_tree=new.after_tree,
        inverse_of=new.inverse_of,
        state=OPERATION.after(OPERATION.after("", "accepted"), "started"),
        progress=json.dumps(dict(new.options)),
        cas=new.cas,
        principal=tx.principal,
        now=tx.now_us,
    )
    count = 0
    for step in steps:
        count += 1
        tx.execute(
            _STEP,
            operation_id=new.id,
            ordinal=step.ordinal,
            path=step.path,
            kind=step.kind,
            **_columns("old", step.old),
            **_columns("new", step.new),
        )
    body = {"kind": new.kind, "place": new.place, "before": new.before_tree, "after": new.after_tree, "steps": count}
    tx.journal("workspace.operation.started", subject=new.id, workspace=new.workspace_id, body=body)
    return _known(tx, new.id)


def move(
    tx: Tx, operation_id: str, event: str, *, result: Mapping[str, Any] | None = None, error: str = ""
) -> Operation:
    """Move an operation by an event of its machine, with its result or its error."""
    known = _known(tx, operation_id)
    state = OPERATION.after(known.state, event)
    tx.execute(
        _MOVE,
        id=operation_id,
        version=known.version,
        state=state,
        progress=known.progress if result is None else json.dumps({**known.result, **result}),
        error=tx.redact(error),
        ended_at=tx.now_us if state in ("done", "failed", "canceled") else 0,
    )
    body = {"event": event, "state": state, "error": error}
    kind = "workspace.operation.ended" if state in ("done", "failed", "canceled") else "workspace.operation.moved"
    tx.journal(kind, subject=operation_id, workspace=known.workspace_id, body=body)
    return _known(tx, operation_id)


def note_staged(tx: Tx, operation_id: str, inodes: Sequence[int]) -> None:
    """Record that the new content of every step is prepared, and by which inode it is known."""
    for ordinal, inode in enumerate(inodes):
        tx.execute(_STAGED, operation_id=operation_id, ordinal=ordinal, inode=inode)
    tx.journal("workspace.operation.staged", subject=operation_id, body={"steps": len(inodes)})


def note_direction(tx: Tx, operation_id: str, direction: str) -> None:
    """Record that from here on the steps are taken back, so that a restart goes on the same way."""
    known = _known(tx, operation_id)
    tx.execute(_DIRECTION, id=operation_id, progress=json.dumps({**known.result, "direction": direction}))
    tx.journal("workspace.operation.turned", subject=operation_id, body={"direction": direction})


def note_outcomes(tx: Tx, operation_id: str, outcomes: Sequence[Outcome]) -> None:
    """Record what became of some steps."""
    for outcome in outcomes:
        tx.execute(_PHASE, operation_id=operation_id, ordinal=outcome.step.ordinal, phase=outcome.phase)
    phases = {phase: sum(each.phase == phase for each in outcomes) for phase in ("verified", "contested", "reverted")}
    tx.journal("workspace.operation.stepped", subject=operation_id, body=phases)


def abandon(tx: Tx, operation_id: str, why: str) -> None:
    """End an operation whose place no longer exists: there is nothing to go forward or back on."""
    if _known(tx, operation_id).state == "running":
        move(tx, operation_id, "lost")
    move(tx, operation_id, "rolled_back", error=why)


def note_trouble(tx: Tx, operation_id: str, why: str) -> None:
    """Record why an operation could not be ended yet; the next start, or the next change of its place, tries again."""
    known = _known(tx, operation_id)
    tx.execute(_TROUBLE, id=operation_id, error=tx.redact(why))
    tx.journal("workspace.operation.delayed", subject=operation_id, workspace=known.workspace_id, body={"error": why})


def find(reading: Reading, operation_id: str) -> Operation | None:
    """Return an operation by its id."""
    row = reading.one(_BY_ID, id=operation_id)
    return None if row is None else Operation(*row)


def unfinished(reading: Reading, workspace_id: str = "", place: str = "") -> list[Operation]:
    """Return the operations that have not ended: of one place, or of all."""
    return [Operation(*row) for row in reading.all(_OPEN, workspace=workspace_id, place=place)]


def listed(reading: Reading, workspace_id: str, *, before: str = "", most: int = 50) -> list[Operation]:
    """Return the operations of a workspace, newest first."""
    return [Operation(*row) for row in reading.all(_LIST, workspace=workspace_id, before=before, most=most)]


def steps_of(reading: Reading, operation_id: str) -> list[JournaledStep]:
    """Return the steps of an operation in order."""
    return [_step(row) for row in reading.all(_STEPS, operation_id=operation_id)]


def look_operation(reading: Reading, ref: str) -> RefFacts | None:
    """Return what other servers may know of an operation."""
    found = find(reading, ref)
    return None if found is None else RefFacts(True, found.workspace_id, found.state, {"kind": found.kind})


def _known(reading: Reading, operation_id: str) -> Operation:
    found = find(reading, operation_id)
    assert found is not None, operation_id
    return found


def _columns(side: str, entry: TreeEntry | None) -> dict[str, Any]:
    facts = ("", "", 0, 0) if entry is None else (entry.type, entry.id, entry.mode, entry.size)
    return dict(zip((f"{side}_type", f"{side}_id", f"{side}_mode", f"{side}_size"), facts, strict=True))


def _step(row: sqlite3.Row) -> JournaledStep:
    step = Step(row["ordinal"], row["path"], row["kind"], _entry(row, "old"), _entry(row, "new"))
    return JournaledStep(step, row["staged"], row["phase"])


def _entry(row: sqlite3.Row, side: str) -> TreeEntry | None:
    if not row[f"{side}_type"]:
        return None
    name = parts(row["path"])[-1]
    return TreeEntry(name, row[f"{side}_type"], row[f"{side}_mode"], row[f"{side}_size"], row[f"{side}_id"])
