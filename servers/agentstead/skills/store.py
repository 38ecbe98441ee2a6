"""Hold the exact content of one skill folder and read its files. What cannot be held is refused as a whole."""

import mimetypes
import os
import posixpath
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agentstead.blobs import MAX_NAME_BYTES, TreeEntry, encode_tree, object_id
from agentstead.skills.handles import (
    Entry,
    Fingerprint,
    Moved,
    entries,
    link_target,
    open_below,
    open_folder,
    read_file,
)
from agentstead.skills.unseen import deceiving, reveal_line
from agentstead.skills.warm import WarmIds

MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 32
MAX_ENTRIES: Final = 4 * MAX_FILES
MAX_LINKS: Final = 8
SKILL_FILES: Final = ("SKILL.md", "skill.md")
# Built-in types only: what a machine's own tables add would differ from one machine to the next.
_MEDIA_TYPES: Final = mimetypes.MimeTypes()
# Its history is no part of a skill's content, and its hooks and configuration run programs.
OUTSIDE_THE_TREE: Final = ".git"

Refusal = Literal["path_escape", "too_large", "tree.collision", "scan_blocked", "link_refused", "content_changed"]


class TreeRefused(Exception):
    """A folder whose content cannot be held; ``reason`` is the code of the ruling that follows."""

    def __init__(self, reason: Refusal, message: str) -> None:
        super().__init__(message)
        self.reason: Refusal = reason


@dataclass(frozen=True, slots=True)
class Place:
    """A folder as a configured folder and the names below it, so that it can be opened without following links."""

    base: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The whole path."""
        return self.base.joinpath(*self.parts)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as listed: where its bytes stand, as the disk spells it, and its fingerprint."""

    parts: tuple[str, ...]
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class HeldFile:
    """One file of a held tree; ``path`` is NFC with ``/``."""

    path: str
    size: int
    blob_id: str
    executable: bool

    @property
    def media_type(self) -> str:
        """What the file's name says it is."""
        return media_type(self.path)


@dataclass(frozen=True, slots=True)
class HeldTree:
    """The exact content of a skill: its identity and every file of it, in order of path."""

    tree_id: str
    files: tuple[HeldFile, ...]


def hold(place: Place, *, warm: WarmIds | None = None) -> HeldTree:
    """Read every file of a skill folder and return its identity; with ``warm``, known files are not read again.

    Raises TreeRefused, or OSError when the folder is gone.
    """
    with open_folder(place.base) as base, open_below(base, place.parts) as root:
        return hold_listed(root, list_files(root), warm=warm)


def hold_listed(root: int, files: Mapping[str, Listed], *, warm: WarmIds | None = None) -> HeldTree:
    """Read the listed files below an open skill folder and return their tree; raises TreeRefused."""
    return held_tree({path: _held(root, path, file, warm=warm) for path, file in files.items()})


def list_files(root: int) -> dict[str, Listed]:
    """List the files below an open skill folder by NFC path, links inside it resolved.

    Raises TreeRefused.
    """
    listing = _Listing()
    listing.add_folder(root, ())
    files = listing.files
    for path in listing.links:
        files[path] = files[_resolve(path, files=files, links=listing.links)]
    _check_bounds(files)
    _check_collisions(files)
    return dict(sorted(files.items()))


def held_tree(files: Mapping[str, HeldFile]) -> HeldTree:
    """Return the tree of these files by path: modes 0755 and 0644 only, no empty folders, names in NFC."""
    ordered = tuple(files[path] for path in sorted(files))
    _, _, identity = _encode([(tuple(file.path.split("/")), file) for file in ordered])
    return HeldTree(identity, ordered)


