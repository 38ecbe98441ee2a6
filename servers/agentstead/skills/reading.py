"""Read a file of a held content: what stands on disk must be exactly what is held, and what is returned is hashed."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agentstead.blobs import object_id
from agentstead.skills.handles import Moved, open_below, open_folder
from agentstead.skills.store import HeldFile, Listed, Place, TreeRefused, list_files, read_listed
from agentstead.skills.unseen import reveal
from agentstead.state import Invalid, NotFound

LONGEST_CHARACTER: Final = 4


class ContentChanged(Exception):
    """The folder is not what is held; the message says what differs."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file: ``text`` with unseen characters shown, or ``base64``; ``next_offset`` is None at the end."""

    text: str | None
    base64: str | None
    revealed: bool
    next_offset: int | None


def check_path(path: str) -> None:
    """Raise Invalid (``skill.path_escape``) for a path that could lead anywhere but below a skill."""
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise Invalid(
            "skill.path_escape",
            f"{path[:80]!r} does not name a file below the skill.",
            remedy="Use a path of the `files` that skill_activate returned.",
        )


def read_held(place: Place, held: Mapping[str, HeldFile], path: str) -> bytes:
    """Return the bytes of a held file, or all of them checked to be the held ones. It reads the disk.

    Raises ContentChanged, NotFound (``skill.file_unlisted``).
    """
    try:
        with open_folder(place.base) as base, open_below(base, place.parts) as root:
            listed = list_files(root)
            _compare(listed, held)
            if path not in held:
                raise _unlisted(path, held)
            data = read_listed(root, listed[path])
    except (TreeRefused, Moved) as error:
        raise ContentChanged(str(error)) from None
    except OSError as error:
        raise ContentChanged(f"It cannot be read any more: {error.strerror}.") from None
    if object_id(data) != held[path].blob_id:
        raise ContentChanged(f"{path!r} has other bytes.")
    return data


def piece(data: bytes, *, offset: int, length: int) -> Piece:
    """Cut a part out of a file, for text at whole characters; an offset inside a character goes back to its start."""
    try:
        data.decode()
        is_text = b"\0" not in data
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        part = data[offset : offset + length]
        return Piece(None, base64.b64encode(part).decode(), False, _next(data, offset + length))
    start = _boundary(data, offset)
    end = _boundary(data, max(offset + length, start + LONGEST_CHARACTER))
    text = data[start:end].decode()
    shown = reveal(text)
    return Piece(shown, None, shown != text, _next(data, end))


def _compare(listed: Mapping[str, Listed], held: Mapping[str, HeldFile]) -> None:
    if added := sorted(set(listed) - set(held)):
        raise ContentChanged(f"{added[0]!r} was added.")
    if gone := sorted(set(held) - set(listed)):
        raise ContentChanged(f"{gone[0]!r} is gone.")
    for path, file in listed.items():
        facts = (file.fingerprint.size, file.fingerprint.executable)
        if facts != (held[path].size, held[path].executable):
            raise ContentChanged(f"{path!r} changed.")


def _boundary(data: bytes, at: int) -> int:
    at = min(at, len(data))
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _next(data: bytes, end: int) -> int | None:
    return end if end < len(data) else None


def _unlisted(path: str, held: Mapping[str, HeldFile]) -> NotFound:
    shown = ", ".join(sorted(held)[:8])
    return NotFound(
        "skill.file_unlisted",
        f"The skill has no file {path[:80]!r}.",
        remedy=f"It has: {shown}{' ...' if len(held) > 8 else ''}",
    )
