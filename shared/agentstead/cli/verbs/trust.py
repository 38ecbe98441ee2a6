"""`agentstead trust host NAME`: a person's recorded trust in a host program."""

from typing import Annotated

import typer

from agentstead.cli.running import as_person, with_home
from agentstead.cli.terminal import Terminal
from agentstead.kit import Home
from agentstead.policy import trust_host, untrust

Name = Annotated[str, typer.Argument(help="The client name that the host gives when it connects.")]


def trust(
    terminal: Terminal,
    *,
    name: Name,
    forms_only: Annotated[bool, typer.Option("--forms-only", help="Only the forms that it shows to you.")] = False,
) -> None:
    """Trust a host: what you answer in its forms counts, and without --forms-only its own word for you does too.

    The name is a claim of the host: any program of yours may say the same.
    """

    async def record(home: Home) -> None:
        await home.state.write(trust_host, name, forms_only=forms_only)

    with_home(terminal, as_person(record))
    terminal.show({"host": name, "trusted": "forms" if forms_only else "all"})


def end_trust(terminal: Terminal, *, name: Name) -> None:
    """End the trust in a host."""

    async def end(home: Home) -> None:
        await home.state.write(untrust, "", "host", path=name)

    with_home(terminal, as_person(end))
    terminal.show({"host": name, "trusted": "no"})
