"""Running an operation from the command line: as the person of the home, through the same path as a tool call."""

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from agentstead.cli.fields import CommandField, typed_arguments, typed_item
from agentstead.cli.outcomes import UNDER_WAY, is_under_way, outcome
from agentstead.cli.person import principal_of
from agentstead.cli.routes import Route
from agentstead.cli.terminal import Terminal
from agentstead.config import SERVERS_GROUP
from agentstead.kit import ENVIRONMENT, Context, Home, Operation, invoke
from agentstead.state import NotFound, acting

T = TypeVar("T")

KEY = "idempotency_key"
_WORKSPACE = "AGENTSTEAD_WORKSPACE"


def operation_run(
    operation: Operation, route: Route, fields: Sequence[CommandField]
) -> Callable[[Terminal, Mapping[str, Any]], int]:
    """Return what a verb made from an operation does."""

    def run(terminal: Terminal, typed: Mapping[str, Any]) -> int:
        arguments = {**typed_arguments(fields, typed), **route.fixed}
        if route.item:
            arguments = typed_item(operation, route.item, fields, arguments)
        return with_home(terminal, lambda home: _invoke(terminal, home, operation, arguments))

    return run


def with_home(terminal: Terminal, use: Callable[[Home], Awaitable[T]]) -> T:
    """Open the home of this invocation, use it, and close it whatever happens."""

    async def opened() -> T:
        home = await Home.open(terminal.home)
        try:
            return await use(home)
        finally:
            await home.close()

    return asyncio.run(opened())


def service_of(server: str) -> Any:
    """Return the service module of an installed server, found by its entry point.

    For what a person does and no tool may: it is no operation. Raises `ref.not_found` for a server that is not there.
    """
    for entry in entry_points(group=SERVERS_GROUP, name=server):
        return importlib.import_module(entry.module.rpartition(".")[0] + ".service")
    raise NotFound("ref.not_found", f"The server {server} is not installed.", remedy="Install it, then repeat this.")


def as_person(use: Callable[[Home], Awaitable[T]]) -> Callable[[Home], Awaitable[T]]:
    """Have the changes of a verb recorded as made by the person of the home."""

    async def used(home: Home) -> T:
        with acting("user"):
            return await use(home)

    return used


async def _invoke(terminal: Terminal, home: Home, operation: Operation, arguments: Mapping[str, Any]) -> int:
    context = _context(terminal)
    if operation.name in UNDER_WAY:
        arguments = {KEY: uuid4().hex, **arguments}
    result, replayed = await invoke(home, operation, arguments, context)
    while is_under_way(operation.name, shown := result.model_dump(mode="json")):
        result, _ = await invoke(home, operation, arguments, context)
    terminal.show({**shown, "replayed": True} if replayed else shown)
    return outcome(operation.name, shown)


def _context(terminal: Terminal) -> Context:
    """Say who calls: the person of this home, from this directory."""
    principal = principal_of(terminal)
    environ = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    if terminal.workspace:
        environ[_WORKSPACE] = terminal.workspace

    async def report(done: float, total: float | None, text: str) -> None:
        if terminal.err.isatty():
            of = f"/{total:g}" if total is not None else ""
            terminal.note(f"{done:g}{of} {text}")

    return Context(principal, cwd=_directory(), environ=environ, report=report)


def _directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed
        return None
