"""Files that an apply moved aside: kept for a week, looked at again for late writes, and never dropped unstored."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agentstead.blobs import BlobStore, TreeEntry
from agentstead.kit import Home
from agentstead.state import Reading, Tx
from agentstead.workspace.beneath import NO_CONTENT, entry_at, opened_directory, opened_root
from agentstead.workspace.reading import store_file
from agentstead.workspace.staging import STAGE, TRASH
from agentstead.workspace.steps import Step

KEPT_US: Final = 7 * 86_400 * 10**6
LATE_KEPT_US: Final = 30 * 86_400 * 10**6

_INSERT: Final = """
INSERT INTO displaced (id, operation_id, workspace_id, path, file, inode, id_at_move, checked_at, expires_at)
VALUES (:id, :operation_id, :workspace, :path, :file, :inode, :id_at_move, :now, :expires_at)
"""
_DUE: Final = "SELECT id, operation_id, path, file, id_at_move FROM displaced WHERE expires_at <= :now ORDER BY id"
_DROP: Final = "DELETE FROM displaced WHERE id = :id"
_CHANGED: Final = """
UPDATE displaced
SET late_id = :late_id, checked_at = :now, expires_at = :expires_at
WHERE id = :id
"""


@dataclass(frozen=True, slots=True)
class Displaced:
    """One file that was moved aside: where it lies now, and the id of the bytes it held, which are stored.

    The id is empty for what holds none, such as a pipe.
    """

    path: bytes
    file: Path
    inode: str
    id: str


@dataclass(frozen=True, slots=True)
class Due:
    """A displaced file that was kept long enough."""

    id: str
    operation_id: str
    path: bytes
    file: Path
    id_at_move: str


def find_displaced(store: BlobStore, base: Path, operation_id: str, steps: Iterable[Step]) -> list[Displaced]:
    """Return what an operation moved aside, after storing whatever of it is not stored yet.

    Prepared content that was never used is removed, by the names that the steps gave it.
    """
    folder = base / TRASH / operation_id
    found: list[Displaced] = []
    if not folder.is_dir():
        return found
    for step in steps:
        for name in (f"old/{step.ordinal}", *_returned(folder, step.ordinal)):
            entry = _store(store, folder, os.fsencode(name))
            if entry is not None and entry.type != "d":
                facts = (folder / name).lstat()
                stored = "" if entry.id == NO_CONTENT else entry.id
                found.append(Displaced(step.path, folder / name, f"{facts.st_dev}:{facts.st_ino}", stored))
        _drop_prepared(folder / "new" / str(step.ordinal))
    return found


def record_displaced(tx: Tx, operation_id: str, workspace_id: str, found: Iterable[Displaced]) -> None:
    """Record what an operation moved aside; part of the transaction that ends it."""
    for each in found:
        tx.execute(
            _INSERT,
            id=tx.new_id("dsp_"),
            operation_id=operation_id,
            workspace=workspace_id,
            path=each.path,
            file=str(each.file),
            inode=each.inode,
            id_at_move=each.id,
            now=tx.now_us,
            expires_at=tx.now_us + KEPT_US,
        )


def discard_trash(base: Path, operation_id: str) -> None:
    """Remove what an operation moved aside in a fork: all of it is stored."""
    shutil.rmtree(base / TRASH / operation_id, ignore_errors=True)


def discard_stage(base: Path, operation_id: str) -> None:
    """Remove what an operation had prepared before anything was swapped."""
    folder = base / STAGE / operation_id
    for name in ("old", "back"):
        if (folder / name).is_dir() and any((folder / name).iterdir()):
            raise RuntimeError(f"{folder} holds displaced files although no step was begun")
    shutil.rmtree(folder, ignore_errors=True)


async def sweep_displaced(home: Home) -> int:
    """Drop the displaced files that were kept long enough; what was written to one meanwhile is stored and told."""
    due = await home.state.read(_due, home.clock.now_us())
    for each in due:
        late = await home.blobs.run(_late_id, each)
        await home.state.write(_finish, each, late)
        await home.blobs.run(_remove, each.file)
    return len(due)


def _remove(_store: BlobStore, file: Path) -> None:
    file.unlink(missing_ok=True)
    for folder in (file.parent, file.parent.parent):
        with suppress(OSError):
            folder.rmdir()


def _due(reading: Reading, now_us: int) -> list[Due]:
    rows = reading.all(_DUE, now=now_us)
    return [Due(row["id"], row["operation_id"], row["path"], Path(row["file"]), row["id_at_move"]) for row in rows]


def _late_id(store: BlobStore, due: Due) -> str:
    """Return the id of bytes that were written after the move, once they are stored; empty where there are none."""
    if not due.file.parent.is_dir():
        return ""
    entry = _store(store, due.file.parent, os.fsencode(due.file.name))
    unchanged = entry is None or entry.id in (due.id_at_move, NO_CONTENT)
    return "" if unchanged or entry is None else entry.id


def _finish(tx: Tx, due: Due, late_id: str) -> None:
    if late_id:
        # The row keeps what was written late; the file has served.
        tx.execute(_CHANGED, id=due.id, late_id=late_id, now=tx.now_us, expires_at=tx.now_us + LATE_KEPT_US)
        body = {"operation_id": due.operation_id, "late_id": late_id}
        tx.journal("workspace.displaced.changed", subject=due.id, body=body)
        return
    tx.execute(_DROP, id=due.id)
    tx.journal("workspace.displaced.dropped", subject=due.id, body={"operation_id": due.operation_id})


def _store(store: BlobStore, folder: Path, name: bytes) -> TreeEntry | None:
    """Return what stands under a name, once its bytes are stored; a pipe or a socket has none."""
    directory, _, last = name.rpartition(b"/")
    with opened_root(folder) as root, opened_directory(root, directory) as descriptor:
        entry = entry_at(descriptor, last)
        if entry is None or entry.type == "d" or entry.id == NO_CONTENT or store.has("blob", entry.id):
            return entry
        with store.batch() as batch:
            if entry.type == "l":
                batch.put(os.readlink(last, dir_fd=descriptor))
            else:
                entry = replace(entry, id=store_file(batch, last, at=descriptor).id)
            batch.commit()
        return entry


def _returned(folder: Path, ordinal: int) -> list[str]:
    back = folder / "back"
    return sorted(f"back/{path.name}" for path in back.glob(f"{ordinal}.*")) if back.is_dir() else []


def _drop_prepared(path: Path) -> None:
    if not path.is_symlink() and path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
