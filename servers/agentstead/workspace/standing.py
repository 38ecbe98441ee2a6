"""What stands under a name, compared with what a plan says; and removing what is empty or ours."""

import os

from agentstead.blobs import TreeEntry
from agentstead.workspace.exchange import Name


def same(found: TreeEntry | None, expected: TreeEntry | None) -> bool:
    """Compare what stands at a path with an entry; a directory counts by its mode alone."""
    if found is None or expected is None:
        return found is expected
    if found.type != expected.type or found.mode != expected.mode:
        return False
    return found.type == "d" or found.id == expected.id


def is_plain(name: Name) -> bool:
    """Tell whether a name is no directory, or an empty one."""
    try:
        descriptor = os.open(name.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=name.directory)
    except OSError:
        return True
    try:
        with os.scandir(descriptor) as found:
            return next(found, None) is None
    finally:
        os.close(descriptor)


def remove_empty(target: Name) -> bool:
    """Remove a directory if it is empty; false where something is in it, true also where it is gone already."""
    try:
        os.rmdir(target.name, dir_fd=target.directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove(name: Name) -> None:
    """Remove prepared content of ours: a file, a link, or an empty directory."""
    try:
        os.unlink(name.name, dir_fd=name.directory)
    except (IsADirectoryError, PermissionError):
        os.rmdir(name.name, dir_fd=name.directory)
