"""`agentstead logs`: what the coordinator wrote down of its own running."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from agentstead.cli.exits import DONE
from agentstead.cli.plain import clean
from agentstead.cli.terminal import Terminal, compact
from agentstead.coordinator.logs import Level, follow, tail
from agentstead.coordinator.places import log_file

_LOOK_S = 0.2


def logs(
    terminal: Terminal,
    *,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last entries.", min=0)] = 50,
    level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="Only entries at least so severe.")
    ] = "debug",
    follow_it: Annotated[bool, typer.Option("--follow", "-f", help="Go on until interrupted.")] = False,
    path: Annotated[bool, typer.Option("--path", help="Print where the log is.")] = False,
) -> int:
    """Show the coordinator's log; what level is written at all is the setting log.level."""
    file = Path(log_file(str(terminal.home)))
    if path:
        terminal.show({"path": str(file)})
        return DONE
    least: Level = level
    for entry in tail(file, entries=lines, least=least) if lines else ():
        _print(terminal, entry)
    if follow_it:
        for line in follow(file, least=least, until=lambda: False, pause=lambda: time.sleep(_LOOK_S)):
            _print(terminal, line)
    elif not file.exists():
        terminal.note(f"There is no log yet at {file}.")
    return DONE


def _print(terminal: Terminal, entry: str) -> None:
    terminal.line(compact({"entry": entry}) if terminal.is_json else clean(entry))
