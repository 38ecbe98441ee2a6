"""Changes as patch text that `git apply` and `patch -p1` accept, in segments that are never cut.

A segment is the head of one file's change, one hunk, or one literal block; pages are whole segments.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentstead.blobs import TreeEntry
from agentstead.workspace.changes import Change
from agentstead.workspace.lines import Block, LineDiff, line_diff, split_lines

CONTEXT_LINES: Final = 3
LITERAL_BYTES: Final = 64 * 2**10
TEXT_BYTES: Final = 2**20
_BINARY_LOOK: Final = 8_000
_ZERO_ID: Final = "0" * 40
_NO_END: Final = b"\\ No newline at end of file\n"
_LITERAL_LINE: Final = 52

ReadBlob = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """One file's change as text segments, and what it amounts to in lines."""

    segments: tuple[bytes, ...]
    binary: bool
    lines_added: int
    lines_deleted: int
    approximate: bool = False


def is_binary(data: bytes) -> bool:
    """Tell whether bytes are no text: a NUL within the first 8,000."""
    return b"\0" in data[:_BINARY_LOOK]


def file_patch(change: Change, read: ReadBlob, *, context: int = CONTEXT_LINES) -> FilePatch:
    """Return the patch of one change of files or links; directories have none of their own.

    A change of type is a deletion and an addition, since no patch format knows another way.
    """
    old, new = _leaf(change.old), _leaf(change.new)
    if old is None and new is None:
        return FilePatch((), False, 0, 0)
    if old is not None and new is not None and old.type != new.type:
        gone = file_patch(Change(change.path, old, None), read, context=context)
        come = file_patch(Change(change.path, None, new), read, context=context)
        segments = gone.segments + come.segments
        return FilePatch(segments, gone.binary or come.binary, come.lines_added, gone.lines_deleted)
    before, after = _bytes(old, read), _bytes(new, read)
    head = _head(change, old, new)
    if old is not None and new is not None and old.id == new.id:
        return FilePatch((head,) if head.count(b"\n") > 1 else (), False, 0, 0)
    if before is None or after is None or is_binary(before) or is_binary(after):
        return FilePatch(_binary_segments(head, old, new, before, after), True, 0, 0)
    old_lines, new_lines = split_lines(before), split_lines(after)
    difference = line_diff(old_lines, new_lines)
    if not _is_utf8(before) or not _is_utf8(after):
        # Text in another encoding: no answer could carry its lines unaltered.
        literal = _binary_segments(head, old, new, before, after)
        return FilePatch(literal, False, difference.added, difference.deleted, difference.approximate)
    names = _names(change, old, new) if difference.blocks else b""
    hunks = tuple(_hunks(old_lines, new_lines, difference, context))
    segments = (head + names + hunks[0], *hunks[1:]) if hunks else (head,)
    return FilePatch(segments, False, difference.added, difference.deleted, difference.approximate)


def quoted(prefix: bytes, path: bytes) -> bytes:
    """Return a path as git writes it: in C quotes with octal escapes where it holds unusual bytes."""
    whole = prefix + path
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in whole):
        return whole
    return b'"' + b"".join(_ESCAPES.get(byte) or _escaped(byte) for byte in whole) + b'"'


_ESCAPES: Final = {
    **dict(zip(b"\a\b\t\n\v\f\r", (b"\\a", b"\\b", b"\\t", b"\\n", b"\\v", b"\\f", b"\\r"), strict=True)),
    ord('"'): b'\\"',
    ord("\\"): b"\\\\",
}


def _escaped(byte: int) -> bytes:
    return bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte


