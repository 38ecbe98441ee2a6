"""Find skill folders below a root, bounded in depth and number; what the bounds cut off is said, never silent."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentstead.skills.handles import Entry, entries, open_below, open_folder
from agentstead.skills.store import SKILL_FILES, Place

MAX_DEPTH: Final = 6
MAX_ENTRIES: Final = 20_000
MAX_CANDIDATES: Final = 5_000
SKIPPED: Final = frozenset({".git", "node_modules", "__pycache__", ".venv"})


@dataclass(frozen=True, slots=True)
class Found:
    """A skill folder; ``shown`` is where it stands under the root, ``place`` where it really is.

    ``place`` is None for a link that leads out of every allowed folder.
    """

    shown: Path
    place: Place | None


@dataclass(slots=True)
class Walked:
    """What one root held; ``truncated`` says which bounds were reached, ``unreadable`` why a folder was not read."""

    found: list[Found] = field(default_factory=list)
    truncated: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def walk(root: Path, *, allowed: Sequence[Path]) -> Walked:
    """Find the skill folders below ``root``; a folder that is a link counts where it ends below an ``allowed`` one."""
    walker = _Walker(root, allowed=tuple(Path(os.path.realpath(each)) for each in allowed))
    walker.run()
    return walker.walked


class _Walker:
    def __init__(self, root: Path, *, allowed: tuple[Path, ...]) -> None:
        self.walked = Walked()
        self._root = root
        self._base = Path(os.path.realpath(root))
        self._allowed = allowed
        self._left = MAX_ENTRIES
        self._stopped = False

    def run(self) -> None:
        try:
            with open_folder(self._base) as handle:
                for entry in self._folders(handle, ()):
                    self._visit(handle, (entry.name,), entry)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.walked.unreadable.append(f"{self._root}: {error.strerror}")

    def _visit(self, parent: int, parts: tuple[str, ...], entry: Entry) -> None:
        if self._stopped:
            return
        try:
            if entry.kind == "link":
                self._add(_linked(self._root.joinpath(*parts), self._allowed))
                return
            with open_below(parent, (entry.name,)) as handle:
                self._enter(handle, parts)
        except OSError as error:
            self.walked.unreadable.append(f"{self._root.joinpath(*parts)}: {error.strerror}")

    def _enter(self, handle: int, parts: tuple[str, ...]) -> None:
        listed = entries(handle, most=self._left)
        if any(entry.name in SKILL_FILES and entry.kind != "folder" for entry in listed):
            self._add(Found(self._root.joinpath(*parts), Place(self._base, parts)))
            return
        for entry in self._counted(listed, parts):
            self._visit(handle, (*parts, entry.name), entry)

    def _folders(self, handle: int, parts: tuple[str, ...]) -> Iterator[Entry]:
        return self._counted(entries(handle, most=self._left), parts)

    def _counted(self, listed: list[Entry], parts: tuple[str, ...]) -> Iterator[Entry]:
        self._left -= len(listed)
        if self._left < 0:
            self._cut(f"more than {MAX_ENTRIES} files and folders")
        below = [entry for entry in listed if entry.kind in ("folder", "link") and not _is_skipped(entry.name)]
        if below and len(parts) >= MAX_DEPTH:
            self._cut(f"folders nested deeper than {MAX_DEPTH}", stop=False)
            return
        yield from below

    def _add(self, found: Found | None) -> None:
        if found is None:
            return
        if len(self.walked.found) >= MAX_CANDIDATES:
            self._cut(f"more than {MAX_CANDIDATES} skills")
            return
        self.walked.found.append(found)

    def _cut(self, bound: str, *, stop: bool = True) -> None:
        self._stopped = self._stopped or stop
        if bound not in self.walked.truncated:
            self.walked.truncated.append(bound)


def _is_skipped(name: str) -> bool:
    return name in SKIPPED or name.startswith(".")


def _linked(shown: Path, allowed: Sequence[Path]) -> Found | None:
    """Return the skill folder that a link ends at; None where it ends at no folder, or at one that is no skill."""
    target = Path(os.path.realpath(shown))
    if not target.is_dir():
        return None
    base = next((each for each in allowed if target.is_relative_to(each)), None)
    if base is None:
        return Found(shown, None)
    place = Place(base, target.relative_to(base).parts)
    with open_folder(base) as handle, open_below(handle, place.parts) as folder:
        names = {entry.name for entry in entries(folder, most=MAX_ENTRIES)}
    return Found(shown, place) if names & set(SKILL_FILES) else None
