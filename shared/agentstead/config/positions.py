"""Where the keys of a TOML text stand: dotted key -> line number. The values are read by `tomllib`."""

import re
from collections.abc import Iterator

_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


def key_lines(text: str) -> dict[str, int]:
    """Map each key and table header of a well-formed TOML text to the line, from 1, on which it is written."""
    lines: dict[str, int] = {}
    prefix: tuple[str, ...] = ()
    for offset, statement in _statements(text):
        line = text.count("\n", 0, offset) + 1
        if statement.startswith("["):
            prefix = _parts(statement.lstrip("["))
            lines.setdefault(".".join(prefix), line)
        else:
            parts = (*prefix, *_parts(statement))
            for depth in range(len(prefix) + 1, len(parts) + 1):
                lines.setdefault(".".join(parts[:depth]), line)
    return lines


def line_of(lines: dict[str, int], key: str) -> int:
    """Find the line of a key, or of the nearest table or inline value that it lies in; 0 if none is written."""
    while key:
        if key in lines:
            return lines[key]
        key = key.rpartition(".")[0]
    return 0


def _statements(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        end = _end(text, at)
        if at < end and text[at] != "#":
            yield at, text[at:end]
        at = end + 1


def _end(text: str, at: int) -> int:
    """Find the end of the statement that starts here: a line end outside strings and brackets."""
    header = text.startswith("[", at)
    depth = 0
    while at < len(text):
        character = text[at]
        if character in "\"'":
            string = _STRING.match(text, at)
            at = string.end() if string else at + 1
            continue
        if character == "#":
            at = _line_end(text, at)
            continue
        if character == "\n" and depth <= 0:
            return at
        depth += 0 if header else (character in "[{") - (character in "]}")
        at += 1
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _parts(text: str) -> tuple[str, ...]:
    parts: list[str] = []
    at = 0
    while part := _PART.match(text, at):
        quoted, literal, bare = part.groups()
        parts.append(bare if bare is not None else literal if literal is not None else _unescape(quoted))
        at = part.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    return tuple(parts)


def _unescape(quoted: str) -> str:
    import tomllib

    return str(tomllib.loads(f'v = "{quoted}"')["v"])
