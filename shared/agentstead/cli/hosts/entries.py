"""The entries that we put into a host's file, and how ours are told from those of others."""

import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from agentstead.cli.hosts.host import Host

# A host shows our tools as mcp__KEY__TOOL: with 12 and at most 32 characters of a tool that stays under 60.
KEY_PREFIX = "stead-"
_PROGRAM = "agentstead"
_PASSING = ("archive-v0", ".cache/uv", "uv/cache", "pipx/.cache", "/tmp/")  # noqa: S108 - matched, never written


@dataclass(frozen=True, slots=True)
class Installation:
    """How this installation is started: an absolute command, and the home where it is not the default one."""

    command: tuple[str, ...]
    home: Path | None = None

    def entry(self, server: str, host: Host) -> dict[str, Any]:
        """Build the entry of one server for one host."""
        entry: dict[str, Any] = {"command": self.command[0], "args": [*self.command[1:], "serve", server]}
        if self.home is not None:
            entry["env"] = {"AGENTSTEAD_HOME": str(self.home)}
        return {**host.extra, **entry}

    @property
    def passing(self) -> bool:
        """Say whether the program lies where it may be removed at any time."""
        path = self.command[0].replace("\\", "/")
        return any(part in path for part in _PASSING)


def this_installation(home: Path | None = None) -> Installation:
    """Find the program of this installation: the script beside the interpreter, or the interpreter itself."""
    script = Path(sysconfig.get_path("scripts")) / (_PROGRAM + (".exe" if sys.platform == "win32" else ""))
    if script.exists():
        return Installation((str(script),), home)
    return Installation((sys.executable, "-m", "agentstead.cli"), home)


def served_by(entry: object) -> str:
    """Name the server that an entry starts through us, or '' where it is somebody else's."""
    if not isinstance(entry, Mapping):
        return ""
    words = [entry.get("command"), *_texts(entry.get("args"))]
    if not all(isinstance(word, str) for word in words):
        return ""
    rest = _after_program([str(word) for word in words])
    return rest[1] if len(rest) >= 2 and rest[0] == "serve" else ""


def ours(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the key and the server of each of our entries in a host's table."""
    for key, entry in table.items():
        server = served_by(entry)
        if server:
            yield key, server


def key_of(server: str, table: Mapping[str, Any]) -> str:
    """Name the key of a server's entry: the one that the person has given it already, or ours."""
    return next((key for key, served in ours(table) if served == server), KEY_PREFIX + server)


def _after_program(words: Sequence[str]) -> Sequence[str]:
    if PurePath(words[0].replace("\\", "/")).name.removesuffix(".exe") == _PROGRAM:
        return words[1:]
    return words[3:] if list(words[1:3]) == ["-m", "agentstead.cli"] else ()


def _texts(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
