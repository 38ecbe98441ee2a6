"""Writing a whole stored tree into an empty directory: real copies, shared with nothing."""

import os
from typing import Final

from agentstead.blobs import TreeEntry
from agentstead.workspace.contents import Trees
from agentstead.workspace.writing import set_mode, write_entry

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def materialise(trees: Trees, tree: str, root: int) -> int:
    """Write a tree below an open, empty directory; return how many files were written.

    Every byte is verified on its way out of the store. Raises `store.corrupt` for what cannot be read, and
    FileExistsError where the directory was not empty.
    """
    return sum(_write(trees, entry, root) for entry in trees.entries(tree))


def _write(trees: Trees, entry: TreeEntry, directory: int) -> int:
    write_entry(trees.store, directory, entry.name, entry, durable=False)
    if entry.type != "d":
        return int(entry.type == "f")
    below = os.open(entry.name, _DIRECTORY, dir_fd=directory)
    try:
        files = materialise(trees, entry.id, below)
    finally:
        os.close(below)
    # Last, so that a directory without write permission can be filled; the umask may have taken bits as well.
    set_mode(directory, entry.name, entry.mode)
    return files
