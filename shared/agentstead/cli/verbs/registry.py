"""`agentstead registry`: which folders this home knows as workspaces."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agentstead.cli.running import as_person, with_home
from agentstead.cli.terminal import Terminal
from agentstead.identity import Workspace, register
from agentstead.identity import registry as rows
from agentstead.kit import Home


def list_workspaces(terminal: Terminal) -> None:
    """List the workspaces of this home, by name."""
    found = with_home(terminal, lambda home: home.state.read(rows.listed))
    terminal.show({"workspaces": [_shown(each) for each in found]})


def add(
    terminal: Terminal,
    *,
    path: Annotated[Path, typer.Argument(help="The folder of one project.", metavar="PATH")] = Path(),
    name: Annotated[str, typer.Option(help="How to call it; the folder's own name without it.")] = "",
    fresh_id: Annotated[
        bool, typer.Option("--fresh-id", help="For a copy of another workspace: give it an id of its own.")
    ] = False,
) -> None:
    """Register a folder as a workspace; only its .agentstead/ folder is written, and git ignores our files there."""

    async def add_here(home: Home) -> Workspace:
        return await register(home.state, path.resolve(), home=home.path, name=name, fresh_id=fresh_id)

    terminal.show(_shown(with_home(terminal, as_person(add_here))))


def forget(
    terminal: Terminal,
    *,
    name: Annotated[str, typer.Argument(help="The workspace, by name or id.")],
    expected_version: Annotated[
        int | None, typer.Option("--expected-version", help="Forget it only at this version.")
    ] = None,
) -> None:
    """Take a workspace off the list; nothing of it is deleted, and using its folder again brings it back."""

    async def forget_it(home: Home) -> Workspace:
        return await home.state.write(rows.forget, name, expected_version=expected_version)

    terminal.show(_shown(with_home(terminal, as_person(forget_it))))


def _shown(workspace: Workspace) -> dict[str, Any]:
    return {
        "name": workspace.name,
        "id": workspace.id,
        "root": str(workspace.root),
        "state": workspace.state,
        "version": workspace.version,
        "created_at": workspace.created_at,
    }
