"""Reaching paths below an open directory by handles: one component at a time, and never through a link.

Every name that a tree or a caller gives is opened here, so that none can lead outside.
"""

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentstead.blobs import EMPTY_TREE, TreeEntry, object_id
from agentstead.state import Invalid
from agentstead.workspace.paths import parts, shown

# The id given for what is neither file, link nor directory: no content has it.
NO_CONTENT: Final = "0" * 64

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def opened_root(root: Path) -> Iterator[int]:
    """Open a directory that is trusted as it is: the root of a workspace, a fork or a store of ours."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_directory(root: int, path: bytes) -> Iterator[int]:
    """Open the directory at a path below a root; raise Invalid `path.symlink` where a link stands on the way.

    Raises FileNotFoundError where a component is missing.
    """
    descriptor = os.dup(root)
    try:
        for name in parts(path) if path else ():
            below = _open_below(descriptor, name, path)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _open_below(descriptor: int, name: bytes, path: bytes) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=descriptor)
    except (NotADirectoryError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise Invalid(
            "path.symlink",
            f"{shown(name)!r} on the way to {shown(path)!r} is a link or a file",
            remedy="Name a path that leads through real directories; nothing outside the tree is touched.",
            details={"path": shown(path)},
        ) from None


def entry_at(directory: int, name: bytes) -> TreeEntry | None:
    """Return what stands under a name: a directory without what it holds, a file or link with its id, or None.

    What is neither (a pipe, a socket, a device) is given as a file with an id that no content has.
    """
    try:
        facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(facts.st_mode):
        return TreeEntry(name, "d", facts.st_mode & 0o777, 0, EMPTY_TREE)
    if stat.S_ISLNK(facts.st_mode):
        target = os.readlink(name, dir_fd=directory)
        return TreeEntry(name, "l", 0, len(target), object_id(target))
    if not stat.S_ISREG(facts.st_mode):
        return TreeEntry(name, "f", facts.st_mode & 0o777, 0, NO_CONTENT)
    return _file_entry(directory, name)


def inode_at(directory: int, name: bytes) -> int:
    """Return the inode that stands under a name; 0 where there is nothing."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0


def open_file(directory: int, name: bytes) -> io.FileIO:
    """Open a regular file for reading, never through a link; the caller closes it."""
    return io.FileIO(os.open(name, _FILE, dir_fd=directory))


def _file_entry(directory: int, name: bytes) -> TreeEntry | None:
    digest = hashlib.sha256()
    size = 0
    try:
        source = open_file(directory, name)
    except FileNotFoundError:
        return None
    with source:
        while chunk := source.read(2**20):
            digest.update(chunk)
            size += len(chunk)
        mode = os.fstat(source.fileno()).st_mode & 0o777
    return TreeEntry(name, "f", mode, size, digest.hexdigest())
