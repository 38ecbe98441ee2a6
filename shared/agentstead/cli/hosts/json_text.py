"""Change a JSON text key by key: each edit touches only its own lines, so that comments, order and layout stay."""

import json
from collections.abc import Sequence
from typing import Any

from agentstead.cli.hosts.jsonc import JsonFault, Member, Node, line_rest, parse


class JsonText:
    """A JSON object as text. `strict` is for hosts that read plain JSON; others allow comments and last commas."""

    def __init__(self, text: str, *, strict: bool) -> None:
        self.text = text if text.strip() else "{}" + (text or "\n")
        self._strict = strict
        self._newline = "\r\n" if "\r\n" in text else "\n"
        root = self._root()
        self._unit = _indent_unit(self.text, root)

    def tree(self) -> dict[str, Any]:
        """Return the values."""
        value: dict[str, Any] = self._root().value
        return value

    def set(self, path: Sequence[str], value: Any) -> None:
        """Set the value at a path of keys, making the objects on the way."""
        node, depth = self._root(), 0
        for depth, key in enumerate(path):
            member = _member(node, key)
            if member is None:
                for missing in reversed(path[depth + 1 :]):
                    value = {missing: value}
                self._insert(node, key, value, depth=depth)
                return
            node = member.node
            if depth + 1 < len(path) and not isinstance(node.value, dict):
                raise JsonFault(f"{key!r} is no object", self.text.count("\n", 0, node.start) + 1)
        self._splice(node.start, node.end, self._shown(value, depth + 1))

    def remove(self, path: Sequence[str]) -> None:
        """Take a key away with its line; a path that is not there changes nothing."""
        node = self._root()
        for key in path[:-1]:
            member = _member(node, key)
            if member is None:
                return
            node = member.node
        member = _member(node, path[-1])
        if member is not None:
            self._cut(node, member)

    def _root(self) -> Node:
        root = parse(self.text, strict=self._strict)
        if not isinstance(root.value, dict):
            raise JsonFault("an object is expected", 1)
        return root

    def _insert(self, parent: Node, key: str, value: Any, *, depth: int) -> None:
        flat = parent.members and "\n" not in self.text[parent.start : parent.end]
        entry = f"{json.dumps(key, ensure_ascii=False)}: "
        entry += json.dumps(value, ensure_ascii=False) if flat else self._shown(value, depth + 1)
        if not parent.members:
            inner = self.text[parent.start + 1 : parent.end - 1].rstrip()
            line = self._newline + self._unit * (depth + 1)
            self._splice(parent.start + 1, parent.end - 1, f"{inner}{line}{entry}{self._newline}{self._unit * depth}")
            return
        last = parent.members[-1]
        tail = "," if last.comma >= 0 else ""
        at = last.comma + 1 if last.comma >= 0 else last.node.end
        if flat:
            self._splice(at, at, f"{' ' if tail else ', '}{entry}{tail}")
            return
        end = line_rest(self.text, at)
        comma = "" if tail else ","
        line = self._newline + self._lead(last.start, self._unit * (depth + 1))
        self._splice(at, end, f"{comma}{self.text[at:end]}{line}{entry}{tail}")

    def _cut(self, parent: Node, member: Member) -> None:
        after = member.comma + 1 if member.comma >= 0 else member.node.end
        end = line_rest(self.text, after)
        start = member.start
        line = self.text.rfind("\n", 0, start) + 1
        alone = not self.text[line:start].strip() and self.text[end : end + 1] in {"\r", "\n", ""}
        if alone:
            start, end = line, self.text.find("\n", end) + 1 or len(self.text)
        else:
            end = after + 1 if self.text[after : after + 1] == " " and member.comma >= 0 else after
        self._splice(start, end, "")
        place = parent.members.index(member)
        if member.comma < 0 and place:
            comma = parent.members[place - 1].comma
            gap = 1 if not alone and self.text[comma + 1 : comma + 2] == " " else 0
            self._splice(comma, comma + 1 + gap, "")
        if len(parent.members) == 1:
            self._close(parent.start)

    def _close(self, start: int) -> None:
        """Write an object that has become empty as `{}`, unless comments are left in it."""
        end = start + 1
        while self.text[end : end + 1].isspace():
            end += 1
        if self.text[end : end + 1] == "}":
            self._splice(start + 1, end, "")

    def _lead(self, at: int, otherwise: str) -> str:
        lead = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return lead if not lead.strip() else otherwise

    def _shown(self, value: Any, depth: int) -> str:
        if not isinstance(value, dict) or not value:
            return json.dumps(value, ensure_ascii=False)
        pad = self._newline + self._unit * (depth + 1)
        inner = ("," + pad).join(
            f"{json.dumps(key, ensure_ascii=False)}: {self._shown(item, depth + 1)}" for key, item in value.items()
        )
        return f"{{{pad}{inner}{self._newline}{self._unit * depth}}}"

    def _splice(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]


def _member(node: Node, key: str) -> Member | None:
    return next((member for member in node.members if member.key == key), None)


def _indent_unit(text: str, root: Node) -> str:
    for member in root.members[:1]:
        lead = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if lead and not lead.strip():
            return lead
    return "  "
