"""`agentstead home`: a copy of the whole home while it is in use, and its tokens."""

from pathlib import Path
from typing import Annotated

import typer

from agentstead.cli.copying import back_up
from agentstead.cli.running import as_person, with_home
from agentstead.cli.terminal import Terminal
from agentstead.identity import TOKEN_FILE, home_token, tokens
from agentstead.kit import Home
from agentstead.state import Denied


def backup(
    terminal: Terminal,
    *,
    directory: Annotated[Path, typer.Argument(help="A new or empty directory.", metavar="DIR")],
) -> None:
    """Copy the database and the blobs it refers to into a directory, with a manifest of digests.

    Nobody has to stop: the copy is of one moment. Keys and tokens are not copied.
    """
    done = with_home(terminal, lambda home: back_up(home, directory.resolve()))
    terminal.show(done)


def token(
    terminal: Terminal,
    *,
    renew: Annotated[bool, typer.Option("--renew", help="Make a new one; the old one ends at once.")] = False,
    operator: Annotated[
        bool, typer.Option("--operator", help="Make a token that may answer questions; it is shown once.")
    ] = False,
    days: Annotated[int, typer.Option(help="How long an operator token lasts.")] = tokens.OPERATOR_DAYS,
) -> None:
    """Show the token that HTTP clients send as bearer, renew it, or make an operator token."""
    if operator:
        if not terminal.at_terminal:
            raise Denied(
                "permission.denied",
                "An operator token is made at a terminal only, since whoever holds it answers for the person.",
                remedy="Run this in a terminal, not through a pipe.",
            )
        terminal.show(with_home(terminal, as_person(lambda home: _operator(home, days))))
        return

    async def show_token(home: Home) -> dict[str, object]:
        found = await home_token(home.state, home.path, renew=renew)
        return {"token": found.token, "file": str(home.path / TOKEN_FILE), "renewed": found.renewed}

    terminal.show(with_home(terminal, as_person(show_token)))


async def _operator(home: Home, days: int) -> dict[str, object]:
    fresh = tokens.new_token("operator")
    expires_at = await home.state.write(tokens.add_operator, fresh, days=days)
    return {"token": fresh, "expires_at": expires_at, "note": "It is not stored and not shown again."}
