"""`agentstead events`: the journal as it grows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from agentstead.cli.exits import DONE
from agentstead.cli.plain import one_line
from agentstead.cli.running import with_home
from agentstead.cli.terminal import Terminal, compact
from agentstead.kit import Home
from agentstead.state import Entry, Reading

_WAIT_S = 25.0
_PAGE = 500


def events(
    terminal: Terminal,
    *,
    kinds: Annotated[
        list[str] | None,
        typer.Argument(help="Only entries of these kinds; `memory.*` takes all of one server.", metavar="KIND"),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until interrupted.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", help="How many of the last entries to begin with.", min=0)
    ] = 20,
    after: Annotated[int | None, typer.Option(help="Begin behind this entry, instead of with the last ones.")] = None,
) -> int:
    """Show the last changes in this home, one a line, and with --follow each further one as it happens.

    With `-o json` each line is one entry with its body.
    """
    return with_home(terminal, lambda home: _show(terminal, home, tuple(kinds or ()), follow, lines, after))


async def _show(
    terminal: Terminal, home: Home, kinds: Sequence[str], follow: bool, lines: int, after: int | None
) -> int:
    seen = await home.state.read(_before_last, tuple(kinds), lines) if after is None else after
    while True:
        found = await home.state.wait(seen, kinds=kinds, timeout_s=_WAIT_S if follow else 0.0, most=_PAGE)
        for entry in found:
            terminal.line(_line(terminal, entry))
        if found:
            seen = found[-1].seq
        elif not follow:
            return DONE


def _before_last(reading: Reading, kinds: tuple[str, ...], lines: int) -> int:
    """Return the sequence behind which the last `lines` entries of these kinds stand."""
    head = reading.head().seq
    span = lines
    while span and head:
        behind = max(0, head - span)
        found = reading.entries(behind, kinds=kinds, most=span)
        if len(found) >= lines:
            return found[len(found) - lines].seq - 1
        if behind == 0:
            return 0
        span *= 4
    return head


def _line(terminal: Terminal, entry: Entry) -> str:
    if terminal.is_json:
        return compact(_shown(entry))
    at = datetime.fromtimestamp(entry.at_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return one_line(f"{entry.seq:>6}  {at}  {entry.kind:<32}  {entry.subject:<30}  {entry.principal}")


def _shown(entry: Entry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": entry.at_us,
        "kind": entry.kind,
        "subject": entry.subject,
        "workspace": entry.workspace_id,
        "principal": entry.principal,
        "trace_id": entry.trace_id,
        "body": entry.body,
        "hash": entry.hash,
    }
