"""JSON with positions: read with comments and trailing commas where these are allowed."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_DEEPEST = 200


class JsonFault(ValueError):
    """The text is not what was expected at a line."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(f"line {line}: {what}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value between two positions; `members` are those of an object, in their order."""

    start: int
    end: int
    value: Any
    members: tuple["Member", ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Member:
    """A key with its value; it starts at the key's quote, and `comma` is the place of the comma after it, or -1."""

    start: int
    key: str
    node: Node
    comma: int


class _Reader:
    def __init__(self, text: str, *, strict: bool) -> None:
        self.text = text
        self.strict = strict

    def fault(self, what: str, at: int) -> JsonFault:
        return JsonFault(what, self.text.count("\n", 0, at) + 1)

    def skip(self, at: int) -> int:
        while True:
            at = self._match(_SPACE, at).end()
            comment = _COMMENT.match(self.text, at)
            if comment is None:
                return at
            if self.strict:
                raise self.fault("a comment, which this host's file may not have", at)
            at = comment.end()

    def value(self, at: int, depth: int = 0) -> Node:
        if depth > _DEEPEST:
            raise self.fault("values nested too deep", at)
        character = self.text[at : at + 1]
        if character == "{":
            return self._object(at, depth)
        if character == "[":
            return self._array(at, depth)
        if character == '"':
            return Node(at, *self._string(at))
        return self._plain(at)

    def _object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        start, at = at, self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            key_at = at
            if self.text[at : at + 1] != '"':
                raise self.fault("a key in double quotes is expected", at)
            at, key = self._string(at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise self.fault(f"':' is expected after {key!r}", at)
            node = self.value(self.skip(at + 1), depth + 1)
            at, comma = self._comma(node.end, "}")
            if any(member.key == key for member in members):
                raise self.fault(f"the key {key!r} is there twice", key_at)
            members.append(Member(key_at, key, node, comma))
        return Node(start, at + 1, {member.key: member.node.value for member in members}, tuple(members))

    def _array(self, at: int, depth: int) -> Node:
        values: list[Any] = []
        start, at = at, self.skip(at + 1)
        while self.text[at : at + 1] != "]":
            node = self.value(at, depth + 1)
            values.append(node.value)
            at, _ = self._comma(node.end, "]")
        return Node(start, at + 1, values)

    def _comma(self, at: int, close: str) -> tuple[int, int]:
        """Step over the comma after an item: the place of what follows, and of the comma or -1."""
        at = self.skip(at)
        if self.text[at : at + 1] == close:
            return at, -1
        if self.text[at : at + 1] != ",":
            raise self.fault(f"',' or '{close}' is expected", at)
        comma, at = at, self.skip(at + 1)
        if self.strict and self.text[at : at + 1] == close:
            raise self.fault("a comma after the last item, which this host's file may not have", comma)
        return at, comma

    def _string(self, at: int) -> tuple[int, str]:
        found = _STRING.match(self.text, at)
        try:
            return (found.end(), json.loads(found.group())) if found else (0, _missing())
        except ValueError:
            raise self.fault("a string that does not end, or holds what no string may hold", at) from None

    def _plain(self, at: int) -> Node:
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return Node(at, at + len(word), value)
        number = _NUMBER.match(self.text, at)
        if number is None:
            raise self.fault("a value is expected", at)
        return Node(at, number.end(), json.loads(number.group()))

    def _match(self, pattern: re.Pattern[str], at: int) -> re.Match[str]:
        found = pattern.match(self.text, at)
        assert found is not None
        return found


def _missing() -> str:
    raise ValueError


def parse(text: str, *, strict: bool) -> Node:
    """Read a whole text as one value; raise JsonFault with the line. `strict` allows no comments or last commas."""
    reader = _Reader(text, strict=strict)
    node = reader.value(reader.skip(0))
    rest = reader.skip(node.end)
    if rest != len(text):
        raise reader.fault("more text after the end of the value", rest)
    return node


def line_rest(text: str, at: int) -> int:
    """Find the end of what follows on the same line: blanks and comments, up to the line's end or other text."""
    for end in _rests(text, at):
        at = end
    return at


def _rests(text: str, at: int) -> Iterator[int]:
    while True:
        while text[at : at + 1] in {" ", "\t"}:
            at += 1
        comment = _COMMENT.match(text, at)
        if comment is None or "\n" in comment.group():
            if text[at : at + 1] in {"\r", "\n", ""}:
                yield at
            return
        at = comment.end()
        yield at
