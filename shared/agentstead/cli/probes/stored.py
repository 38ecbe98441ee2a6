"""Probes of what is stored: the database, the end of the journal's chain, rows that were set aside, clock, settings."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from agentstead.cli.probes.finding import Finding
from agentstead.config import Settings
from agentstead.coordinator.suitability import clock_warning
from agentstead.kit import Home
from agentstead.state import DATABASE_FILE, AgentsteadError, Entry, Head, Quarantined, Reading, quarantined

_TAIL = 500
_SHOWN = 10


def database(home: Path) -> Iterator[Finding]:
    """Look whether the database can be opened and is whole."""
    path = home / DATABASE_FILE
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=2.0)) as connection:
            wrong = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
            orphans = connection.execute("PRAGMA foreign_key_check").fetchmany(5)
    except sqlite3.Error as error:
        wrong, orphans = [str(error)], []
    newest = _newest(home / "backups")
    fix = f"agentstead stop, keep a copy of {path}, then put a backup in its place{newest}."
    if wrong:
        yield Finding("database.damaged", "error", f"{path} is damaged.", "; ".join(wrong)[:300], fix)
    if orphans:
        evidence = ", ".join(f"{row[0]} {row[1]}" for row in orphans)
        yield Finding("database.orphans", "error", f"{path} has rows that point to nothing.", evidence, fix)


def journal(home: Path) -> Iterator[Finding]:
    """Look whether the newest entries of the journal follow each other; `agentstead verify` walks all."""
    if not (home / DATABASE_FILE).exists():
        return
    try:
        tail, head, now_us, held = asyncio.run(_opened(home))
    except AgentsteadError as error:
        yield Finding(error.code, "error", error.message, fix=error.remedy)
        return
    yield from _broken(tail, head)
    yield from _set_aside(held)
    warning = clock_warning(now_us, head.at_us)
    if warning:
        yield Finding("clock.behind", "warning", warning, fix="Set the clock of this machine.")


def settings(home: Path) -> Iterator[Finding]:
    """Look at the settings files and the variables."""
    for fault in Settings(home).faults():
        yield Finding(fault.code, "warning", fault.what, fault.where, fault.remedy)


async def _opened(home: Path) -> tuple[list[Entry], Head, int, list[Quarantined]]:
    opened = await Home.open(home)
    try:
        return await opened.state.read(_stored)
    finally:
        await opened.close()


def _stored(reading: Reading) -> tuple[list[Entry], Head, int, list[Quarantined]]:
    head = reading.head()
    return reading.entries(max(0, head.seq - _TAIL), most=_TAIL), head, reading.now_us, quarantined(reading)


def _broken(tail: list[Entry], head: Head) -> Iterator[Finding]:
    for before, entry in pairwise(tail):
        if entry.seq != before.seq + 1:
            what = f"The journal lacks entry {before.seq + 1}."
            yield Finding(
                "journal.broken", "error", what, f"{before.seq} is followed by {entry.seq}", "agentstead verify"
            )
    if tail and tail[-1].hash != head.hash:
        yield Finding("journal.broken", "error", "The journal's head is not its last entry.", fix="agentstead verify")


def _set_aside(held: list[Quarantined]) -> Iterator[Finding]:
    for row in held[:_SHOWN]:
        what = f"{row.entity} {row.ref} was set aside at start-up."
        yield Finding("home.quarantined", "warning", what, row.reason, f"agentstead verify --only {row.entity}")
    if len(held) > _SHOWN:
        yield Finding("home.quarantined", "warning", f"{len(held) - _SHOWN} more rows were set aside.")


def _newest(backups: Path) -> str:
    found = sorted(backups.glob("state-*.db"))
    return f" (the newest is {found[-1]})" if found else ""
