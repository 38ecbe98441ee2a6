"""Making written files and names survive a power cut: the only place that knows how this system syncs."""

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# Above this many files one syncfs is cheaper than an fsync each (measured: 200 files 0.40 s against 0.87 s).
FEW_FILES: Final = 16


def sync_paths(paths: Iterable[Path | str], *, within: Path | str) -> None:
    """Make the content of these files or directories durable; `within` is a directory on their file system."""
    chosen = list(paths)
    if len(chosen) > FEW_FILES and sync_file_system(within):
        return
    for path in chosen:
        sync_path(path)


def sync_path(path: Path | str) -> None:
    """Make one file's content, or one directory's names, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(directory: Path | str) -> bool:
    """Make everything on a directory's file system durable in one call; false where the system has none."""
    if not sys.platform.startswith("linux"):
        return False
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return bool(ctypes.CDLL(None, use_errno=True).syncfs(descriptor) == 0)
    finally:
        os.close(descriptor)
