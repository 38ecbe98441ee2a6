"""Writing stored entries as new names in an open directory: nothing that exists is ever opened for writing."""

import errno
import os
import stat
import sys
from pathlib import Path
from typing import Final

from agentstead.blobs import BlobStore, TreeEntry

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_HAS_PATH_HANDLES: Final = sys.platform == "linux"
_HANDLE: Final = (os.O_PATH if sys.platform == "linux" else os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK_BYTES: Final = 2**20
_WHOLE_BYTES: Final = 8 * 2**20


def write_entry(store: BlobStore, directory: int, name: bytes, entry: TreeEntry, *, durable: bool) -> None:
    """Write a file or link under a new name, or make an empty directory; raise FileExistsError where one stands.

    A directory keeps its owner's access until it is filled: its final mode is set by the caller.
    """
    if entry.type == "d":
        os.mkdir(name, 0o700 | entry.mode, dir_fd=directory)
    elif entry.type == "l":
        os.symlink(store.get("blob", entry.id), name, dir_fd=directory)
    else:
        _write_file(store, directory, name, entry, durable)


def set_mode(directory: int, name: bytes, mode: int) -> None:
    """Set the nine permission bits of a file or directory, through a handle that is no link.

    Raises OSError (ELOOP) for a link.
    """
    descriptor = os.open(name, _HANDLE, dir_fd=directory)
    try:
        if _HAS_PATH_HANDLES:
            if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            # A handle of this kind needs no permission to read, and a mode is set by way of its name in /proc.
            Path(f"/proc/self/fd/{descriptor}").chmod(mode)
        else:
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def _write_file(store: BlobStore, directory: int, name: bytes, entry: TreeEntry, durable: bool) -> None:
    descriptor = os.open(name, _NEW_FILE, 0o600, dir_fd=directory)
    try:
        if entry.size <= _WHOLE_BYTES:
            _write_all(descriptor, store.get("blob", entry.id))
        else:
            with store.open_stream(entry.id) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    _write_all(descriptor, chunk)
        # Set on the handle, after the bytes: the umask has no say, and nobody sees a half-written file executable.
        os.fchmod(descriptor, entry.mode)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
