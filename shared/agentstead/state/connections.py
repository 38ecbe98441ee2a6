"""Opening SQLite connections the one way that is safe for many processes."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Literal

Durability = Literal["full", "normal"]

BUSY_S = 5.0

Connect = Callable[[], sqlite3.Connection]


def connect_writer(path: Path, durability: Durability = "full") -> sqlite3.Connection:
    """Open a writing connection: WAL, foreign keys, `synchronous` as asked (`full` survives a power cut).

    The busy time-out comes first: set after WAL mode, twenty processes that open one new file lock each other out.
    """
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {durability.upper()}")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot change anything."""
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA query_only = ON")
    return connection
