"""Reading a patch in unified form, as `git diff --binary`, `diff -u` and tree_diff write it.

Binary files come as literal blocks; a patch that cannot be read whole is refused whole.
"""

import base64
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from agentstead.state import Invalid
from agentstead.workspace.hunks import Hunk
from agentstead.workspace.lines import split_lines
from agentstead.workspace.paths import given, shown

_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MODE: Final = re.compile(rb"(?:new file mode|deleted file mode|old mode|new mode) (\d{6})$")
_LITERAL: Final = re.compile(rb"literal (\d+)$")
_ESCAPED: Final = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES: Final = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_MAX_LITERAL: Final = 16 * 2**20


@dataclass(slots=True)
class PatchedFile:
    """What a patch does to one path; `literal` replaces the whole content, `mode` is one of git's."""

    old_path: bytes | None = None
    new_path: bytes | None = None
    mode: bytes | None = None
    created: bool = False
    deleted: bool = False
    renamed: bool = False
    hunks: list[Hunk] = field(default_factory=list)
    literal: bytes | None = None

    @property
    def path(self) -> bytes:
        """Return the path that the change is known by."""
        return self.new_path or self.old_path or b""


def parse_patch(text: bytes) -> list[PatchedFile]:
    """Return the files of a unified patch; raise Invalid `patch.invalid` with the line that cannot be read."""
    files = _Parser(text).files()
    if not files:
        raise _invalid(0, "it names no file")
    return files


