"""What a coordinator hosts, as a port: servers by name, tokens, and work that a drain waits for."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from mcp.server.lowlevel import Server

from agentstead.kit.http import TokenKind
from agentstead.state import HomeLock


class Hosted(Protocol):
    """The servers of one home and what the coordinator must know of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the servers' names."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what a person should know of this home, though it can be used."""
        ...

    def server(self, name: str, *, toolset: str = "core") -> Server[Any]:
        """Return a server with the tools of a toolset; raises `NotFound` or `Invalid` for one that is not there."""
        ...

    async def check_token(self, token: str) -> TokenKind | None:
        """Return the kind of a token in force, None for any other."""
        ...

    async def supervises(self, pid: int) -> bool:
        """Tell whether a process descends from one that the runner started."""
        ...

    def drain(self, *, on: bool) -> None:
        """Stop taking on new work, or take it on again."""
        ...

    async def busy(self) -> int:
        """Return how much work is under way that a drain waits for, open calls not counted."""
        ...

    def redact(self, text: str) -> str:
        """Return `text` without its secrets; everything that is logged passes it."""
        ...


class Opener(Protocol):
    """Open the home at `path` for as long as the context lasts; `lock` is held by a coordinator, None elsewhere."""

    def __call__(self, path: Path, *, lock: HomeLock | None, only: str) -> AbstractAsyncContextManager[Hosted]:
        """Return the context; `only` names the one server that is wanted, '' for all."""
        ...
