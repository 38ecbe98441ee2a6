"""The store as the event loop sees it: every call does its file work in a thread of the store's own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Concatenate, Final, ParamSpec, TypeVar

import anyio

from agentstead.blobs import collecting, verifying
from agentstead.blobs.batch import CHUNK_BYTES
from agentstead.blobs.collecting import Collected
from agentstead.blobs.objects import Kind, ObjectStat
from agentstead.blobs.roots import Roots
from agentstead.blobs.store import BlobStore
from agentstead.blobs.trees import TreeEntry
from agentstead.blobs.verifying import Level, StoreVerified
from agentstead.state import Clock, State

P = ParamSpec("P")
T = TypeVar("T")

_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class StoreStats:
    """How much is stored: counts and bytes by kind, and what waits for collection."""

    blobs: int
    blob_bytes: int
    trees: int
    tree_bytes: int
    dead: int


class Blobs:
    """One home's objects: put before the row that refers to them is committed, and verified when read.

    `roots` holds the queries that say which objects the state database refers to.
    """

    def __init__(self, root: Path, *, clock: Clock) -> None:
        self.store = BlobStore(root, clock=clock)
        self.roots = Roots()
        self._limiter = anyio.CapacityLimiter(_THREADS)

    async def run(self, fn: Callable[Concatenate[BlobStore, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(store, ...)` in a thread of the store."""
        return await anyio.to_thread.run_sync(lambda: fn(self.store, *args, **kwargs), limiter=self._limiter)

    async def put(self, data: bytes, *, kind: Kind = "blob") -> str:
        """Store one object durably; return its id."""
        return await self.run(BlobStore.put, data, kind=kind)

    async def put_stream(self, source: BinaryIO) -> ObjectStat:
        """Store one blob from a stream, 1 MiB at a time; return its id and size."""
        return await self.run(BlobStore.put_stream, source)

    async def get(self, kind: Kind, object_id: str) -> bytes:
        """Return an object's bytes, verified; raise Unavailable `store.corrupt` where they are gone or altered."""
        return await self.run(BlobStore.get, kind, object_id)

    async def get_tree(self, object_id: str) -> tuple[TreeEntry, ...]:
        """Return the entries of a stored directory in byte order of name."""
        return await self.run(BlobStore.get_tree, object_id)

    async def open_stream(self, object_id: str) -> AsyncIterator[bytes]:
        """Yield a blob in chunks of 1 MiB; `store.corrupt` comes in place of the end unless the whole matched."""
        reader = await self.run(BlobStore.open_stream, object_id)
        try:
            while chunk := await self.run(lambda _store: reader.read(CHUNK_BYTES)):
                yield chunk
        finally:
            reader.close()

    async def has(self, kind: Kind, object_id: str) -> bool:
        """Tell whether an object is stored."""
        return await self.run(BlobStore.has, kind, object_id)

    async def stat(self, kind: Kind, object_id: str) -> ObjectStat:
        """Return an object's size; raise Unavailable `store.corrupt` where it is not stored."""
        return await self.run(BlobStore.stat, kind, object_id)

    async def pin(self, kind: Kind, object_id: str, *, owner: str, until_us: int) -> None:
        """Keep an object until a time (microseconds UTC), whatever the roots say."""
        await self.run(BlobStore.pin, kind, object_id, owner=owner, until_us=until_us)

    async def unpin(self, kind: Kind, object_id: str, *, owner: str) -> None:
        """Drop one owner's pin."""
        await self.run(BlobStore.unpin, kind, object_id, owner=owner)

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[None]:
        """Keep the collector away until the rows that refer to known ids are committed."""
        hold = self.store.holding()
        await self.run(lambda _store: hold.__enter__())
        try:
            yield
        finally:
            hold.__exit__(None, None, None)

    async def collect(self, state: State, *, dry_run: bool, grace_us: int = collecting.DEFAULT_GRACE_US) -> Collected:
        """Mark what nothing reaches as dead, and remove what has been dead for longer than the grace period."""
        last_held_ns = await self.run(lambda store: store.layout.last_held_ns())
        roots = await state.read(self.roots.read)
        marked = await self.run(collecting.mark, roots, last_held_ns=last_held_ns)
        return await self.run(collecting.sweep, marked, grace_us=grace_us, dry_run=dry_run)

    async def verify(self, state: State, *, level: Level = "index") -> StoreVerified:
        """Check that every reference can be read; level `bytes` hashes every stored object again."""
        roots = await state.read(self.roots.read)
        return await self.run(verifying.verify, roots, level=level)

    async def close(self) -> None:
        """End the use of the store by this object; nothing of it stays open between calls."""

    async def stats(self) -> StoreStats:
        """Count what is stored."""
        return await self.run(_stats)


def _stats(store: BlobStore) -> StoreStats:
    sizes: dict[Kind, list[int]] = {"blob": [], "tree": []}
    for key, size in store.layout.stored():
        sizes[key.kind].append(size)
    return StoreStats(
        blobs=len(sizes["blob"]),
        blob_bytes=sum(sizes["blob"]),
        trees=len(sizes["tree"]),
        tree_bytes=sum(sizes["tree"]),
        dead=len(store.index.deaths()),
    )
