"""A backup of a home in use: one moment of the database, the objects it refers to, and a manifest of digests."""

import hashlib
import io
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from agentstead.blobs import BlobStore, ObjectKey
from agentstead.identity import TOKEN_FILE
from agentstead.kit import Home
from agentstead.state import DATABASE_FILE, Head, Invalid, Reading

MANIFEST = "manifest.json"
_OBJECTS_A_BATCH = 256


async def back_up(home: Home, directory: Path) -> dict[str, Any]:
    """Copy `home` into an empty directory while it is in use; return what was copied, and what was missing.

    The HTTP token stays behind: it opens this home, and a restored one makes its own. Raises Invalid
    `tool.invalid_arguments` where the directory holds something.
    """
    _prepare(home, directory)
    # Nothing that the copied rows name may be collected before it is copied too.
    async with home.blobs.holding():
        database = directory / DATABASE_FILE
        await home.state.maintain(lambda connection: _copy_database(connection, database))
        roots, head = _read_copy(home, database)
        keys, missing = await home.blobs.run(lambda store: store.reach(roots))
        found = keys.difference(missing)
        copied = await home.blobs.run(lambda store: _copy_objects(store, directory / "blobs", sorted(found)))
    manifest = {
        "agentstead": home.version,
        "made_at": home.clock.now_us(),
        "journal_seq": head.seq,
        "journal_hash": head.hash,
        "files": {name: _digest(directory / name) for name in (DATABASE_FILE, *_copy_files(home, directory))},
        "objects": [{"kind": key.kind, "id": key.id} for key in sorted(found)],
    }
    _write_manifest(directory / MANIFEST, manifest)
    return {
        "directory": str(directory),
        "journal_seq": head.seq,
        "database_bytes": database.stat().st_size,
        "objects": len(found),
        "object_bytes": copied,
        "missing": [f"{key.kind} {key.id}" for key in missing],
    }


def _prepare(home: Home, directory: Path) -> None:
    if directory.is_relative_to(home.path.resolve()):
        raise _unfit(directory, "lies in the home itself")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise _unfit(directory, "is not empty")
        directory.chmod(0o700)
    except OSError as error:
        raise _unfit(directory, f"cannot be written ({error.strerror})") from error


def _copy_database(source: sqlite3.Connection, path: Path) -> None:
    copy = sqlite3.connect(path)
    try:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    path.chmod(0o600)


def _read_copy(home: Home, database: Path) -> tuple[list[ObjectKey], Head]:
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    try:
        reading = Reading(connection, home.clock)
        return home.blobs.roots.read(reading), reading.head()
    finally:
        connection.close()


def _copy_objects(store: BlobStore, root: Path, keys: Sequence[ObjectKey]) -> int:
    copy = BlobStore(root, clock=store.clock)
    written = 0
    for some in _batches(keys):
        with copy.batch() as batch:
            for key in some:
                if key.kind == "tree":
                    batch.put(store.get("tree", key.id), kind="tree")
                else:
                    with io.BufferedReader(store.open_stream(key.id)) as source:
                        batch.put_stream(source)
            written += batch.new_bytes
            batch.commit()
    return written


def _batches(keys: Sequence[ObjectKey]) -> Iterator[list[ObjectKey]]:
    remaining = iter(keys)
    while some := list(islice(remaining, _OBJECTS_A_BATCH)):
        yield some


def _copy_files(home: Home, directory: Path) -> list[str]:
    """Copy settings and keys, each for its owner alone; return their names."""
    names = ["config.toml", *(f"keys/{path.name}" for path in sorted((home.path / "keys").glob("*.key")))]
    copied = [name for name in names if (home.path / name).is_file() and name != str(TOKEN_FILE)]
    for name in copied:
        (directory / name).parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(home.path / name, directory / name)
        (directory / name).chmod(0o600)
    return copied


def _digest(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest last, and durably: a directory without one is no backup."""
    with path.open("w", encoding="utf-8") as target:
        json.dump(manifest, target, indent=1, sort_keys=True)
        target.flush()
        os.fsync(target.fileno())
    path.chmod(0o600)


def _unfit(directory: Path, why: str) -> Invalid:
    return Invalid(
        "tool.invalid_arguments", f"{directory} {why}.", remedy="Name a new or an empty directory; nothing was copied."
    )
