"""Forward-only, numbered SQL files of each package, and the ledger of those that were applied."""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from agentstead.state.canonical import sha256_hex
from agentstead.state.clock import Clock
from agentstead.state.errors import Unavailable

_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")

_LEDGER = """
CREATE TABLE IF NOT EXISTS migrations (
    package TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at INTEGER NOT NULL,
    PRIMARY KEY (package, number)
) STRICT
"""
_HAS_LEDGER = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'"
_APPLIED = "SELECT package, number FROM migrations"
_NOTE = "INSERT INTO migrations VALUES (:package, :number, :name, :sha256, :applied_at)"


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: `0001_name.sql` of a package."""

    package: str
    number: int
    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Migrations:
    """The numbered files in the folder `migrations` of the importable package `anchor`."""

    package: str
    anchor: str

    def load(self) -> list[Migration]:
        """Read the files in order; numbers run from 1 without a gap."""
        folder = resources.files(self.anchor) / "migrations"
        found = [
            Migration(self.package, int(match[1]), item.name, item.read_text("utf-8"))
            for item in folder.iterdir()
            if (match := _NAME.match(item.name))
        ]
        found.sort(key=lambda migration: migration.number)
        if [migration.number for migration in found] != list(range(1, len(found) + 1)):
            raise ValueError(f"migrations of {self.package} are not numbered 1..{len(found)}")
        return found


def pending(connection: sqlite3.Connection, sets: Sequence[Migrations]) -> list[Migration]:
    """Return the migrations that this database lacks, in order.

    Raises `Unavailable` with `home.newer` where the database is ahead of the code.
    """
    applied = _applied(connection)
    missing: list[Migration] = []
    for each in sets:
        files = each.load()
        newest = max((number for package, number in applied if package == each.package), default=0)
        if newest > len(files):
            raise Unavailable(
                "home.newer",
                f"This home has schema {newest} of {each.package}; this version of Agentstead knows {len(files)}.",
                remedy="Update Agentstead, or point AGENTSTEAD_HOME to another folder.",
            )
        missing.extend(file for file in files if (file.package, file.number) not in applied)
    return missing


def apply(connection: sqlite3.Connection, missing: Iterable[Migration], clock: Clock) -> None:
    """Run each migration with its ledger row as one transaction."""
    connection.execute(_LEDGER)
    for migration in missing:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(migration.sql):
                connection.execute(statement)
            connection.execute(
                _NOTE,
                {
                    "package": migration.package,
                    "number": migration.number,
                    "name": migration.name,
                    "sha256": sha256_hex(migration.sql.encode()),
                    "applied_at": clock.now_us(),
                },
            )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def back_up(connection: sqlite3.Connection, folder: Path, clock: Clock) -> Path | None:
    """Copy a database that already holds something into `folder`; return the copy's path."""
    if not _applied(connection):
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"state-{clock.now_us()}.db"
    copy = sqlite3.connect(path)
    try:
        connection.backup(copy)
    finally:
        copy.close()
    path.chmod(0o600)
    return path


def statements(sql: str) -> list[str]:
    """Split a file into complete statements; a trigger's body stays whole."""
    found: list[str] = []
    buffer = ""
    for line in sql.splitlines(keepends=True):
        buffer += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(buffer):
            found.append(buffer.strip())
            buffer = ""
    if any(line.strip() and not line.strip().startswith("--") for line in buffer.splitlines()):
        raise ValueError(f"unfinished statement: {buffer.strip()[:80]}")
    return found


def _applied(connection: sqlite3.Connection) -> set[tuple[str, int]]:
    if connection.execute(_HAS_LEDGER).fetchone() is None:
        return set()
    return {(row[0], row[1]) for row in connection.execute(_APPLIED)}
