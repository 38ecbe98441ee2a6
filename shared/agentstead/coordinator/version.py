"""The version of this installation, and which of two is the older. Standard library only."""

import os
import re
import sys

# Tests put an older and a newer installation on one home with it.
OVERRIDE = "AGENTSTEAD_INTERNAL_VERSION"
UNKNOWN = "0"

_FOLDER = re.compile(r"agentstead-([^-]+)\.dist-info")
_PARTS = re.compile(r"v?(\d+(?:\.\d+)*)(\.?(?:post)\d*)?([^+]*)")


def installed_version() -> str:
    """Return the version in the name of our `.dist-info` folder; `0` where we run without being installed.

    `importlib.metadata` says the same and costs a shim 20 ms.
    """
    return os.environ.get(OVERRIDE) or next(_found(), UNKNOWN)


def is_older(version: str, other: str) -> bool:
    """Tell whether `version` comes before `other`; a pre-release comes before its release, an unreadable one first."""
    return _rank(version) < _rank(other)


def _found() -> "Iterator[str]":
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        yield from (match[1] for match in map(_FOLDER.fullmatch, names) if match)


def _rank(version: str) -> "tuple[tuple[int, ...], int, str]":
    match = _PARTS.match(version)
    if match is None:
        return (), -2, version
    numbers = tuple(int(part) for part in match[1].split("."))
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    if match[3]:
        return numbers, -1, match[3]
    return numbers, 1 if match[2] else 0, match[2] or ""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
