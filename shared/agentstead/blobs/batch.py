"""Objects written together: files go to `incoming/`, and `commit` syncs them once before any gets its name."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import BinaryIO, Final, Self

from agentstead.blobs.durable import sync_paths
from agentstead.blobs.index import Index
from agentstead.blobs.layout import Layout
from agentstead.blobs.objects import Kind, ObjectKey, ObjectStat, object_id
from agentstead.blobs.trees import TreeEntry, encode_tree
from agentstead.state import CRASH_POINTS, crash_point

CHUNK_BYTES: Final = 2**20

_BEFORE_PUT, _AFTER_PUT = CRASH_POINTS.declare("blobs.put")


class Batch:
    """A writer of many objects: after `commit` all are on disk, before it none is stored.

    Use it as a context manager, in one thread. While it is open the collector removes nothing, so objects found
    stored already stay.
    """

    def __init__(self, layout: Layout, index: Index) -> None:
        self._layout = layout
        self._index = index
        self._fresh: dict[ObjectKey, str] = {}
        self._found: set[ObjectKey] = set()
        self._stack = ExitStack()
        self._written = 0
        self.new_bytes = 0

    def __enter__(self) -> Self:
        self._layout.require_space()
        self._stack.enter_context(self._layout.together())
        self._folder = mkdtemp(dir=self._layout.incoming)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def new_objects(self) -> int:
        """Return how many objects were not stored before."""
        return len(self._fresh)

    def put(self, data: bytes, *, kind: Kind = "blob") -> str:
        """Add one object; return its id."""
        key = ObjectKey(kind, object_id(data))
        if not self._knows(key):
            self._keep(key, self._write([data]), len(data))
        return key.id

    def put_tree(self, entries: tuple[TreeEntry, ...]) -> str:
        """Add one directory; return its tree id."""
        return self.put(encode_tree(entries), kind="tree")

    def put_stream(self, source: BinaryIO) -> ObjectStat:
        """Add one blob read in chunks of 1 MiB; return its id and size."""
        digest = hashlib.sha256()
        size = 0

        def chunks() -> Iterator[bytes]:
            nonlocal size
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                yield chunk

        written = self._write(chunks())
        key = ObjectKey("blob", digest.hexdigest())
        if self._knows(key):
            Path(written).unlink()
        else:
            self._keep(key, written, size)
        return ObjectStat("blob", key.id, size)

    def drop(self, blob_id: str) -> None:
        """Take back a blob of this batch that nothing will name; one that was stored before stays."""
        with suppress(KeyError):
            Path(self._fresh.pop(ObjectKey("blob", blob_id))).unlink()

    def commit(self) -> None:
        """Make everything durable, then name it; objects that were found stored count as put again."""
        if self._fresh:
            sync_paths(self._fresh.values(), within=self._folder)
            changed: set[str] = set()
            for key, file in self._fresh.items():
                self._place(key, file, changed)
            sync_paths(changed, within=self._layout.objects)
        if self._found:
            self._index.revive(self._found)

    # Below, names are plain strings: with pathlib the first snapshot of 10,000 files took twice as long.

    def _place(self, key: ObjectKey, file: str, changed: set[str]) -> None:
        shard = self._layout.shard(key)
        if shard not in changed:
            Path(shard).mkdir(mode=0o700, exist_ok=True)
            changed.update((shard, str(self._layout.objects / key.kind)))
        crash_point(_BEFORE_PUT)
        os.rename(file, f"{shard}/{key.id[2:]}")  # noqa: PTH104
        crash_point(_AFTER_PUT)

    def _knows(self, key: ObjectKey) -> bool:
        if key in self._fresh or key in self._found:
            return True
        if not self._layout.holds(key):
            return False
        self._found.add(key)
        return True

    def _keep(self, key: ObjectKey, file: str, size: int) -> None:
        self._fresh[key] = file
        self.new_bytes += size

    def _write(self, chunks: Iterable[bytes]) -> str:
        self._written += 1
        file = f"{self._folder}/{self._written}"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        try:
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        return file
