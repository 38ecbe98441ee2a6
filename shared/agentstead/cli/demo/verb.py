"""`agentstead demo`: the whole idea in seconds, in a home of its own."""

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from agentstead.cli.exits import DONE, FAILED
from agentstead.cli.terminal import Terminal
from agentstead.coordinator import control
from agentstead.state import Invalid

REPORT = "report.html"


def demo(
    terminal: Terminal,
    *,
    repo: Annotated[Path | None, typer.Option(help="Work on a copy of this repository instead.")] = None,
    check: Annotated[str, typer.Option(help="With --repo: the command that proves it.")] = "",
    candidates: Annotated[Path | None, typer.Option(help="With --repo: a folder with .patch or .diff files.")] = None,
    into: Annotated[
        Path | None, typer.Option("--dir", help="Where to work; by default a new temporary folder.")
    ] = None,
) -> int:
    """Show the whole idea on real input: fork, check, compare receipts, promote, remember, tell. No model, no key.

    It connects to the six servers over stdio as a host does, and answers as that host's person. Its home, its project
    and an HTML report stay in one folder that you may remove. Exit code 1 means that no candidate was proved.
    """
    if (repo is None) != (candidates is None):
        raise Invalid(
            "tool.invalid_arguments",
            "--repo and --candidates go together.",
            remedy="Give both, and --check, or none of them for the bundled project.",
        )
    place = into or Path(tempfile.mkdtemp(prefix="agentstead-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    try:
        shown = asyncio.run(_perform(terminal, place.resolve(), repo, check, candidates))
    finally:
        control.stop(place.resolve() / "home")
    terminal.show(shown)
    return DONE if shown["promoted"] else FAILED


async def _perform(
    terminal: Terminal, place: Path, repo: Path | None, check: str, candidates: Path | None
) -> dict[str, Any]:
    from agentstead.cli.demo.material import of_repository, own
    from agentstead.cli.demo.play import play
    from agentstead.cli.demo.report import page
    from agentstead.cli.demo.stage import Event, Timeline, on_stage

    def tell(event: Event) -> None:
        terminal.say(
            f"{event.at_s:6.2f} s  {event.who:<11} {event.what}" + (f"  ({event.detail})" if event.detail else "")
        )

    timeline = Timeline(tell)
    material = (
        own(place)
        if repo is None or candidates is None
        else of_repository(place, repo, check=check, candidates=candidates)
    )
    timeline.add("demo", f"working in {place}", f"check: {' '.join(material.check)}")
    try:
        async with on_stage(place / "home", material.project, timeline) as stage:
            outcome = await play(stage, material, timeline)
    except ExceptionGroup as group:  # the clients' task groups wrap what the play met
        raise _innermost(group) from group
    report = place / REPORT
    report.write_text(page(outcome, timeline.events), encoding="utf-8")
    return {
        "promoted": outcome.winner.candidate.name if outcome.winner else None,
        "candidates": [
            {
                "name": attempt.candidate.name,
                "status": attempt.receipt["status"],
                "receipt_id": attempt.receipt["receipt_id"],
                "changed_lines": attempt.changed_lines,
            }
            for attempt in outcome.attempts
        ],
        "session_id": outcome.session_id,
        "thread_id": outcome.thread_id,
        "seconds": round(timeline.events[-1].at_s, 2),
        "report": str(report),
        "home": str(place / "home"),
    }


def _innermost(error: Exception) -> Exception:
    """Return the first error inside nested groups."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
