"""Probes of the machine: interpreter, disk space, the home's folder, its file system and who may read it."""

import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from agentstead.cli.probes.finding import Finding, Severity
from agentstead.coordinator.suitability import NETWORK_TYPES, check_home, file_system
from agentstead.state import DATABASE_FILE, Unavailable

_LEAST = (3, 11)
_LOW_BYTES = 2**30
_EMPTY_BYTES = 100 * 2**20
_PRIVATE = (DATABASE_FILE, "config.toml", "keys", "logs", "backups", "run")


def python(_home: Path) -> Iterator[Finding]:
    """Look at the interpreter."""
    if sys.version_info < _LEAST:
        found = ".".join(map(str, sys.version_info[:3]))
        yield Finding(
            "python.old", "error", f"Python {found} is too old.", sys.executable, "Install Python 3.11 or newer."
        )


def folder(home: Path) -> Iterator[Finding]:
    """Look whether the home is there, can be written, and is its owner's alone."""
    if not home.exists():
        yield Finding("home.absent", "info", f"There is no home at {home} yet.", fix="agentstead up")
        return
    try:
        check_home(home)
    except Unavailable as error:
        kind = file_system(home)
        code = "home.network" if kind in NETWORK_TYPES else "home.read_only"
        yield Finding(code, "error", error.message, kind, error.remedy)
    for path in (home, *(home / name for name in _PRIVATE), *sorted((home / "keys").glob("*"))):
        yield from _loose(path)


def disk(home: Path) -> Iterator[Finding]:
    """Look how much room the home's disk has."""
    ground = next(each for each in (home, *home.parents) if each.exists())
    free = shutil.disk_usage(ground).free
    if free < _LOW_BYTES:
        severity: Severity = "error" if free < _EMPTY_BYTES else "warning"
        what = f"The disk of {ground} has {free // 2**20} MiB left."
        yield Finding("disk.low", severity, what, f"{free} bytes", f"Make room on the disk of {ground}.")


def _loose(path: Path) -> Iterator[Finding]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return
    if mode & 0o077:
        wanted = 0o700 if path.is_dir() else 0o600
        what = f"{path} can be used by others."
        yield Finding("home.mode", "error", what, f"mode {mode:04o}", f"chmod {wanted:o} {path}")
