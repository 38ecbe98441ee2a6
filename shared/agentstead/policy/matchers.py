"""How a rule's patterns are compared: globs on names, and tests on values inside a call's arguments.

An argument that is missing matches nothing (save `absent`), and types must agree: true is not 1.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_MISSING = object()


@lru_cache(maxsize=4096)
def _compiled(glob: str) -> re.Pattern[str]:
    parts = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in glob)
    return re.compile("".join(parts), re.DOTALL)


def is_glob(text: str) -> bool:
    """Tell whether `text` stands for more than itself."""
    return "*" in text or "?" in text


def glob_matches(glob: str, text: str) -> bool:
    """Tell whether `*` (any run of characters) and `?` (one) in `glob` cover the whole of `text`."""
    return glob == text if not is_glob(glob) else _compiled(glob).fullmatch(text) is not None


def any_matches(globs: Sequence[str], text: str) -> bool:
    """Tell whether one of `globs` covers `text`."""
    return any(glob_matches(glob, text) for glob in globs)


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """A JSON pointer into the arguments and what must stand there.

    `expected` is a text (a glob), number, boolean, list (any of), or a table of `min`, `max`, `not`, `absent`.
    """

    pointer: str
    expected: Any

    def holds(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether the value at the pointer is as expected."""
        value = look_up(arguments, self.pointer)
        if isinstance(self.expected, dict):
            return _in_bounds(value, self.expected)
        return value is not _MISSING and _equal(value, self.expected)


def look_up(value: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901), or a marker that equals nothing."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def pointer_of(key: str) -> str:
    """Return the pointer that a rule's key means: a bare name is a top-level member."""
    return key if key.startswith("/") else f"/{key}"


def _equal(value: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return any(_equal(value, each) for each in expected)
    if isinstance(expected, str):
        return isinstance(value, str) and glob_matches(expected, value)
    if isinstance(expected, bool) or isinstance(value, bool):
        return isinstance(expected, bool) and isinstance(value, bool) and value == expected
    return isinstance(value, int | float) and bool(value == expected)


def _in_bounds(value: Any, bounds: Mapping[str, Any]) -> bool:
    if value is _MISSING:
        return bounds.get("absent") is True
    if bounds.get("absent") is True:
        return False
    if "not" in bounds and _equal(value, bounds["not"]):
        return False
    if "min" not in bounds and "max" not in bounds:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(bounds.get("min", value) <= value <= bounds.get("max", value))
