"""The place beside a tree where an apply prepares what comes and keeps what goes: one folder an operation.

`new/<n>` holds prepared content, `old/<n>` what was displaced, `back/<n>.<round>` what came out when something was put
back. All of it lies on the tree's own file system, and the whole folder moves to the trash in the end.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentstead.blobs import sync_path
from agentstead.state import CRASH_POINTS, Invalid, crash_point
from agentstead.workspace.exchange import Name

STAGE: Final = "stage"
TRASH: Final = "trash"
_FOLDERS: Final = ("new", "old", "back")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_BEFORE_SETTLE, _AFTER_SETTLE = CRASH_POINTS.declare("workspace.settle")


@dataclass(frozen=True, slots=True)
class Area:
    """The opened folders of one operation."""

    new: int
    old: int
    back: int

    def staged(self, ordinal: int) -> Name:
        """Return where the new content of a step is prepared."""
        return Name(self.new, b"%d" % ordinal)

    def displaced(self, ordinal: int) -> Name:
        """Return where what a step displaced is kept."""
        return Name(self.old, b"%d" % ordinal)

    def returned(self, ordinal: int, turn: int) -> Name:
        """Return where what came out at a turn of putting back is kept."""
        return Name(self.back, b"%d.%d" % (ordinal, turn))

    def kept(self, ordinal: int) -> Iterator[Name]:
        """Yield every name that a step displaced or took out and that is there."""
        for candidate in (self.displaced(ordinal), *(self.returned(ordinal, turn) for turn in range(MOST_TURNS))):
            if exists(candidate):
                yield candidate


MOST_TURNS: Final = 64


def exists(name: Name) -> bool:
    """Tell whether anything stands under a name."""
    try:
        os.stat(name.name, dir_fd=name.directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def opened_area(base: Path, operation_id: str) -> Iterator[Area]:
    """Open the folders of an operation below `base`, making what is missing.

    Raises Invalid `path.symlink` where a link stands in the place of one of them.
    """
    path = base / STAGE / operation_id
    with ExitStack() as stack:
        for folder in (base, base / STAGE, path, *(path / name for name in _FOLDERS)):
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            stack.callback(os.close, _opened(folder))
        new, old, back = (_opened(path / name) for name in _FOLDERS)
        for descriptor in (new, old, back):
            stack.callback(os.close, descriptor)
        yield Area(new, old, back)


def has_area(base: Path, operation_id: str) -> bool:
    """Tell whether an operation has a folder that was not moved to the trash yet."""
    return (base / STAGE / operation_id).is_dir()


def settle(base: Path, operation_id: str) -> None:
    """Move an operation's folder to the trash in one step; doing it again changes nothing."""
    source, target = base / STAGE / operation_id, base / TRASH / operation_id
    with suppress(FileExistsError):
        target.parent.mkdir(mode=0o700)
    crash_point(_BEFORE_SETTLE)
    with suppress(FileNotFoundError):
        source.rename(target)
        sync_path(target.parent)
    crash_point(_AFTER_SETTLE)


def _opened(folder: Path) -> int:
    try:
        return os.open(folder, _DIRECTORY)
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise Invalid(
            "path.symlink",
            f"{folder} is a link or a file",
            remedy="Make it a directory: what Agentstead prepares must lie beside the tree.",
        ) from None
