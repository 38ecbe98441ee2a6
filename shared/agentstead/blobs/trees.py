"""The encoding of a directory: the one format that tree ids of workspaces, packages and skills rest on.

Equal content is equal identity: names, types, nine mode bits, sizes and ids count; times, owners and inodes do not.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from agentstead.blobs.objects import object_id

EntryType = Literal["f", "d", "l"]

TREE_HEADER: Final = b"agentstead.tree/1\n"
MAX_NAME_BYTES: Final = 255

_HEAD: Final = struct.Struct(">cHQ32sH")
_TYPES: Final[dict[bytes, EntryType]] = {b"f": "f", b"d": "d", b"l": "l"}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One name in a directory: a file, a directory or a symbolic link.

    `mode` is the low nine permission bits (0 for a link); `size` the bytes of a file, the length of a link's
    target, or the sum of the sizes below a directory; `id` the blob of a file or of a link's target, or a tree.
    """

    name: bytes
    type: EntryType
    mode: int
    size: int
    id: str


class TreeFormatError(ValueError):
    """Bytes that are no canonical tree encoding; the message says where they depart from it."""


def encode_tree(entries: Iterable[TreeEntry]) -> bytes:
    """Return the canonical bytes of a directory; raise TreeFormatError for entries that cannot stand in one."""
    parts = [TREE_HEADER]
    before: bytes | None = None
    for entry in sorted(entries, key=_name_of):
        check_name(entry.name)
        if entry.name == before:
            raise TreeFormatError(f"the name {entry.name!r} occurs twice")
        if not 0 <= entry.mode <= 0o777 or (entry.type == "l" and entry.mode):
            raise TreeFormatError(f"{entry.name!r} has mode {entry.mode:o}")
        head = (entry.type.encode(), entry.mode, entry.size, bytes.fromhex(entry.id), len(entry.name))
        parts += (_HEAD.pack(*head), entry.name)
        before = entry.name
    return b"".join(parts)


def decode_tree(data: bytes) -> tuple[TreeEntry, ...]:
    """Return the entries of an encoded directory in byte order of name; raise TreeFormatError unless canonical."""
    if not data.startswith(TREE_HEADER):
        raise TreeFormatError("the header is missing")
    entries: list[TreeEntry] = []
    at = len(TREE_HEADER)
    while at < len(data):
        entry, at = _decode_entry(data, at)
        if entries and entries[-1].name >= entry.name:
            raise TreeFormatError(f"{entry.name!r} is out of order")
        entries.append(entry)
    return tuple(entries)


def tree_id(entries: Iterable[TreeEntry]) -> str:
    """Return the id of the directory that holds exactly these entries."""
    return object_id(encode_tree(entries))


def check_name(name: bytes) -> None:
    """Raise TreeFormatError unless the bytes can name one entry of a directory."""
    if not name or len(name) > MAX_NAME_BYTES or name in {b".", b".."} or b"/" in name or b"\0" in name:
        raise TreeFormatError(f"{name[:80]!r} cannot be a name")


def _name_of(entry: TreeEntry) -> bytes:
    return entry.name


def _decode_entry(data: bytes, at: int) -> tuple[TreeEntry, int]:
    end = at + _HEAD.size
    if end > len(data):
        raise TreeFormatError("the last entry is cut off")
    kind, mode, size, raw_id, length = _HEAD.unpack_from(data, at)
    name = data[end : end + length]
    if len(name) != length:
        raise TreeFormatError("the last name is cut off")
    check_name(name)
    if kind not in _TYPES or mode > 0o777 or (kind == b"l" and mode):
        raise TreeFormatError(f"{name!r} has type {kind!r} and mode {mode:o}")
    return TreeEntry(name, _TYPES[kind], mode, size, raw_id.hex()), end + length


EMPTY_TREE: Final = tree_id(())