def _leaf(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry is None or entry.type == "d" else entry


def _bytes(entry: TreeEntry | None, read: ReadBlob) -> bytes | None:
    """Return what an entry holds; None where it is too large to be compared as text."""
    if entry is None:
        return b""
    return read(entry.id) if entry.size <= TEXT_BYTES else None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _mode(entry: TreeEntry) -> bytes:
    """Return one of the three modes that patches know."""
    if entry.type == "l":
        return b"120000"
    return b"100755" if entry.mode & 0o111 else b"100644"


def _head(change: Change, old: TreeEntry | None, new: TreeEntry | None) -> bytes:
    old_path = change.old_path or change.path
    lines = [b"diff --git " + quoted(b"a/", old_path) + b" " + quoted(b"b/", change.path)]
    if old is None and new is not None:
        lines.append(b"new file mode " + _mode(new))
    elif new is None and old is not None:
        lines.append(b"deleted file mode " + _mode(old))
    elif old is not None and new is not None and _mode(old) != _mode(new):
        lines += [b"old mode " + _mode(old), b"new mode " + _mode(new)]
    if change.old_path is not None:
        lines += [b"similarity index 100%", b"rename from " + quoted(b"", old_path)]
        lines.append(b"rename to " + quoted(b"", change.path))
    return b"\n".join(lines) + b"\n"


def _names(change: Change, old: TreeEntry | None, new: TreeEntry | None) -> bytes:
    before = b"/dev/null" if old is None else _ended(quoted(b"a/", change.old_path or change.path))
    after = b"/dev/null" if new is None else _ended(quoted(b"b/", change.path))
    return b"--- " + before + b"\n+++ " + after + b"\n"


def _ended(name: bytes) -> bytes:
    """End a name that holds a blank with a tab, so that `patch` does not take the rest for a date."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def _hunks(old: list[bytes], new: list[bytes], difference: LineDiff, context: int) -> Iterator[bytes]:
    for blocks in _grouped(difference.blocks, context):
        first, last = blocks[0], blocks[-1]
        old_start = max(0, first.old_start - context)
        new_start = max(0, first.new_start - context)
        old_end = min(len(old), last.old_end + context)
        new_end = min(len(new), last.new_end + context)
        out = [b"@@ -%s +%s @@\n" % (_span(old_start, old_end), _span(new_start, new_end))]
        at = old_start
        for block in blocks:
            out += (_line(b" ", line) for line in old[at : block.old_start])
            out += (_line(b"-", line) for line in old[block.old_start : block.old_end])
            out += (_line(b"+", line) for line in new[block.new_start : block.new_end])
            at = block.old_end
        out += (_line(b" ", line) for line in old[at:old_end])
        yield b"".join(out)


def _grouped(blocks: Sequence[Block], context: int) -> Iterator[list[Block]]:
    """Put blocks whose surroundings touch into one hunk."""
    group: list[Block] = []
    for block in blocks:
        if group and block.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _span(start: int, end: int) -> bytes:
    """Return `line,count` as hunks write it: an empty range names the line before it."""
    count = end - start
    return b"%d" % (start + 1) if count == 1 else b"%d,%d" % (start + bool(count), count)


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n" + _NO_END


def _binary_segments(
    head: bytes, old: TreeEntry | None, new: TreeEntry | None, before: bytes | None, after: bytes | None
) -> tuple[bytes, ...]:
    """Write both states as literal blocks where they are small, else a stub that names their ids."""
    if before is None or after is None or max(len(before), len(after)) > LITERAL_BYTES:
        ids = (entry.id if entry else "none" for entry in (old, new))
        return (head + b"Binary files differ: blob:%s and blob:%s\n" % tuple(each.encode() for each in ids),)
    names = [_git_id(data) if entry else _ZERO_ID for entry, data in ((old, before), (new, after))]
    index = f"index {names[0]}..{names[1]}\n".encode()
    return (head + index + b"GIT binary patch\n" + _literal(after) + b"\n" + _literal(before) + b"\n",)


def _git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data)
    lines = [b"literal %d" % len(data)]
    for start in range(0, len(packed), _LITERAL_LINE):
        chunk = packed[start : start + _LITERAL_LINE]
        length = len(chunk) + (ord("A") - 1 if len(chunk) <= 26 else ord("a") - 27)
        lines.append(bytes([length]) + base64.b85encode(chunk, pad=True))
    return b"\n".join(lines) + b"\n"
