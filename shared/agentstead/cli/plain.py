"""Values as text for a terminal: times and sizes a person can read, and nothing that could steer the terminal."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

_TIME = re.compile(r"(^|_)(at|until|since|before|due)$")
_SIZE = re.compile(r"(^|_)(bytes|size)$")
_FIRST_US = 10**15
_LAST_US = 10**16
_KIB = 1024


def clean(text: str) -> str:
    """Return a text with control and direction-changing characters shown as `\\xNN`, line ends and tabs kept."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _harmless(char) else f"\\x{ord(char):02x}" for char in text)


def one_line(text: str) -> str:
    """Return a clean text without line ends."""
    return " ".join(clean(text).split()) if "\n" in text or "\t" in text else clean(text)


def shown(name: str, value: Any) -> str:
    """Return a value as a person reads it; `name` tells times and sizes from other numbers."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _number(name, value)
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Sequence) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(shown(name, item) for item in value)
    return clean(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def is_simple(value: Any) -> bool:
    """Say whether a value fits behind its name on a line, or into a cell."""
    if isinstance(value, Mapping):
        return False
    return not (isinstance(value, Sequence) and not isinstance(value, str)) or not any(
        isinstance(item, Mapping | list) for item in value
    )


def _number(name: str, value: int) -> str:
    if _TIME.search(name) and _FIRST_US <= value < _LAST_US:
        return datetime.fromtimestamp(value / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if _SIZE.search(name) and value >= _KIB:
        return _size(value)
    return str(value)


def _size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB:
            return f"{value:.1f} {unit}"
        value /= _KIB
    return f"{value:.1f} TiB"


def _harmless(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} or char == "\u200d"
