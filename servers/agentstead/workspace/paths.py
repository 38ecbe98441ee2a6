"""Paths inside a tree: bytes within, and a text form for answers and arguments that loses nothing.

`\\xNN` stands for a byte that is no printable text; a backslash itself is shown as `\\x5c`.
"""

import base64
import re
from collections.abc import Iterable
from typing import Final

from agentstead.blobs import MAX_NAME_BYTES
from agentstead.state import Invalid

MAX_PATH_BYTES: Final = 4096
MAX_DEPTH: Final = 256

_ESCAPE: Final = re.compile(rb"\\x([0-9a-f]{2})")
_DRIVE: Final = re.compile(rb"[A-Za-z]:[\\/]")


def shown(path: bytes) -> str:
    """Return a path as text: what `given` turns back into the same bytes."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_shown_char(char) for char in text)


def encoded(path: bytes) -> str | None:
    """Return a path in base64 where its text form shows escapes, else None."""
    return None if shown(path).encode() == path else base64.b64encode(path).decode()


def given(text: str, *, what: str = "path") -> bytes:
    """Return the bytes of a path that a caller named; raise Invalid `path.invalid` for one that could lead outside."""
    path = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "surrogatepass"))
    reason = _fault(path)
    if reason:
        raise Invalid(
            "path.invalid",
            f"the {what} {shown(path[:80])!r} {reason}",
            remedy="Give a relative path with forward slashes, from the root of the tree.",
        )
    return path


def given_base64(text: str) -> bytes:
    """Return the bytes of a path that a caller gave in base64, under the same rules."""
    try:
        path = base64.b64decode(text, validate=True)
    except ValueError:
        raise Invalid("path.invalid", "path_b64 is no base64", remedy="Encode the bytes of the path.") from None
    return given(shown(path))


def parts(path: bytes) -> tuple[bytes, ...]:
    """Return the names that a path consists of; sorting by them puts a directory before what it holds."""
    return tuple(path.split(b"/"))


def join(directory: bytes, name: bytes) -> bytes:
    """Return the path of a name in a directory; the root is the empty path."""
    return directory + b"/" + name if directory else name


def parent(path: bytes) -> bytes:
    """Return the directory of a path; the root is the empty path."""
    return path.rpartition(b"/")[0]


def is_within(path: bytes, roots: Iterable[bytes]) -> bool:
    """Tell whether a path is one of the roots or below one."""
    return any(path == root or path.startswith(root + b"/") for root in roots)


def _fault(path: bytes) -> str:
    """Return what is wrong with a path, or an empty text."""
    names = path.split(b"/")
    if not path:
        return "is empty"
    if b"\0" in path:
        return "holds a NUL byte"
    if path.startswith(b"/") or _DRIVE.match(path):
        return "is absolute"
    if any(name in {b"", b".", b".."} for name in names):
        return "holds an empty, `.` or `..` component"
    if len(path) > MAX_PATH_BYTES or len(names) > MAX_DEPTH or max(map(len, names)) > MAX_NAME_BYTES:
        return "is too long"
    return ""


def _shown_char(char: str) -> str:
    if char.isprintable() and char != "\\":
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
