"""`agentstead trust workspace` and `untrust workspace`: a person's recorded trust in the skills of a workspace."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentstead.cli.person import principal_of
from agentstead.cli.running import service_of, with_home
from agentstead.cli.terminal import Terminal
from agentstead.kit import ENVIRONMENT, Call, Home

Mode = Literal["content", "all"]


def trust(
    terminal: Terminal,
    *,
    skills: Annotated[
        Mode,
        typer.Option(help="content: these bytes, a changed skill asks again. all: whatever they become, for your own."),
    ] = "content",
) -> None:
    """Trust the skills that stand in this workspace now, so that agents may use them here.

    Read them first: a skill is text that steers agents. A copy of the folder is not trusted with it.
    """

    async def record(home: Home) -> Any:
        return await service_of("skills").trust_skills(
            _call(terminal, home), workspace_id=terminal.workspace or None, mode=skills
        )

    found = with_home(terminal, record)
    terminal.show(
        {
            "workspace": found.workspace,
            "mode": found.mode,
            "trusted": [{"path": path, "tree_id": tree_id} for path, tree_id in found.contents.items()],
            "left_out": list(found.left_out),
        }
    )


def end_trust(terminal: Terminal) -> None:
    """End the trust in every skill of this workspace; what is active of them ends at its next use."""

    async def end(home: Home) -> list[str]:
        ended: list[str] = await service_of("skills").untrust_skills(
            _call(terminal, home), workspace_id=terminal.workspace or None
        )
        return ended

    terminal.show({"trusted": "none", "ended": with_home(terminal, end)})


def _call(terminal: Terminal, home: Home) -> Call:
    environ = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return Call(home, principal_of(terminal), cwd=Path.cwd(), environ=environ)