class _Parser:
    """One reading of a patch, line by line."""

    def __init__(self, text: bytes) -> None:
        self._lines = split_lines(text if text.endswith(b"\n") else text + b"\n")
        self._at = 0

    def files(self) -> list[PatchedFile]:
        found: list[PatchedFile] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(b"diff --git "):
                found.append(self._git_file())
            elif line.startswith(b"--- ") and self._peek(1).startswith(b"+++ "):
                found.append(self._body(PatchedFile()))
            else:
                self._at += 1
        return found

    def _git_file(self) -> PatchedFile:
        file = PatchedFile()
        file.old_path, file.new_path = self._git_names(self._take().removeprefix(b"diff --git ").rstrip(b"\n"))
        while self._at < len(self._lines) and self._header(file, self._lines[self._at].rstrip(b"\n")):
            self._at += 1
        if self._peek().startswith(b"GIT binary patch"):
            self._at += 1
            file.literal = self._literal()
        elif self._peek().startswith(b"Binary files "):
            raise _invalid(self._at, "it names a binary file without its content")
        return self._body(file) if self._peek().startswith(b"--- ") else self._finished(file)

    def _header(self, file: PatchedFile, line: bytes) -> bool:
        """Take in one line of git's extended header; false for a line that is none."""
        if mode := _MODE.match(line):
            file.created = file.created or line.startswith(b"new file")
            file.deleted = file.deleted or line.startswith(b"deleted file")
            file.mode = None if line.startswith((b"deleted", b"old")) else mode[1]
        elif line.startswith((b"rename from ", b"copy from ")):
            file.old_path = self._name(line.partition(b" from ")[2], strip=False)
            file.renamed = line.startswith(b"rename")
        elif line.startswith((b"rename to ", b"copy to ")):
            file.new_path = self._name(line.partition(b" to ")[2], strip=False)
        elif not line.startswith((b"similarity index ", b"dissimilarity index ", b"index ")):
            return False
        return True

    def _body(self, file: PatchedFile) -> PatchedFile:
        old, new = (self._take()[4:].rstrip(b"\n") for _ in range(2))
        file.created = file.created or _is_null(old)
        file.deleted = file.deleted or _is_null(new)
        file.old_path = file.old_path or (None if _is_null(old) else self._name(old))
        file.new_path = file.new_path or (None if _is_null(new) else self._name(new))
        while match := _HUNK.match(self._peek()):
            self._at += 1
            file.hunks.append(self._hunk(match))
        return self._finished(file)

    def _finished(self, file: PatchedFile) -> PatchedFile:
        if file.created:
            file.old_path = None
        if file.deleted:
            file.new_path = None
        if not file.path:
            raise _invalid(self._at, "a file has no name")
        return file

    def _hunk(self, match: re.Match[bytes]) -> Hunk:
        old_left, new_left = (1 if match[n] is None else int(match[n]) for n in (2, 4))
        hunk = Hunk(max(0, int(match[1]) - (1 if old_left else 0)))
        while old_left > 0 or new_left > 0 or self._peek().startswith(b"\\"):
            line = self._take()
            sign, rest = line[:1], line[1:]
            if sign == b"\\":
                self._without_end(hunk)
                continue
            if sign not in {b" ", b"-", b"+", b"\n"}:
                raise _invalid(self._at, "a hunk is shorter than its header says")
            rest = rest or b"\n"
            if sign != b"+":
                hunk.old.append(rest)
                old_left -= 1
            if sign != b"-":
                hunk.new.append(rest)
                new_left -= 1
            self._last_sign = sign
        if old_left or new_left:
            raise _invalid(self._at, "a hunk is longer than its header says")
        return hunk

    def _without_end(self, hunk: Hunk) -> None:
        for lines, signs in ((hunk.old, b" -\n"), (hunk.new, b" +\n")):
            if lines and self._last_sign in signs:
                lines[-1] = lines[-1].removesuffix(b"\n")

    def _literal(self) -> bytes:
        """Return the new content of a binary file; the old one, which may follow, is passed over."""
        match = _LITERAL.match(self._peek().rstrip(b"\n"))
        if match is None or int(match[1]) > _MAX_LITERAL:
            raise _invalid(self._at, "a binary file is no literal block of at most 16 MiB")
        data = self._block(int(match[1]))
        if _LITERAL.match(self._peek().rstrip(b"\n")):
            self._block(_MAX_LITERAL)
        return data

    def _block(self, size: int) -> bytes:
        self._at += 1
        packed = bytearray()
        while (line := self._take().rstrip(b"\n")) != b"":
            length = line[0] - (ord("A") - 1 if line[:1].isupper() else ord("a") - 27)
            try:
                packed += base64.b85decode(line[1:])[:length]
            except ValueError:
                raise _invalid(self._at, "a binary block is damaged") from None
        try:
            data = zlib.decompressobj().decompress(bytes(packed), size + 1)
        except zlib.error:
            raise _invalid(self._at, "a binary block is damaged") from None
        if size != _MAX_LITERAL and len(data) != size:
            raise _invalid(self._at, "a binary block has another size than it says")
        return data

    def _git_names(self, text: bytes) -> tuple[bytes, bytes]:
        """Split `a/x b/x`: two quoted names, or the one way in which both halves name the same path."""
        if text.startswith(b'"') or text.endswith(b'"'):
            names = [each for each in _tokens(text) if each]
        else:
            half = len(text) // 2
            same = (
                text[half : half + 1] == b" " and text[:half].partition(b"/")[2] == text[half + 1 :].partition(b"/")[2]
            )
            names = [text[:half], text[half + 1 :]] if same else text.split(b" ")
        if len(names) != 2:
            raise _invalid(self._at, "the names of a file cannot be told apart")
        return self._name(names[0]), self._name(names[1])

    def _name(self, text: bytes, *, strip: bool = True) -> bytes:
        """Return the path of a name: unquoted, without a date, and without its `a/` or `b/`."""
        name = _unquoted(text) if text.startswith(b'"') else text.partition(b"\t")[0]
        path = name.partition(b"/")[2] if strip and name[:2] in {b"a/", b"b/"} else name
        return given(shown(path), what="path of a patch")

    def _peek(self, ahead: int = 0) -> bytes:
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else b""

    def _take(self) -> bytes:
        if self._at >= len(self._lines):
            raise _invalid(self._at, "it ends within a file")
        self._at += 1
        return self._lines[self._at - 1]


def _is_null(name: bytes) -> bool:
    return name.partition(b"\t")[0] == b"/dev/null"


def _tokens(text: bytes) -> Iterator[bytes]:
    for match in re.finditer(rb'"(?:[^"\\]|\\.)*"|[^ ]+', text):
        yield match[0]


def _unquoted(text: bytes) -> bytes:
    inner = text[1:].rpartition(b'"')[0]
    return _ESCAPED.sub(_unescaped, inner)


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255]) if code[:1].isdigit() else _ESCAPES.get(code, code)


def _invalid(line: int, why: str) -> Invalid:
    return Invalid(
        "patch.invalid",
        f"the patch cannot be read at line {line}: {why}",
        remedy="Give a unified patch as `git diff --binary` or tree_diff (detail=patch) writes it.",
        details={"line": line},
    )
