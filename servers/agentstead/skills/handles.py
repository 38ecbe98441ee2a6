"""Open folders and files by handle, name by name, never through a link and never a device, socket or pipe."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Kind = Literal["file", "folder", "link", "special"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that nobody writes to waits for ever.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# A link, nothing, or a device without a driver stands where a regular file was listed.
_SWAPPED: Final = frozenset({errno.ELOOP, errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.EISDIR})
_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells one state of a file from another without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    executable: bool

    @classmethod
    def of(cls, facts: os.stat_result) -> "Fingerprint":
        """Take the fingerprint from what the system says of a file."""
        executable = bool(facts.st_mode & 0o111)
        return cls(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, executable)


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder, described without following it."""

    name: str
    kind: Kind
    fingerprint: Fingerprint


class Moved(OSError):
    """What was opened is not what was listed: it was swapped in between, or is no regular file."""


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a configured folder, which may be a link itself; yield its handle."""
    handle = os.open(path, _FOLDER)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_below(folder: int, parts: tuple[str, ...]) -> Iterator[int]:
    """Open a folder below another, name by name without following links; yield its handle."""
    handle = os.dup(folder)
    try:
        for name in parts:
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def entries(folder: int, *, most: int) -> list[Entry]:
    """List up to ``most`` + 1 entries in byte order of name; one more than ``most`` tells that there are more."""
    found: list[Entry] = []
    with os.scandir(folder) as listing:
        for item in listing:
            with suppress(FileNotFoundError):
                facts = item.stat(follow_symlinks=False)
                found.append(Entry(item.name, _kind(facts.st_mode), Fingerprint.of(facts)))
            if len(found) > most:
                break
    return sorted(found, key=lambda entry: os.fsencode(entry.name))


def read_file(folder: int, name: str, *, expected: Fingerprint, most: int) -> bytes:
    """Return the bytes of a listed regular file.

    Raises Moved when another file or another state of it stands there now, or when it has more than ``most`` bytes.
    """
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in _SWAPPED:
            raise Moved(f"{name!r} was replaced while it was read") from None
        raise
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or Fingerprint.of(facts) != expected:
            raise Moved(f"{name!r} was replaced while it was read")
        return _read(handle, name, most=most)
    finally:
        os.close(handle)


def link_target(folder: int, name: str) -> str:
    """Return the text of a link."""
    return os.readlink(name, dir_fd=folder)


def _read(handle: int, name: str, *, most: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while chunk := os.read(handle, _CHUNK_BYTES):
        total += len(chunk)
        if total > most:
            raise Moved(f"{name!r} grew past {most} bytes while it was read")
        parts.append(chunk)
    return b"".join(parts)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"
