"""Measure what group commit gives: acknowledged transactions a second, one commit each against one commit a group.

Usage: bench_group_commit.py [DIRECTORY]. The directory decides which disk is measured. Read the ratios of one run, not
its figures.
"""

import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentstead.state import State, Tx
from agentstead.state.writer import GROUP_LIMIT

TRANSACTIONS = 3_000
CALLERS = (1, 8, 32, 128)

_TABLE = "CREATE TABLE rows (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT"
_INSERT = "INSERT INTO rows (id, body) VALUES (:id, :body)"


@dataclass(frozen=True, slots=True)
class Figures:
    """One row of the table."""

    per_second: float
    p50_ms: float
    p95_ms: float


def bare(tx: Tx, number: int) -> None:
    """Make the two inserts of the baseline, without the journal."""
    tx.execute(_INSERT, id=f"a{number}", body="x" * 200)
    tx.execute(_INSERT, id=f"b{number}", body="y" * 300)


def journaled(tx: Tx, number: int) -> None:
    """Make one insert and its journal entry: what each mutation of ours does."""
    tx.execute(_INSERT, id=f"a{number}", body="x" * 200)
    tx.journal("bench.row.added", subject=f"a{number}", body={"note": "y" * 300})


async def measure(folder: Path, fn: Callable[[Tx, int], None], *, callers: int, group_limit: int) -> Figures:
    """Let `callers` write in parallel, each waiting for its own acknowledgement."""
    state = await State.open(folder, group_limit=group_limit)
    await state.maintain(lambda connection: connection.execute(_TABLE))
    took: list[float] = []

    async def caller(first: int) -> None:
        for number in range(first, TRANSACTIONS, callers):
            began = time.perf_counter()
            await state.write(fn, number)
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(caller(first) for first in range(callers)))
    elapsed = time.perf_counter() - began
    await state.close()
    return Figures(TRANSACTIONS / elapsed, statistics.median(took) * 1e3, statistics.quantiles(took, n=20)[18] * 1e3)


async def in_fresh_home(parent: Path, fn: Callable[[Tx, int], None], *, callers: int, group_limit: int) -> Figures:
    """Measure on an empty database, and leave nothing behind."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
    try:
        return await measure(folder, fn, callers=callers, group_limit=group_limit)
    finally:
        shutil.rmtree(folder)


async def main(parent: Path) -> None:
    """Print one line for each number of callers and each kind of transaction."""
    print(f"{'transaction':<11} {'callers':>7} {'one commit each':>24} {'grouped':>24} {'ratio':>6}")
    for fn in (bare, journaled):
        for callers in CALLERS:
            single = await in_fresh_home(parent, fn, callers=callers, group_limit=1)
            grouped = await in_fresh_home(parent, fn, callers=callers, group_limit=GROUP_LIMIT)
            print(
                f"{fn.__name__:<11} {callers:>7} {_told(single):>24} {_told(grouped):>24} "
                f"{grouped.per_second / single.per_second:>6.1f}"
            )


def _told(figures: Figures) -> str:
    return f"{figures.per_second:,.0f}/s p95 {figures.p95_ms:.2f} ms"


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir())))
