"""`objects.db`: pins, marks of death and the generation of the store; what it loses can be made again.

Objects themselves are files; this index holds only what files cannot say.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from agentstead.blobs.objects import Kind, ObjectKey
from agentstead.state import Unavailable

_VERSION: Final = 1
_BUSY_S: Final = 10.0
_SCHEMA: Final = (
    """
    CREATE TABLE pins (
        id TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('blob', 'tree')),
        owner TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (id, kind, owner)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE dead (
        id TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('blob', 'tree')),
        since INTEGER NOT NULL,
        PRIMARY KEY (id, kind)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE generation (
        number INTEGER NOT NULL
    ) STRICT
    """,
    "INSERT INTO generation (number) VALUES (1)",
    f"PRAGMA user_version = {_VERSION}",
)

_PIN: Final = """
INSERT INTO pins (id, kind, owner, until)
VALUES (:id, :kind, :owner, :until)
ON CONFLICT (id, kind, owner) DO UPDATE SET until = excluded.until
"""
_UNPIN: Final = "DELETE FROM pins WHERE id = :id AND kind = :kind AND owner = :owner"
_EXPIRE_PINS: Final = "DELETE FROM pins WHERE until <= :now"
_PINNED: Final = "SELECT DISTINCT kind, id FROM pins WHERE until > :now"
_BURY: Final = "INSERT INTO dead (id, kind, since) VALUES (:id, :kind, :since) ON CONFLICT (id, kind) DO NOTHING"
_REVIVE: Final = "DELETE FROM dead WHERE id = :id AND kind = :kind"
_DEAD: Final = "SELECT kind, id, since FROM dead"
_ANY_DEAD: Final = "SELECT 1 FROM dead LIMIT 1"
_GENERATION: Final = "SELECT number FROM generation"
_NEXT_GENERATION: Final = "UPDATE generation SET number = number + 1"


@dataclass(frozen=True, slots=True)
class Death:
    """An object that nothing reached, and since when (microseconds UTC)."""

    key: ObjectKey
    since_us: int


class Index:
    """The small database beside the objects; each call is a transaction of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._transaction() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise Unavailable(
                    "store.newer",
                    f"the object index has schema {version}; this program knows {_VERSION}",
                    remedy="Use the newer Agentstead that wrote it.",
                )
            for statement in _SCHEMA if version == 0 else ():
                connection.execute(statement)

    def pin(self, key: ObjectKey, *, owner: str, until_us: int) -> None:
        """Keep an object until a time, whatever the roots say."""
        with self._transaction() as connection:
            connection.execute(_PIN, {"id": key.id, "kind": key.kind, "owner": owner, "until": until_us})

    def unpin(self, key: ObjectKey, *, owner: str) -> None:
        """Drop one owner's pin; dropping what is not there changes nothing."""
        with self._transaction() as connection:
            connection.execute(_UNPIN, {"id": key.id, "kind": key.kind, "owner": owner})

    def pinned(self, *, now_us: int) -> list[ObjectKey]:
        """Return the objects with a living pin."""
        with self._transaction() as connection:
            connection.execute(_EXPIRE_PINS, {"now": now_us})
            return [_key(row) for row in connection.execute(_PINNED, {"now": now_us})]

    def revive(self, keys: Iterable[ObjectKey]) -> None:
        """Clear the marks of death of objects that were just put again."""
        if not self.has_dead():
            return
        with self._transaction() as connection:
            connection.executemany(_REVIVE, [{"id": key.id, "kind": key.kind} for key in keys])

    def has_dead(self) -> bool:
        """Tell whether any object is marked dead."""
        with self._connected() as connection:
            return connection.execute(_ANY_DEAD).fetchone() is not None

    def bury(self, keys: Iterable[ObjectKey], *, since_us: int, reached: Iterable[ObjectKey] = ()) -> list[Death]:
        """Mark objects dead (an older mark stays), clear those that were reached, and return all marks."""
        with self._transaction() as connection:
            connection.executemany(_REVIVE, [{"id": key.id, "kind": key.kind} for key in reached])
            rows = [{"id": key.id, "kind": key.kind, "since": since_us} for key in keys]
            connection.executemany(_BURY, rows)
            return [Death(_key(row), row[2]) for row in connection.execute(_DEAD)]

    def deaths(self) -> list[Death]:
        """Return the objects marked dead."""
        with self._connected() as connection:
            return [Death(_key(row), row[2]) for row in connection.execute(_DEAD)]

    def forget(self, keys: Iterable[ObjectKey]) -> None:
        """Drop the marks of objects whose bytes were removed, and begin a new generation of the store."""
        with self._transaction() as connection:
            connection.executemany(_REVIVE, [{"id": key.id, "kind": key.kind} for key in keys])
            connection.execute(_NEXT_GENERATION)

    def generation(self) -> int:
        """Return a number that changes whenever bytes were removed: what a cache of ids is valid for."""
        with self._connected() as connection:
            return int(connection.execute(_GENERATION).fetchone()[0])

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
        try:
            # The busy timeout stands before WAL mode: the other order makes parallel first openings fail.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _key(row: sqlite3.Row | tuple[str, str, int]) -> ObjectKey:
    return ObjectKey(cast("Kind", row[0]), row[1])
