"""The synchronous face of the store, for threads and child processes; `Blobs` is the one for the event loop."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from agentstead.blobs.batch import Batch
from agentstead.blobs.index import Index
from agentstead.blobs.layout import Layout
from agentstead.blobs.objects import Kind, ObjectKey, ObjectStat, corrupt, object_key
from agentstead.blobs.reading import VerifiedReader, read_object
from agentstead.blobs.trees import TreeEntry, TreeFormatError, decode_tree
from agentstead.state import Clock, Unavailable


class BlobStore:
    """One home's content-addressed objects; safe for any number of threads and processes at once."""

    def __init__(self, root: Path, *, clock: Clock) -> None:
        self._layout = Layout(root)
        self._layout.prepare()
        self._index = Index(self._layout.index)
        self.clock = clock

    @property
    def layout(self) -> Layout:
        """Return where the files lie; for the modules of this package."""
        return self._layout

    @property
    def index(self) -> Index:
        """Return the index; for the modules of this package."""
        return self._index

    def batch(self) -> Batch:
        """Return a writer of many objects that become durable together."""
        return Batch(self._layout, self._index)

    def put(self, data: bytes, *, kind: Kind = "blob") -> str:
        """Store one object durably; return its id. What is stored already is not written again."""
        with self.batch() as batch:
            stored_id = batch.put(data, kind=kind)
            batch.commit()
        return stored_id

    def put_stream(self, source: BinaryIO) -> ObjectStat:
        """Store one blob from a stream, 1 MiB at a time; return its id and size."""
        with self.batch() as batch:
            stored = batch.put_stream(source)
            batch.commit()
        return stored

    def get(self, kind: Kind, object_id: str) -> bytes:
        """Return an object's bytes, verified; raise Unavailable `store.corrupt` where they are gone or altered."""
        key = object_key(kind, object_id)
        return read_object(self._layout.file(key), key)

    def get_tree(self, object_id: str) -> tuple[TreeEntry, ...]:
        """Return the entries of a stored directory in byte order of name."""
        try:
            return decode_tree(self.get("tree", object_id))
        except TreeFormatError as error:
            raise corrupt(ObjectKey("tree", object_id), f"is no directory: {error}") from None

    def open_stream(self, object_id: str) -> VerifiedReader:
        """Open a blob for reading; the end of the stream raises `store.corrupt` unless the whole matched."""
        key = object_key("blob", object_id)
        return VerifiedReader(self._layout.file(key), key)

    def has(self, kind: Kind, object_id: str) -> bool:
        """Tell whether an object is stored."""
        return self._layout.holds(object_key(kind, object_id))

    def stat(self, kind: Kind, object_id: str) -> ObjectStat:
        """Return an object's size; raise Unavailable `store.corrupt` where it is not stored."""
        key = object_key(kind, object_id)
        try:
            return ObjectStat(kind, object_id, self._layout.path(key).stat().st_size)
        except FileNotFoundError:
            raise corrupt(key, "is not in the store") from None

    def pin(self, kind: Kind, object_id: str, *, owner: str, until_us: int) -> None:
        """Keep an object until a time (microseconds UTC); a further pin of the same owner replaces the time."""
        self._index.pin(object_key(kind, object_id), owner=owner, until_us=until_us)

    def unpin(self, kind: Kind, object_id: str, *, owner: str) -> None:
        """Drop one owner's pin."""
        self._index.unpin(object_key(kind, object_id), owner=owner)

    def holding(self) -> AbstractContextManager[None]:
        """Keep the collector away while ids known from elsewhere are written down as references."""
        return self._layout.together()

    def generation(self) -> int:
        """Return a number that changes whenever bytes were removed: what a cache of ids is valid for."""
        return self._index.generation()

    def reach(self, roots: Iterable[ObjectKey]) -> tuple[set[ObjectKey], list[ObjectKey]]:
        """Return every object reachable from some roots, and those of them that are missing or unreadable trees."""
        reached: set[ObjectKey] = set()
        missing: list[ObjectKey] = []
        stack = list(roots)
        while stack:
            key = stack.pop()
            if key in reached:
                continue
            reached.add(key)
            if key.kind == "blob":
                if not self._layout.holds(key):
                    missing.append(key)
                continue
            try:
                stack += [_child(entry) for entry in self.get_tree(key.id)]
            except Unavailable:
                missing.append(key)
        return reached, missing


def _child(entry: TreeEntry) -> ObjectKey:
    return ObjectKey("tree" if entry.type == "d" else "blob", entry.id)
