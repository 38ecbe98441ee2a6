"""Fixtures that every package's tests share: a home with all servers' tables, and calls into it."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentstead.identity import Principal, parse_principal
from agentstead.kit import Context, Home, Result, operation_of
from agentstead.kit import invoke as invoke_operation
from agentstead.state import HomeLock, SimulatedClock

Invoke = Callable[..., Awaitable[Any]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Give each test the usual mask: a coordinator that runs inside the test's process narrows it for good."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
async def home(tmp_path: Path, clock: SimulatedClock) -> AsyncIterator[Home]:
    """A fresh home in which this process holds the lock; its time is simulated."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    lock = HomeLock(path)
    assert lock.acquire()
    opened = await Home.open(path, lock=lock, clock=clock)
    yield opened
    await opened.close()
    lock.release()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small folder that counts as a project."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "readme.txt").write_text("hello\n")
    return root


@pytest.fixture
def invoke() -> Invoke:
    """Call an operation as the kit does: validation, policy, body. `principal` is its text, or a Principal."""

    async def run(
        home: Home,
        fn: Callable[..., Awaitable[Result]],
        /,
        *,
        principal: Principal | str = "user",
        cwd: Path | None = None,
        environ: dict[str, str] | None = None,
        **arguments: Any,
    ) -> Result:
        if isinstance(principal, str):
            kind, name = parse_principal(principal)
            principal = Principal.user(at_terminal=True) if kind == "user" else Principal(kind, name)
        context = Context(principal, cwd=cwd, environ=environ or {})
        result, _ = await invoke_operation(home, operation_of(fn), arguments, context)
        return result

    return run
