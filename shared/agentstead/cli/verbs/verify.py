"""`agentstead verify`: whether what is stored is what was written."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from agentstead.blobs import Level
from agentstead.cli.exits import DONE, FAILED
from agentstead.cli.running import with_home
from agentstead.cli.terminal import Terminal
from agentstead.kit import Home
from agentstead.state import Invalid

_JOURNAL = "journal"
_BLOBS = "blobs"
_SHOWN = 50


def verify(
    terminal: Terminal,
    *,
    only: Annotated[
        str, typer.Option(help="Only these parts, as a,b: journal, blobs, or a server's name.", metavar="PARTS")
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Look whether each object is there, without reading its bytes again.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing where everything holds.")] = False,
) -> int:
    """Walk the journal's chain, hash every stored object again, and let each server check its records.

    Exit code 1 where anything does not hold.
    """
    parts = with_home(terminal, lambda home: _verified(home, only, level="index" if quick else "bytes"))
    holds = all(part["holds"] for part in parts)
    if not (quiet and holds):
        terminal.show({"holds": holds, "parts": parts})
    return DONE if holds else FAILED


async def _verified(home: Home, only: str, *, level: Level) -> list[dict[str, Any]]:
    known = [_JOURNAL, _BLOBS, *(server.name for server in home.servers if server.verify is not None)]
    wanted = [name.strip() for name in only.split(",") if name.strip()] or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise Invalid(
            "tool.invalid_arguments", f"{unknown[0]!r} is no part to verify.", remedy=f"Parts: {', '.join(known)}."
        )
    return [await _part(home, name, level=level) for name in known if name in wanted]


async def _part(home: Home, name: str, *, level: Level) -> dict[str, Any]:
    if name == _JOURNAL:
        chain = await home.state.verify()
        wrong = [] if chain.holds else [f"entry {chain.broken_seq}: {chain.reason}"]
        return _found(name, f"{chain.entries} entries, head {chain.head.hash[:16]}", wrong)
    if name == _BLOBS:
        store = await home.blobs.verify(home.state, level=level)
        wrong = [f"missing: {key.kind} {key.id}" for key in store.missing]
        wrong += [f"altered: {key.kind} {key.id}" for key in store.corrupt]
        return _found(name, f"{store.stored} objects, {store.reached} in use", wrong)
    server = next(server for server in home.servers if server.name == name)
    assert server.verify is not None
    return _found(name, "", await server.verify(home))


def _found(name: str, looked_at: str, wrong: Sequence[str]) -> dict[str, Any]:
    shown = [*wrong[:_SHOWN], *([f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else [])]
    return {"part": name, "holds": not wrong, "looked_at": looked_at, "wrong": shown}
