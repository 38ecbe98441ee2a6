"""What the last walk of a place saw, so that an unchanged file is not read again and an unchanged directory not listed.

A cache is never evidence: a damaged, foreign or outdated one is dropped, and the next walk reads everything.
"""

import hashlib
import os
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

# mtime_ns, ctime_ns, size, inode, mode: a write moves ctime even where a tool sets mtime back.
FileKey = tuple[int, int, int, int, int]
# mtime_ns, ctime_ns, inode, device
DirectoryKey = tuple[int, int, int, int]

_MAGIC: Final = b"agentstead.statcache/1\n"
_FILE: Final = struct.Struct("=qqQ")
_DIRECTORY: Final = struct.Struct("=IB4q32sQIII")
_ENTRY: Final = struct.Struct("=cHQ32sB5q")
_DIGEST_BYTES: Final = 32


class CachedEntry(NamedTuple):
    """One name as the last walk saw it (a NamedTuple: made for each name of a walk, twice as fast as a dataclass).

    `kind` is `f`, `l`, `d` or `s` for what has an id (of a secret: its keyed digest), and `o` for what was left out.
    `key` is None where the file was too fresh to be trusted.
    """

    kind: str
    mode: int
    size: int
    id: str
    key: FileKey | None


class CachedDirectory(NamedTuple):
    """One directory as the last walk saw it; `key` is None where it was too fresh to be trusted."""

    key: DirectoryKey | None
    tree: str
    size: int
    files: int
    entries: dict[bytes, CachedEntry]


@dataclass(slots=True)
class StatCache:
    """The directories of one place by path; valid for one generation of the store and one policy."""

    generation: int = 0
    policy_id: str = ""
    directories: dict[bytes, CachedDirectory] = field(default_factory=dict)

    def fits(self, *, generation: int, policy_id: str) -> bool:
        """Tell whether its ids are still stored and its classes still decided the same way."""
        return (self.generation, self.policy_id) == (generation, policy_id)


def load_cache(path: Path) -> StatCache:
    """Read a cache file; an absent or damaged one gives an empty cache."""
    with suppress(OSError, ValueError, struct.error):
        data = path.read_bytes()
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if body.startswith(_MAGIC) and hashlib.sha256(body).digest() == digest:
            return _decode(body)
    return StatCache()


def save_cache(cache: StatCache, path: Path) -> None:
    """Write a cache file in one step; losing it costs one full read and nothing else."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    body = _encode(cache)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        draft.write_bytes(body + hashlib.sha256(body).digest())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _encode(cache: StatCache) -> bytes:
    policy = cache.policy_id.encode()
    out = [_MAGIC, _FILE.pack(cache.generation, len(policy), len(cache.directories)), policy]
    for path, directory in cache.directories.items():
        names = b"\0".join(directory.entries)
        sizes = (len(path), directory.key is not None, *(directory.key or (0, 0, 0, 0)))
        counts = (bytes.fromhex(directory.tree), directory.size, directory.files, len(directory.entries), len(names))
        out += (_DIRECTORY.pack(*sizes, *counts), path, names)
        out += (
            _ENTRY.pack(
                entry.kind.encode(),
                entry.mode,
                entry.size,
                bytes.fromhex(entry.id),
                entry.key is not None,
                *(entry.key or (0, 0, 0, 0, 0)),
            )
            for entry in directory.entries.values()
        )
    return b"".join(out)


def _decode(body: bytes) -> StatCache:
    generation, policy_length, count = _FILE.unpack_from(body, len(_MAGIC))
    at = len(_MAGIC) + _FILE.size
    cache = StatCache(generation, body[at : at + policy_length].decode())
    at += policy_length
    for _ in range(count):
        length, trusted, *rest = _DIRECTORY.unpack_from(body, at)
        mtime, ctime, inode, device, tree, size, files, entries, names_length = rest
        at += _DIRECTORY.size
        path = body[at : at + length]
        at += length
        names = body[at : at + names_length].split(b"\0") if entries else []
        at += names_length
        end = at + entries * _ENTRY.size
        records = _ENTRY.iter_unpack(body[at:end])
        key = (mtime, ctime, inode, device) if trusted else None
        found = {name: _entry(record) for name, record in zip(names, records, strict=True)}
        cache.directories[path] = CachedDirectory(key, tree.hex(), size, files, found)
        at = end
    return cache


def _entry(record: tuple[bytes, int, int, bytes, int, int, int, int, int, int]) -> CachedEntry:
    kind, mode, size, raw_id, trusted, *key = record
    mtime, ctime, length, inode, file_mode = key
    return CachedEntry(
        kind.decode(), mode, size, raw_id.hex(), (mtime, ctime, length, inode, file_mode) if trusted else None
    )
