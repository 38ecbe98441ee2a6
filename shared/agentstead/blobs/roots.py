"""What the objects are kept for: queries of the state database that yield the ids that each server holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agentstead.blobs.objects import ObjectKey, object_key
from agentstead.state import Reading

_COLUMNS: Final = ("kind", "id")


@dataclass(frozen=True, slots=True)
class Root:
    """A query with the columns `kind` and `id`; rows whose id is empty or NULL hold nothing."""

    name: str
    sql: str


class Roots:
    """The registered roots of one home; what no root reaches and no pin holds may be collected."""

    def __init__(self) -> None:
        self._roots: dict[str, Root] = {}

    def register(self, name: str, sql: str) -> None:
        """Add a query under a name; raise ValueError for a second, different query of that name."""
        root = Root(name, sql)
        if self._roots.setdefault(name, root) != root:
            raise ValueError(f"the blob root {name} is registered twice with different queries")

    def names(self) -> list[str]:
        """Return the names of the registered roots."""
        return sorted(self._roots)

    def read(self, reading: Reading) -> list[ObjectKey]:
        """Return the objects that the state database refers to now."""
        return [key for root in self._roots.values() for key in _keys(reading, root)]


def _keys(reading: Reading, root: Root) -> Iterator[ObjectKey]:
    for row in reading.all(root.sql):
        if tuple(row.keys()) != _COLUMNS:
            raise ValueError(f"the blob root {root.name} must yield the columns kind and id")
        if row["id"]:
            yield object_key(row["kind"], row["id"])
