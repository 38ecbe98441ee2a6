"""Walking a directory into a tree: by descriptors, never through a link, reading only what changed.

What cannot or must not be stored is an omission with its reason; the walk itself goes on.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from agentstead.blobs import EMPTY_TREE, Batch, BlobStore, EntryType, TreeEntry
from agentstead.workspace.classes import (
    OWN_DIRECTORY,
    POLICY_ID,
    PathClass,
    class_of_directory,
    class_of_file,
    is_marked_derived,
    is_own,
)
from agentstead.workspace.omissions import Completeness, Omission, Reason, completeness_of
from agentstead.workspace.paths import MAX_DEPTH, MAX_PATH_BYTES, join
from agentstead.workspace.reading import TornRead, key_of, keyed_digest, store_file
from agentstead.workspace.statcache import CachedDirectory, CachedEntry, DirectoryKey, FileKey, StatCache

# A file system rounds times to its grain: what is younger than this may change again without a new time.
GRAIN_NS: Final = 10_000_000
COARSE_GRAIN_NS: Final = 2_000_000_000
MAX_FILE_BYTES: Final = 512 * 2**20
MAX_NEW_BYTES: Final = 2 * 2**30
MAX_NEW_FILES: Final = 100_000
MAX_ENTRIES: Final = 1_000_000
MAX_DIRECTORY_ENTRIES: Final = 200_000

_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTHING: Final[dict[bytes, CachedEntry]] = {}
_LEFT_OUT: Final = CachedEntry("o", 0, 0, "0" * 64, None)
_TYPES: Final[dict[str, EntryType]] = {"f": "f", "d": "d", "l": "l"}
_EXPECTED_REASON: Final[dict[str, Reason]] = {"vcs": "vcs", "secret": "secret", "derived": "derived"}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one walk stores; beyond it a file is an omission and the snapshot partial."""

    file_bytes: int = MAX_FILE_BYTES
    new_bytes: int = MAX_NEW_BYTES
    new_files: int = MAX_NEW_FILES
    entries: int = MAX_ENTRIES
    directory_entries: int = MAX_DIRECTORY_ENTRIES


@dataclass(frozen=True, slots=True)
class Walked:
    """The tree of a place as it was read, what was left out, and the cache for the next walk."""

    tree: str
    files: int
    size_bytes: int
    new_bytes: int
    omissions: tuple[Omission, ...]
    completeness: Completeness
    cache: StatCache = field(compare=False)

    @property
    def unstable(self) -> list[bytes]:
        """Return the paths that changed while they were read."""
        return [omission.path for omission in self.omissions if omission.reason == "unstable"]


def walk(
    store: BlobStore,
    root: int,
    *,
    cache: StatCache,
    secret_key: bytes,
    limits: Limits | None = None,
    now_ns: Callable[[], int] = time.time_ns,
    grain_ns: int = GRAIN_NS,
) -> Walked:
    """Store the content below an open directory and return its tree; everything it names is durable then.

    `cache` of the last walk of the same place saves reading; it is ignored where it does not fit the store.
    """
    generation = store.generation()
    known = cache if cache.fits(generation=generation, policy_id=POLICY_ID) else StatCache()
    with store.batch() as batch:
        walker = _Walker(batch, known, secret_key, limits or Limits(), now_ns() - grain_ns, os.fstat(root).st_dev)
        below = walker.directory(root, b"", 0)
        assert below is not None, "the root is content whatever lies in it"
        batch.commit()
        new_bytes = batch.new_bytes
    return Walked(
        tree=below.tree,
        files=below.files,
        size_bytes=below.size,
        new_bytes=new_bytes,
        omissions=tuple(walker.omissions),
        completeness=completeness_of(walker.omissions),
        cache=StatCache(generation, POLICY_ID, walker.seen),
    )