def read_listed(root: int, file: Listed, *, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a listed file below an open skill folder; raises Moved."""
    with open_below(root, file.parts[:-1]) as folder:
        return read_file(folder, file.parts[-1], expected=file.fingerprint, most=most)


def media_type(path: str) -> str:
    """Return the media type that a file's name says."""
    if path.lower().endswith((".md", ".markdown")):
        return "text/markdown"
    return _MEDIA_TYPES.guess_type(path, strict=False)[0] or "application/octet-stream"


class _Listing:
    """One walk over a skill folder: its files and links by NFC path, and how many names it may still meet."""

    def __init__(self) -> None:
        self.files: dict[str, Listed] = {}
        self.links: dict[str, str] = {}
        self._left = MAX_ENTRIES

    def add_folder(self, folder: int, parts: tuple[str, ...]) -> None:
        if len(parts) > MAX_DEPTH:
            raise TreeRefused("too_large", f"Folders are nested deeper than {MAX_DEPTH}.")
        found = entries(folder, most=self._left)
        self._left -= len(found)
        if self._left < 0:
            raise TreeRefused("too_large", f"The skill has more than {MAX_ENTRIES} files and folders.")
        for entry in found:
            if parts or entry.name != OUTSIDE_THE_TREE:
                self._add(folder, (*parts, entry.name), entry)

    def _add(self, folder: int, parts: tuple[str, ...], entry: Entry) -> None:
        path = _plain_path(parts)
        if path in self.files or path in self.links:
            raise TreeRefused("tree.collision", f"Two files have the name {path!r}.")
        match entry.kind:
            case "file":
                self.files[path] = Listed(parts, entry.fingerprint)
            case "link":
                self.links[path] = link_target(folder, entry.name)
            case "folder":
                with open_below(folder, (entry.name,)) as handle:
                    self.add_folder(handle, parts)
            case "special":
                raise TreeRefused("path_escape", f"{path!r} is a device, socket or pipe.")


def _plain_path(parts: tuple[str, ...]) -> str:
    name = unicodedata.normalize("NFC", parts[-1])
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise TreeRefused("path_escape", f"A file name is not UTF-8: {os.fsencode(parts[-1])!r}.") from None
    if size > MAX_NAME_BYTES or "\\" in name:
        raise TreeRefused("path_escape", f"{reveal_line(name, limit=80)!r} is no portable file name.")
    if unseen := deceiving(name.replace("\n", "\x0b").replace("\t", "\x0b").replace("\r", "\x0b")):
        shown = reveal_line(name, limit=80)
        raise TreeRefused("scan_blocked", f"The file name {shown!r} holds {unseen.code_point}, which nobody sees.")
    return "/".join((*(unicodedata.normalize("NFC", part) for part in parts[:-1]), name))


def _resolve(path: str, *, files: Mapping[str, Listed], links: Mapping[str, str]) -> str:
    at = path
    for _ in range(MAX_LINKS):
        if at not in links:
            break
        target = unicodedata.normalize("NFC", links[at])
        at = posixpath.normpath(posixpath.join(posixpath.dirname(at), target))
    # Folder links are listed as links and never as files, so the text alone tells where a link ends.
    if at not in files or at in links:
        shown = reveal_line(links[path], limit=80)
        raise TreeRefused("path_escape", f"The link {path!r} -> {shown!r} does not end at a file of the skill.")
    return at


def _check_bounds(files: Mapping[str, Listed]) -> None:
    if len(files) > MAX_FILES:
        raise TreeRefused("too_large", f"The skill has {len(files)} files, more than {MAX_FILES}.")
    total = sum(file.fingerprint.size for file in files.values())
    if total > MAX_BYTES:
        raise TreeRefused("too_large", f"The skill has {total} bytes, more than {MAX_BYTES}.")


def _check_collisions(files: Mapping[str, Listed]) -> None:
    seen: dict[str, str] = {}
    # SKILL.md beside skill.md has a rule of its own: the first is read, with a warning.
    for path in _with_folders({path: file for path, file in files.items() if path != SKILL_FILES[1]}):
        folded = unicodedata.normalize("NFC", path.casefold())
        if seen.setdefault(folded, path) != path:
            raise TreeRefused("tree.collision", f"{path!r} and {seen[folded]!r} are one name on many systems.")


def _with_folders(files: Mapping[str, Listed]) -> Iterator[str]:
    for path in files:
        yield path
        folder = posixpath.dirname(path)
        while folder:
            yield folder
            folder = posixpath.dirname(folder)


def _held(root: int, path: str, file: Listed, *, warm: WarmIds | None) -> HeldFile:
    known = warm.get(file.fingerprint) if warm else None
    if known is None:
        try:
            data = read_listed(root, file)
        except Moved as moved:
            raise TreeRefused("content_changed", f"{path!r} was replaced or grew while it was read.") from moved
        known = object_id(data)
        if len(data) != file.fingerprint.size:
            raise TreeRefused("content_changed", f"{path!r} changed while it was read.")
        if warm:
            warm.put(file.fingerprint, known)
    return HeldFile(path, file.fingerprint.size, known, file.fingerprint.executable)


def _encode(files: list[tuple[tuple[str, ...], HeldFile]]) -> tuple[list[TreeEntry], int, str]:
    """Return the entries of one folder, the bytes below it and its tree id; paths are relative to it."""
    found: list[TreeEntry] = []
    below: dict[str, list[tuple[tuple[str, ...], HeldFile]]] = {}
    for parts, file in files:
        if len(parts) > 1:
            below.setdefault(parts[0], []).append((parts[1:], file))
        else:
            mode = 0o755 if file.executable else 0o644
            found.append(TreeEntry(parts[0].encode(), "f", mode, file.size, file.blob_id))
    for name, inner in below.items():
        _, size, identity = _encode(inner)
        found.append(TreeEntry(name.encode(), "d", 0o755, size, identity))
    return found, sum(entry.size for entry in found), object_id(encode_tree(found))
