"""Verification: that everything referred to is there, and (level `bytes`) that every stored byte is as its id says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agentstead.blobs.objects import ObjectKey
from agentstead.blobs.store import BlobStore
from agentstead.state import Unavailable

Level = Literal["index", "bytes"]


@dataclass(frozen=True, slots=True)
class StoreVerified:
    """What a verification looked at and found; `ok` is true when nothing is missing and nothing is altered."""

    level: Level
    stored: int
    stored_bytes: int
    reached: int
    missing: tuple[ObjectKey, ...]
    corrupt: tuple[ObjectKey, ...]

    @property
    def ok(self) -> bool:
        """Tell whether every reference can be read back."""
        return not self.missing and not self.corrupt


def verify(store: BlobStore, roots: Iterable[ObjectKey], *, level: Level) -> StoreVerified:
    """Check the store against its references; `bytes` hashes every stored object again."""
    reached, missing = store.reach(roots)
    sizes = dict(store.layout.stored())
    corrupt = [key for key in sizes if not _is_intact(store, key)] if level == "bytes" else []
    return StoreVerified(
        level=level,
        stored=len(sizes),
        stored_bytes=sum(sizes.values()),
        reached=len(reached),
        missing=tuple(sorted(missing)),
        corrupt=tuple(sorted(corrupt)),
    )


def _is_intact(store: BlobStore, key: ObjectKey) -> bool:
    try:
        if key.kind == "tree":
            store.get_tree(key.id)
        else:
            with store.open_stream(key.id) as source:
                while source.read(2**20):
                    pass
    except Unavailable:
        return False
    return True
