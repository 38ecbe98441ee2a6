"""`agentstead reference`: the reference pages, written or compared with the code."""

from pathlib import Path
from typing import Annotated

import typer

from agentstead.cli.exits import DONE, FAILED
from agentstead.cli.reference import differing
from agentstead.cli.reference import write as write_pages
from agentstead.cli.terminal import Terminal


def reference(
    terminal: Terminal,
    *,
    folder: Annotated[Path, typer.Argument(help="Where the pages are.", metavar="DIR")] = Path("docs/reference"),
    write: Annotated[bool, typer.Option("--write", help="Bring them up to date instead of comparing.")] = False,
) -> int:
    """Compare the reference pages with the code, or write them; exit code 1 where they differ."""
    if write:
        terminal.show({"folder": str(folder), "changed": write_pages(folder)})
        return DONE
    found = differing(folder)
    terminal.show({"folder": str(folder), "differing": found})
    return FAILED if found else DONE
