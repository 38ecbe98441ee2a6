"""Reading and editing stored trees by path: only the directories on the way are read or made again."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from agentstead.blobs import EMPTY_TREE, Batch, BlobStore, TreeEntry
from agentstead.workspace.paths import join, parts

Edits = Mapping[bytes, TreeEntry | None]


class Trees:
    """The directories of a store, each decoded and verified once."""

    def __init__(self, store: BlobStore) -> None:
        self.store = store
        self._known: dict[str, tuple[TreeEntry, ...]] = {EMPTY_TREE: ()}

    def entries(self, tree: str) -> tuple[TreeEntry, ...]:
        """Return a directory's entries in byte order of name; raise `store.corrupt` where it is gone or altered."""
        found = self._known.get(tree)
        if found is None:
            found = self._known[tree] = self.store.get_tree(tree)
        return found

    def learn(self, tree: str, entries: tuple[TreeEntry, ...]) -> str:
        """Take in a directory that was just made and is not stored yet; return its id."""
        self._known[tree] = entries
        return tree

    def entry(self, tree: str, path: bytes) -> TreeEntry | None:
        """Return the entry at a path below a tree, or None where there is none."""
        found: TreeEntry | None = None
        for name in parts(path):
            if found is not None and found.type != "d":
                return None
            at = tree if found is None else found.id
            found = next((entry for entry in self.entries(at) if entry.name == name), None)
            if found is None:
                return None
        return found

    def paths(self, tree: str, directory: bytes = b"") -> Iterator[tuple[bytes, TreeEntry]]:
        """Yield every path below a tree with its entry, directories before what they hold."""
        for entry in self.entries(tree):
            path = join(directory, entry.name)
            yield path, entry
            if entry.type == "d":
                yield from self.paths(entry.id, path)


def edited(trees: Trees, batch: Batch, tree: str, edits: Edits) -> str:
    """Return the tree that results from setting (or, with None, removing) entries at some paths; put what is new.

    An entry given for a directory counts with its mode alone: what it holds stays, or begins empty. Directories on
    the way to a new entry are made with mode 0755; a file in the way of one is replaced. A directory stays when its
    last entry is removed.
    """
    return _edited(trees, batch, tree, edits)[0]


def _edited(trees: Trees, batch: Batch, tree: str, edits: Edits) -> tuple[str, int]:
    entries = {entry.name: entry for entry in trees.entries(tree)}
    below: dict[bytes, dict[bytes, TreeEntry | None]] = {}
    for path, entry in edits.items():
        name, _, rest = path.partition(b"/")
        if rest:
            below.setdefault(name, {})[rest] = entry
        else:
            _set(entries, name, entry)
    for name, inner in below.items():
        old = entries.get(name)
        if old is None or old.type != "d":
            if all(entry is None for entry in inner.values()):
                continue
            old = TreeEntry(name, "d", 0o755, 0, EMPTY_TREE)
        below_tree, size = _edited(trees, batch, old.id, inner)
        entries[name] = replace(old, id=below_tree, size=size)
    made = tuple(sorted(entries.values(), key=lambda entry: entry.name))
    return trees.learn(batch.put_tree(made), made), sum(entry.size for entry in made)


def _set(entries: dict[bytes, TreeEntry], name: bytes, entry: TreeEntry | None) -> None:
    old = entries.get(name)
    if entry is None:
        entries.pop(name, None)
    elif entry.type == "d":
        kept = old if old is not None and old.type == "d" else TreeEntry(name, "d", 0, 0, EMPTY_TREE)
        entries[name] = replace(kept, mode=entry.mode)
    else:
        entries[name] = replace(entry, name=name)
