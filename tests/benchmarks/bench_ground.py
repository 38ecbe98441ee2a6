"""Measure the ground in one run and print each ratio beside its goal: start, memory, calls, durable writes, idle size.

Usage: python -m tests.benchmarks.bench_ground [ROUNDS]. Rounds alternate between ours and the plain SDK, so that a busy
machine is unfair to neither. Linux only: memory is read from /proc.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agentstead.state.writer import GROUP_LIMIT
from tests.benchmarks.bench_group_commit import bare, in_fresh_home
from tests.benchmarks.bench_shim import INITIALIZE, PLAIN, Server

CALLS = 400
COMMITS = 300
WRITERS = 32
THIRTY_TOOLS = "".join(
    f'\n@server.tool()\ndef tool_{number}(text: str) -> str:\n    "Return the text."\n    return text\n'
    for number in range(30)
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: ours, the other side's, and the goal for their ratio ('' where it is only printed)."""

    name: str
    ours: float
    other: float
    unit: str
    goal: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float:
        """Return other / ours where larger is better, ours / other where smaller is."""
        return self.other / self.ours if self.at_least is not None and self.unit != "/s" else self.ours / self.other

    @property
    def verdict(self) -> str:
        """Say whether the goal is met."""
        if self.at_least is not None:
            return "met" if self.ratio >= self.at_least else "MISSED"
        if self.at_most is not None:
            return "met" if self.ratio <= self.at_most else "MISSED"
        return ""


def opened(argv: list[str], environ: dict[str, str]) -> tuple[Server, float]:
    """Start a server; return it and the milliseconds until it had answered `initialize`."""
    began = time.perf_counter()
    server = Server(argv, environ)
    server.request("initialize", INITIALIZE)
    took = (time.perf_counter() - began) * 1e3
    server.notify("notifications/initialized")
    return server, took


def timed(call: Callable[[], object], times: int) -> list[float]:
    """Return the milliseconds of each of `times` calls."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1e3)
    return took


def bare_commits(folder: Path) -> list[float]:
    """Time one-row commits of a bare sqlite3 connection with the same durability."""
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT")

        def commit() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 200,))
            connection.execute("COMMIT")

        return timed(commit, COMMITS)


def rss_mib(pid: int) -> float:
    """Return the resident size of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def through_servers(folder: Path, environ: dict[str, str], rounds: int) -> list[Row]:
    """Measure what goes through processes: start, memory, calls, writes, and the coordinator's idle size."""
    ours = [str(Path(sys.executable).parent / "agentstead"), "serve", "sessions"]
    script = folder / "plain.py"
    script.write_text(PLAIN.replace("\nserver.run", f"{THIRTY_TOOLS}\nserver.run"))
    plain = [sys.executable, str(script)]
    warm, _ = opened(ours, environ)
    session = str(warm.call("session_open", {"workspace": str(folder / "project"), "name": "bench"})["session_id"])
    starts: tuple[list[float], list[float]] = ([], [])
    sizes: tuple[list[float], list[float]] = ([], [])
    calls: tuple[list[float], list[float]] = ([], [])
    writes: list[float] = []
    record = {"session_id": session, "events": [{"kind": "note", "text": "x" * 200}]}
    for _ in range(rounds):
        shim, took = opened(ours, environ)
        starts[0].append(took)
        calls[0].extend(timed(lambda shim=shim: shim.call("desk_view", {"kind": "run"}), CALLS))  # type: ignore[misc]
        writes.extend(timed(lambda shim=shim: shim.call("session_record", record), CALLS // 4))  # type: ignore[misc]
        sizes[0].append(shim.memory_mib()[0])
        shim.end()
        sdk, took = opened(plain, environ)
        starts[1].append(took)
        calls[1].extend(timed(lambda sdk=sdk: sdk.call("echo", {"text": "x"}), CALLS))  # type: ignore[misc]
        sizes[1].append(sdk.memory_mib()[0])
        sdk.end()
    status = subprocess.run([ours[0], "status", "-o", "json"], env=environ, capture_output=True, check=True, timeout=60)
    coordinator = rss_mib(int(json.loads(status.stdout)["pid"]))
    warm.end()
    p50 = statistics.median
    return [
        Row("shim initialize, warm", p50(starts[0]), p50(starts[1]), "ms", "10 times faster or more", at_least=10),
        Row("memory of a shim", p50(sizes[0]), p50(sizes[1]), "MiB", "a sixth or less", at_least=6),
        Row("trivial call, p50", p50(calls[0]), p50(calls[1]), "ms", "at most 1.0", at_most=1.0),
        Row("durable write call, p50", p50(writes), p50(bare_commits(folder)), "ms"),
        Row("coordinator idle, six servers", coordinator, p50(sizes[1]), "MiB", "at most 1.4", at_most=1.4),
    ]


async def writers(folder: Path) -> Row:
    """Measure 32 concurrent writers with full groups against one commit each, both with FULL durability."""
    single = await in_fresh_home(folder, bare, callers=WRITERS, group_limit=1)
    grouped = await in_fresh_home(folder, bare, callers=WRITERS, group_limit=GROUP_LIMIT)
    return Row("32 writers", grouped.per_second, single.per_second, "/s", "8 times or more", at_least=8)


def main(rounds: int) -> None:
    """Print one line a figure."""
    folder = Path(tempfile.mkdtemp(prefix="as-"))
    (folder / "project" / ".git").mkdir(parents=True)
    environ = {**os.environ, "AGENTSTEAD_HOME": str(folder / "home")}
    try:
        rows = through_servers(folder, environ, rounds)
        rows.append(asyncio.run(writers(folder)))
    finally:
        agentstead = str(Path(sys.executable).parent / "agentstead")
        subprocess.run([agentstead, "stop"], env=environ, capture_output=True, timeout=90, check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'figure':<30}{'ours':>12}{'other':>12}  {'unit':<5}{'ratio':>7}  goal")
    for row in rows:
        figures = f"{row.ours:>12.2f}{row.other:>12.2f}  {row.unit:<5}{row.ratio:>7.2f}"
        print(f"{row.name:<30}{figures}  {row.goal} {row.verdict}".rstrip())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
