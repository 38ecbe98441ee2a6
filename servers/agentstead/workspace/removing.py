"""Removing a directory of ours: renamed away in one step, then emptied, whatever modes it holds."""

import os
import shutil
from pathlib import Path

from agentstead.blobs import BlobStore


def put_away(_store: BlobStore, directory: Path, trash: Path) -> None:
    """Move a directory of the home to its trash and remove it there; what is gone already is fine."""
    trash.mkdir(mode=0o700, exist_ok=True)
    target = trash / f"{directory.name}.{os.urandom(4).hex()}"
    try:
        directory.rename(target)
    except FileNotFoundError:
        return
    remove_tree(target)


def empty_trash(_store: BlobStore, trash: Path) -> None:
    """Remove what an earlier process had moved to the trash of the home."""
    for left in trash.iterdir() if trash.is_dir() else ():
        remove_tree(left)


def remove_tree(directory: Path) -> None:
    """Remove a directory and all in it; directories without write permission are opened first."""
    directory.chmod(0o700)
    for folder, names, _ in os.walk(directory):
        for name in names:
            below = Path(folder) / name
            if not below.is_symlink():
                below.chmod(0o700)
    shutil.rmtree(directory)
