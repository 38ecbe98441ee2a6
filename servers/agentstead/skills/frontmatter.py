"""Split a SKILL.md and read its front matter as text with places. Anchors, aliases, tags, twins and depth are refused.

Values are built from parser events, so an alias is seen before anything could expand it, and no type is guessed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from agentstead.skills.diagnostics import Diagnostic, Severity

MAX_FRONTMATTER_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 8

HAS_LIBYAML: Final = bool(getattr(yaml, "__with_libyaml__", False))
_LOADER: Final = yaml.CSafeLoader if HAS_LIBYAML else yaml.SafeLoader

_FIELD_LINE: Final = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9_-]*):[ \t]+(?P<value>[^\s\"'|>\[{&*!#%@`].*)")


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar as it was written, unquoted."""

    value: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A sequence; ``flow`` when it was written in brackets."""

    items: "tuple[Node, ...]"
    flow: bool
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping: text keys with their values in the order written; ``flow`` when it was written in braces."""

    entries: "tuple[tuple[Text, Node], ...]"
    flow: bool
    line: int
    column: int

    def get(self, key: str) -> "Node | None":
        """Return the value of ``key``, or None."""
        return next((node for name, node in self.entries if name.value == key), None)

    def text(self, key: str) -> str:
        """Return the value of ``key`` where it is a scalar, else an empty text."""
        node = self.get(key)
        return node.value if isinstance(node, Text) else ""


Node = Text | Listing | Fields


@dataclass(frozen=True, slots=True)
class Split:
    """The two parts of a SKILL.md; the front matter starts at line 2, the body at ``body_line``."""

    frontmatter: str
    body: str
    body_line: int


class FrontMatterRefused(Exception):
    """The front matter cannot be read in either mode; ``diagnostic`` says where and why."""

    def __init__(self, code: str, message: str, *, line: int = 0, column: int = 0, field: str = "") -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(code, Severity.ERROR, message, field=field, line=line, column=column)


def split(text: str) -> Split:
    """Part ``text`` at the first two lines that are exactly ``---``.

    Raises FrontMatterRefused: ``fm.missing``, ``fm.unclosed``, ``fm.too_large``.
    """
    lines = text.split("\n")
    if lines[0].removesuffix("\r") != "---":
        raise FrontMatterRefused("fm.missing", "The first line is not ---.", line=1, column=1)
    closing = next((at for at, line in enumerate(lines[1:], start=1) if line.removesuffix("\r") == "---"), None)
    if closing is None:
        raise FrontMatterRefused("fm.unclosed", "No second line --- was found.", line=len(lines), column=1)
    head = "".join(f"{line}\n" for line in lines[1:closing])
    size = len(head.encode())
    if size > MAX_FRONTMATTER_BYTES:
        raise FrontMatterRefused("fm.too_large", f"The front matter has {size} bytes.", line=2, column=1)
    return Split(frontmatter=head, body="\n".join(lines[closing + 1 :]), body_line=closing + 2)


def parse(frontmatter: str) -> Fields:
    """Read a front matter, its lines counted as lines of the file.

    Raises FrontMatterRefused: ``fm.yaml``, ``fm.not_mapping``, ``fm.alias``, ``fm.tag``, ``fm.duplicate_key``.
    """
    try:
        return _document(_events(frontmatter))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 2, mark.column + 1) if mark else (2, 1)
        raise FrontMatterRefused("fm.yaml", f"Not YAML: {error.problem}.", line=line, column=column) from None
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise FrontMatterRefused("fm.yaml", f"Not YAML: {reason}.", line=2, column=1) from None


def requote(frontmatter: str) -> tuple[str, tuple[str, ...]]:
    """Quote each top-level value that holds an unquoted colon; return the new text and the fields it touched."""
    touched: list[str] = []
    lines = []
    for line in frontmatter.split("\n"):
        match = _FIELD_LINE.fullmatch(line.rstrip())
        if match and (": " in match["value"] or match["value"].endswith(":")):
            touched.append(match["key"])
            quoted = match["value"].replace("'", "''")
            line = f"{match['key']}: '{quoted}'"
        lines.append(line)
    return "\n".join(lines), tuple(touched)


def _events(frontmatter: str) -> Iterator[Any]:
    parser: Iterator[Any] = yaml.parse(frontmatter, Loader=_LOADER)
    for event in parser:
        line, column = event.start_mark.line + 2, event.start_mark.column + 1
        if getattr(event, "anchor", None) is not None:
            raise FrontMatterRefused(
                "fm.alias", f"An anchor or alias '{event.anchor}' is used.", line=line, column=column
            )
        if getattr(event, "tag", None) is not None:
            raise FrontMatterRefused("fm.tag", f"A tag '{event.tag}' is used.", line=line, column=column)
        yield event


def _document(events: Iterator[Any]) -> Fields:
    top: Node | None = None
    for event in events:
        if isinstance(event, yaml.NodeEvent):
            top = _node(event, events, depth=1)
        elif isinstance(event, yaml.DocumentStartEvent) and top is not None:
            raise FrontMatterRefused("fm.yaml", "A second YAML document starts here.", line=2, column=1)
    if not isinstance(top, Fields):
        raise FrontMatterRefused("fm.not_mapping", "The front matter holds no fields.", line=2, column=1)
    return top


def _node(event: Any, events: Iterator[Any], *, depth: int) -> Node:
    line, column = event.start_mark.line + 2, event.start_mark.column + 1
    if isinstance(event, yaml.ScalarEvent):
        return Text(event.value, line, column)
    if depth > MAX_DEPTH:
        raise FrontMatterRefused("fm.yaml", f"Values are nested deeper than {MAX_DEPTH}.", line=line, column=column)
    if isinstance(event, yaml.SequenceStartEvent):
        items = tuple(_node(item, events, depth=depth + 1) for item in _until(events, yaml.SequenceEndEvent))
        return Listing(items, bool(event.flow_style), line, column)
    return Fields(_entries(events, depth=depth), bool(event.flow_style), line, column)


def _entries(events: Iterator[Any], *, depth: int) -> tuple[tuple[Text, Node], ...]:
    entries: list[tuple[Text, Node]] = []
    seen: set[str] = set()
    for event in _until(events, yaml.MappingEndEvent):
        key = _node(event, events, depth=depth + 1)
        if not isinstance(key, Text):
            raise FrontMatterRefused("fm.yaml", "A field's name is not text.", line=key.line, column=key.column)
        if key.value in seen:
            message = f"'{key.value}' stands twice."
            raise FrontMatterRefused(
                "fm.duplicate_key", message, line=key.line, column=key.column, field=key.value[:64]
            )
        seen.add(key.value)
        entries.append((key, _node(next(events), events, depth=depth + 1)))
    return tuple(entries)


def _until(events: Iterator[Any], end: type) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event