class _Walker:
    """One walk: where it writes, what it knows from the last one, and what it found."""

    def __init__(
        self, batch: Batch, known: StatCache, secret_key: bytes, limits: Limits, trusted_before_ns: int, device: int
    ) -> None:
        self.omissions: list[Omission] = []
        self.seen: dict[bytes, CachedDirectory] = {}
        self._batch = batch
        self._known = known.directories
        self._secret_key = secret_key
        self._limits = limits
        self._trusted_before_ns = trusted_before_ns
        self._device = device
        self._entries = 0

    def directory(self, descriptor: int, path: bytes, depth: int) -> CachedDirectory | None:
        """Walk one open directory; None for one that says itself that it is derived."""
        facts = os.fstat(descriptor)
        known = self._known.get(path)
        key: DirectoryKey = (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev)
        same_names = known is not None and known.key == key
        names = list(known.entries) if known and same_names else _list(descriptor)
        if path and is_marked_derived(names):
            return None
        entries = self._entries_of(descriptor, path, depth, names, known.entries if known else _NOTHING)
        if known and known.entries == entries:
            tree, size, files = known.tree, known.size, known.files
        else:
            tree, size, files = self._sum(path, entries)
        fresh = max(facts.st_mtime_ns, facts.st_ctime_ns) >= self._trusted_before_ns
        self.seen[path] = CachedDirectory(None if fresh else key, tree, size, files, entries)
        return self.seen[path]

    def _entries_of(
        self, descriptor: int, path: bytes, depth: int, names: list[bytes], before: dict[bytes, CachedEntry]
    ) -> dict[bytes, CachedEntry]:
        """Look at every name; each gets an entry, also what is left out, so that it is looked at next time too."""
        found: dict[bytes, CachedEntry] = {}
        self._entries += len(names)
        if self._entries > self._limits.entries or len(names) > self._limits.directory_entries:
            self._omit(path, "limit", "content")
            return found
        for name in names:
            try:
                facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue
            old = before.get(name)
            if stat.S_ISDIR(facts.st_mode):
                found[name] = self._below(descriptor, path, name, facts, depth, names, old)
            elif old is not None and old.key == key_of(facts):
                found[name] = old
                if old.kind == "s":
                    self._omit_secret(join(path, name), old)
            else:
                found[name] = self._leaf(descriptor, path, name, facts, old)
        return found

    def _below(
        self,
        parent: int,
        directory: bytes,
        name: bytes,
        facts: os.stat_result,
        depth: int,
        siblings: list[bytes],
        old: CachedEntry | None,
    ) -> CachedEntry:
        path = join(directory, name)
        if is_own(directory, name):
            return _LEFT_OUT
        path_class = class_of_directory(name, siblings)
        if path_class != "content":
            return self._omit(path, _EXPECTED_REASON[path_class], path_class, facts)
        if facts.st_dev != self._device:
            return self._omit(path, "mount", "content", facts)
        if depth + 1 > MAX_DEPTH or len(path) > MAX_PATH_BYTES:
            return self._omit(path, "limit", "content", facts)
        try:
            descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
        except OSError as error:
            return self._omit(path, _reason_of(error), "content", facts)
        try:
            below = self.directory(descriptor, path, depth + 1)
        finally:
            os.close(descriptor)
        if below is None:
            return self._omit(path, "derived", "derived", facts)
        if path == OWN_DIRECTORY and below.tree == EMPTY_TREE:
            return _LEFT_OUT
        entry = CachedEntry("d", facts.st_mode & 0o777, below.size, below.tree, None)
        return old if old == entry else entry

    def _leaf(
        self, parent: int, directory: bytes, name: bytes, facts: os.stat_result, old: CachedEntry | None
    ) -> CachedEntry:
        path = join(directory, name)
        if is_own(directory, name):
            return _LEFT_OUT
        try:
            if stat.S_ISREG(facts.st_mode):
                return self._file(parent, path, name, facts)
            if stat.S_ISLNK(facts.st_mode):
                target = os.readlink(name, dir_fd=parent)
                return CachedEntry("l", 0, len(target), self._batch.put(target), self._trusted(key_of(facts)))
        except (TornRead, FileNotFoundError):
            return self._omit(path, "unstable", "content", facts, digest=old.id if old else "")
        except OSError as error:
            return self._omit(path, _reason_of(error), "content", facts)
        return self._omit(path, "special", "special", facts)

    def _file(self, parent: int, path: bytes, name: bytes, facts: os.stat_result) -> CachedEntry:
        mode, size = facts.st_mode & 0o777, facts.st_size
        if class_of_file(name) == "secret":
            digest = keyed_digest(name, at=parent, key=self._secret_key)
            entry = CachedEntry("s", mode, size, digest, self._trusted(key_of(facts)))
            self._omit_secret(path, entry)
            return entry
        if size > self._limits.file_bytes:
            return self._omit(path, "too_large", "content", facts)
        batch, limits = self._batch, self._limits
        if batch.new_bytes + size > limits.new_bytes or batch.new_objects >= limits.new_files:
            return self._omit(path, "budget", "content", facts)
        read = store_file(batch, name, at=parent)
        return CachedEntry("f", read.key[4] & 0o777, read.size, read.id, self._trusted(read.key))

    def _trusted(self, key: FileKey) -> FileKey | None:
        return key if max(key[0], key[1]) < self._trusted_before_ns else None

    def _omit(
        self,
        path: bytes,
        reason: Reason,
        path_class: PathClass,
        facts: os.stat_result | None = None,
        *,
        digest: str = "",
    ) -> CachedEntry:
        regular = facts is not None and stat.S_ISREG(facts.st_mode)
        size = facts.st_size if facts is not None and regular else 0
        mode = facts.st_mode & 0o777 if facts is not None else 0
        self.omissions.append(Omission(path, reason, path_class, size, mode, digest))
        return _LEFT_OUT

    def _omit_secret(self, path: bytes, entry: CachedEntry) -> None:
        self.omissions.append(Omission(path, "secret", "secret", entry.size, entry.mode, entry.id))

    def _sum(self, path: bytes, entries: dict[bytes, CachedEntry]) -> tuple[str, int, int]:
        stored = [(name, entry) for name, entry in entries.items() if entry.kind in _TYPES]
        listed = tuple(TreeEntry(name, _TYPES[entry.kind], *entry[1:4]) for name, entry in stored)
        files = sum(
            self.seen[join(path, name)].files if entry.kind == "d" else entry.kind == "f" for name, entry in stored
        )
        return self._batch.put_tree(listed), sum(entry.size for _, entry in stored), files


def _list(descriptor: int) -> list[bytes]:
    return sorted(map(os.fsencode, os.listdir(descriptor)))


def _reason_of(error: OSError) -> Reason:
    return "unstable" if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR) else "unreadable"
