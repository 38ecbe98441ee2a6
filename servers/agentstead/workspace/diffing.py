"""Comparing two trees for an answer: a page of files, with patch text that is never cut within a hunk."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from agentstead.blobs import BlobStore, TreeEntry
from agentstead.policy import Redactor
from agentstead.workspace.changes import Change, changes, with_renames
from agentstead.workspace.contents import Trees
from agentstead.workspace.paths import is_within
from agentstead.workspace.shapes import change_object
from agentstead.workspace.unified import TEXT_BYTES, FilePatch, file_patch

Detail = Literal["brief", "patch"]

PAGE_BYTES: Final = 65_536
# Counting lines means reading both sides: a brief list of very many files goes without.
_COUNTED_FILES: Final = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """What is compared and how much of it is shown: files from `file` on, segments of the first from `segment` on."""

    old: str
    new: str
    detail: Detail
    paths: tuple[bytes, ...]
    most_files: int
    file: int = 0
    segment: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a comparison, and where the next begins (None at the end)."""

    files: Sequence[dict[str, Any]]
    totals: dict[str, int]
    patch: str | None
    following: tuple[int, int] | None


def compare(store: BlobStore, redactor: Redactor, asked: Asked) -> Page:
    """Return a page of what differs between two trees."""
    found = [each for each in changes(Trees(store), asked.old, asked.new) if _is_asked(each, asked.paths)]
    found = with_renames(found)
    totals = dict(sorted(Counter(change.status for change in found).items())) | {"files": len(found)}
    if asked.detail == "brief":
        return _brief(store, asked, found, totals)
    return _patch(store, redactor, asked, found, totals)


def _brief(store: BlobStore, asked: Asked, found: list[Change], totals: dict[str, int]) -> Page:
    end = asked.file + asked.most_files
    counted = len(found) <= _COUNTED_FILES
    files = [change_object(each, _counts(store, each) if counted else None) for each in found[asked.file : end]]
    return Page(files, totals, None, (end, 0) if end < len(found) else None)


def _patch(store: BlobStore, redactor: Redactor, asked: Asked, found: list[Change], totals: dict[str, int]) -> Page:
    files: list[dict[str, Any]] = []
    text: list[bytes] = []
    size = 0
    for number in range(asked.file, len(found)):
        if len(files) >= asked.most_files:
            return Page(files, totals, _text(redactor, text), (number, 0))
        part = file_patch(found[number], lambda blob: store.get("blob", blob))
        start = asked.segment if number == asked.file else 0
        files.append(change_object(found[number], part))
        for at in range(start, len(part.segments)):
            segment = part.segments[at]
            if text and size + len(segment) > PAGE_BYTES:
                return Page(files, totals, _text(redactor, text), (number, at))
            text.append(segment)
            size += len(segment)
    return Page(files, totals, _text(redactor, text), None)


def _counts(store: BlobStore, change: Change) -> FilePatch | None:
    sides = [entry for entry in (change.old, change.new) if entry is not None]
    if any(entry.type == "d" or entry.size > TEXT_BYTES for entry in sides):
        return None
    return replace(file_patch(change, lambda blob: store.get("blob", blob), context=0), segments=())


def _text(redactor: Redactor, segments: Sequence[bytes]) -> str:
    return redactor.text(b"".join(segments).decode("utf-8", "replace"))


def _is_asked(change: Change, paths: tuple[bytes, ...]) -> bool:
    return not paths or is_within(change.path, paths)


def changed_counts(store: BlobStore, old: str, new: str) -> dict[str, int]:
    """Return how many files were added, modified and deleted between two trees."""
    found = [change for change in changes(Trees(store), old, new) if not _is_directory(change.old or change.new)]
    kinds = {"added": "added", "deleted": "deleted"}
    seen = Counter(kinds.get(change.status, "modified") for change in found)
    return {kind: seen[kind] for kind in ("added", "modified", "deleted")}


def _is_directory(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.type == "d"
