"""The real thing that a coordinator hosts: an open home and the MCP servers over it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from mcp.server.lowlevel import Server

from agentstead import telemetry
from agentstead.coordinator.suitability import clock_warning
from agentstead.identity import check_token, descends_from, home_token
from agentstead.kit.changes import ChangeHub
from agentstead.kit.declaration import ServerDeclaration
from agentstead.kit.home import Home
from agentstead.kit.housekeeping import keep_house
from agentstead.kit.http import TokenKind
from agentstead.kit.mcp_server import build
from agentstead.runner import end_left_overs
from agentstead.runner.records import open_processes
from agentstead.state import HomeLock, Invalid, NotFound

log = logging.getLogger(__name__)


class OpenHome:
    """An open home as a coordinator hosts it; a server is built when it is first asked for."""

    def __init__(self, home: Home, hub: ChangeHub, *, only: str, warnings: tuple[str, ...]) -> None:
        self.warnings = warnings
        self._home = home
        self._hub = hub
        self._declared = {each.name: each for each in home.servers if only in ("", each.name)}
        self._servers: dict[tuple[str, str], Server[Any]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the servers that are installed, or of the one that is wanted."""
        return tuple(self._declared)

    def server(self, name: str, *, toolset: str = "core") -> Server[Any]:
        """Return a server with the tools of a toolset."""
        declared = self._declaration(name)
        if (name, toolset) not in self._servers:
            try:
                self._servers[name, toolset] = build(declared, self._home, hub=self._hub, toolset=toolset)
            except ValueError as error:
                raise Invalid(
                    "tool.invalid_arguments", f"{error}.", remedy="Name one of its toolsets, `full`, or tool names."
                ) from None
        return self._servers[name, toolset]

    async def check_token(self, token: str) -> TokenKind | None:
        """Return the kind of a token in force."""
        facts = await self._home.state.read(check_token, token)
        return None if facts is None else facts.kind

    async def supervises(self, pid: int) -> bool:
        """Tell whether a process descends from one that the runner started."""
        owners = {each.identity.pid for each in await self._home.state.read(open_processes)}
        return bool(owners - {0}) and bool(descends_from(pid, owners - {0}))

    def drain(self, *, on: bool) -> None:
        """Have the services refuse new work, or take it on again."""
        self._home.draining = on

    async def busy(self) -> int:
        """Return how many processes run under the runner now."""
        return len(await self._home.state.read(open_processes))

    def redact(self, text: str) -> str:
        """Return `text` without the secrets that this home knows."""
        return self._home.redactor.text(text)

    def _declaration(self, name: str) -> ServerDeclaration:
        if name not in self._declared:
            raise NotFound(
                "ref.not_found",
                f"No server is named {name[:64]!r}.",
                remedy=f"There are {', '.join(each.name for each in self._home.servers)}.",
            )
        return self._declared[name]


@asynccontextmanager
async def open_home(path: Path, *, lock: HomeLock | None, only: str) -> AsyncIterator[OpenHome]:
    """Open a home and follow its changes; with `lock`, what a crash left is repaired first."""
    stop_telemetry = telemetry.start(version=version("agentstead"))
    home = await Home.open(path, lock=lock)
    try:
        if lock is not None:
            for process in await end_left_overs(home.state):
                log.warning("process %s was left over by a coordinator that died, and was ended", process)
        head = await home.state.head()
        warning = clock_warning(home.clock.now_us(), head.at_us)
        await home_token(home.state, path)
        hub = ChangeHub(home.servers)
        async with anyio.create_task_group() as tasks:
            await tasks.start(hub.follow, home.state)
            if lock is not None:
                tasks.start_soon(keep_house, home)
            yield OpenHome(home, hub, only=only, warnings=(warning,) if warning else ())
            tasks.cancel_scope.cancel()
    finally:
        await home.close()
        await anyio.to_thread.run_sync(stop_telemetry)
