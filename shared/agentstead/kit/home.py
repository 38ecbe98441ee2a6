"""One opened home: the state library, the blobs, the settings and the policy, as every service gets them."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agentstead import identity, policy, runner, telemetry
from agentstead.blobs import Blobs
from agentstead.config import Settings
from agentstead.kit.declaration import ServerDeclaration, declarations
from agentstead.kit.keys import read_key
from agentstead.policy import Enforcement
from agentstead.policy.redact import Redactor
from agentstead.state import Clock, HomeLock, Repair, State, SystemClock, Unavailable, repair_all
from agentstead.telemetry import names

VARIABLE = "AGENTSTEAD_HOME"
FOLDERS = ("keys", "logs", "forks")


def home_path() -> Path:
    """Return the home that this process means: `AGENTSTEAD_HOME`, or `~/.agentstead`."""
    named = os.environ.get(VARIABLE, "")
    return Path(named).expanduser().absolute() if named else Path.home() / ".agentstead"


class Home:
    """Everything of one home that a service may use; made by `Home.open`."""

    def __init__(
        self,
        path: Path,
        *,
        state: State,
        blobs: Blobs,
        settings: Settings,
        redactor: Redactor,
        servers: Sequence[ServerDeclaration],
    ) -> None:
        self.path = path
        self.state = state
        self.blobs = blobs
        self.settings = settings
        self.redactor = redactor
        self.servers = servers
        # Set by the coordinator: services that take on work refuse with `coordinator.draining`.
        self.draining = False
        self.enforcement = Enforcement(state, path, settings=settings)
        state.observe = _observe

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        lock: HomeLock | None = None,
        clock: Clock | None = None,
        settings: Settings | None = None,
        servers: Sequence[ServerDeclaration] | None = None,
    ) -> "Home":
        """Open a home, making it where it is new; the holder of `lock` also repairs it and settles what a crash left.

        Every installed package's migrations are looked at, whichever servers this process serves. Raises
        `Unavailable` where the home cannot be used, with what to do.
        """
        clock = clock or SystemClock()
        prepare(path)
        settings = settings or Settings(path)
        servers = declarations() if servers is None else servers
        redactor = Redactor()
        state = await State.open(
            path,
            sets=[*_SHARED, *(each for server in servers for each in server.migrations)],
            clock=clock,
            redactor=redactor,
            durability=settings.get("state.synchronous"),
            lock=lock,
        )
        blobs = Blobs(path / "blobs", clock=clock)
        home = cls(path, state=state, blobs=blobs, settings=settings, redactor=redactor, servers=servers)
        home._register()
        if lock is not None and lock.held:
            await home._start()
        return home

    @property
    def clock(self) -> Clock:
        """Return the clock of this home."""
        return self.state.clock

    @cached_property
    def version(self) -> str:
        """Return the version of Agentstead."""
        return version("agentstead")

    def key(self, name: str) -> bytes:
        """Return a 32-byte key of this home, made at its first use."""
        return read_key(self.path / "keys", name)

    async def close(self) -> None:
        """Close every connection of this home."""
        await self.enforcement.flush()
        await self.blobs.close()
        await self.state.close()

    def _register(self) -> None:
        for server in self.servers:
            for prefix, look in server.refs.items():
                self.state.refs.register(prefix, look)
            for name, sql in server.roots.items():
                self.blobs.roots.register(name, sql)

    async def _start(self) -> None:
        repairs: list[Repair] = [each for server in self.servers for each in server.repairs]
        await repair_all(self.state, repairs)
        for server in self.servers:
            await server.startup(self)


def _observe(fn: Callable[..., Any]) -> AbstractContextManager[None]:
    """Show a write as a span that names its transaction function."""
    return telemetry.span(names.TRANSACTION, {names.FUNCTION: getattr(fn, "__qualname__", "")})


_SHARED = (identity.MIGRATIONS, policy.MIGRATIONS, runner.MIGRATIONS)


def prepare(path: Path) -> None:
    """Make the home's folders, for their owner alone.

    Raises `Unavailable` with `home.quarantined` where they cannot be made or written.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in FOLDERS:
            (path / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error.strerror or type(error).__name__) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unusable(path, "it is read-only")


def _unusable(path: Path, why: str) -> Unavailable:
    return Unavailable(
        "home.quarantined",
        f"The home {path} cannot be used: {why}.",
        remedy=f"Make it writable for you, or point {VARIABLE} to another folder.",
    )
