"""What a caller asks of the runner, and what it gets back: one argv in one directory, measured by us.

There is no shell, no inherited environment and no promise of isolation beyond what is listed as enforced.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from agentstead.state import Invalid

ExitReason = Literal["exit", "signal", "wall_limit", "output_limit", "stopped"]

# Everything that a canary would have to prove stays unknown until one has run.
ENFORCED_UNKNOWN: Final[Mapping[str, str]] = dict.fromkeys(
    ("fs_write", "fs_read", "sibling", "net", "signal", "pid", "limits", "env"), "unknown"
)
ISOLATION: Final = "none"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one process tree: seconds of wall time, and bytes of output that are kept or tolerated."""

    wall_s: float = 600.0
    grace_s: float = 5.0
    stdout_kept_bytes: int = 8 * 2**20
    stderr_kept_bytes: int = 2**20
    output_bytes: int = 2**30


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run: exact argv, directory and environment."""

    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    limits: Limits = field(default_factory=Limits)

    def program(self) -> Path:
        """Return the program's resolved path; raise Invalid `runner.program_missing` where there is none to run."""
        name = self.argv[0]
        if os.sep in name:
            found = name if os.access(self.cwd / name, os.X_OK) and (self.cwd / name).is_file() else None
        else:
            found = shutil.which(name, path=self.environ.get("PATH", os.defpath))
        if found is None:
            raise Invalid(
                "runner.program_missing",
                f"{name!r} is no program on the PATH of the command",
                remedy="Install it, or give the path of the program in the workspace or an absolute one.",
            )
        return (self.cwd / found).resolve()


@dataclass(frozen=True, slots=True)
class Stream:
    """One output stream: the SHA-256 and size of all of it, and the bytes that were kept."""

    sha256: str
    size_bytes: int
    kept: bytes

    @property
    def truncated(self) -> bool:
        """Tell whether more was written than kept."""
        return len(self.kept) < self.size_bytes


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process tree ended, as measured: nothing of it is alive any more.

    `usage_complete` is false where processes had to be killed whose use of the processor nobody counted.
    """

    process_id: str
    reason: ExitReason
    exit_code: int | None
    signal: int | None
    wall_us: int
    cpu_user_us: int
    cpu_system_us: int
    peak_rss_bytes: int
    stdout: Stream
    stderr: Stream
    orphans_killed: int
    usage_complete: bool
