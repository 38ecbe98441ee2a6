"""The file in which a coordinator says who it is and where it listens; read by whoever cannot reach it."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

State = Literal["starting", "serving", "draining", "stopping", "stopped"]
StartedBy = Literal["user", "shim"]


@dataclass(frozen=True, slots=True)
class Record:
    """One coordinator. `http` is the base URL, '' where HTTP is not served; `no_http` says why not."""

    state: State
    pid: int
    version: str
    executable: str
    started_at_us: int
    started_by: StartedBy
    socket: str
    http: str = ""
    no_http: str = ""
    servers: Sequence[str] = ()
    warnings: Sequence[str] = ()

    def addresses(self) -> dict[str, str]:
        """Return the URL of each server; empty where HTTP is not served."""
        return {name: f"{self.http}/{name}/mcp" for name in self.servers} if self.http else {}


def write_record(path: Path, record: Record) -> None:
    """Write the file whole, for its owner alone."""
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
    fresh.replace(path)


def read_record(path: Path) -> Record | None:
    """Return what the last coordinator wrote; None where there is nothing to read."""
    with suppress(OSError, ValueError, TypeError):
        known = {field.name for field in fields(Record)}
        raw = dict(json.loads(path.read_text("utf-8")))
        return Record(**{name: value for name, value in raw.items() if name in known})
    return None


def remove_record(path: Path) -> None:
    """Remove the file of a coordinator that ends."""
    path.unlink(missing_ok=True)
