"""Measure what a host waits for and keeps in memory: our shim on a warm coordinator against a plain server of the SDK.

Usage: bench_shim.py [ROUNDS]. The two take turns, so that a busy machine is unfair to neither. Linux only: memory is
read from /proc.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PINGS = 200

PLAIN = """
from mcp.server import MCPServer

server = MCPServer("plain")

@server.tool()
def echo(text: str) -> str:
    "Return the text."
    return text

server.run("stdio")
"""

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Server:
    """One server process as a host sees it."""

    def __init__(self, argv: Sequence[str], environ: dict[str, str]) -> None:
        self._ids = iter(range(1, 1_000_000))
        self._process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send one request and return its result; the next line must be its answer."""
        number = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        if answer.get("id") != number or "result" not in answer:
            raise RuntimeError(f"{method} was answered with {answer}")
        return answer["result"]

    def notify(self, method: str) -> None:
        """Send one notification."""
        self._send({"jsonrpc": "2.0", "method": method})

    def memory_mib(self) -> tuple[float, float]:
        """Return resident and proportional size."""
        sizes = dict(
            line.split(":", 1) for line in Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()[1:]
        )
        return tuple(int(sizes[name].split()[0]) / 1024 for name in ("Rss", "Pss"))  # type: ignore[return-value]

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool and return its structured result; raises RuntimeError where it is refused."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result.get("structuredContent")

    def end(self) -> None:
        """Close standard input, as a host does, and wait for the exit."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        self._process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


@dataclass(slots=True)
class Figures:
    """What was measured of one kind of server."""

    initialize_ms: list[float] = field(default_factory=list)
    ping_ms: list[float] = field(default_factory=list)
    exit_ms: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    pss_mib: list[float] = field(default_factory=list)

    def row(self, name: str) -> str:
        """Return the medians as one line."""
        cells = (self.initialize_ms, self.ping_ms, self.exit_ms, self.rss_mib, self.pss_mib)
        return f"{name:<28}" + "".join(f"{statistics.median(cell):>14.2f}" for cell in cells)


def measure(figures: Figures, argv: Sequence[str], environ: dict[str, str]) -> None:
    """Start a server, shake hands, ping it, and close it."""
    began = time.perf_counter()
    server = Server(argv, environ)
    server.request("initialize", INITIALIZE)
    figures.initialize_ms.append((time.perf_counter() - began) * 1e3)
    server.notify("notifications/initialized")
    for _ in range(PINGS):
        sent = time.perf_counter()
        server.request("ping")
        figures.ping_ms.append((time.perf_counter() - sent) * 1e3)
    rss, pss = server.memory_mib()
    figures.rss_mib.append(rss)
    figures.pss_mib.append(pss)
    ended = time.perf_counter()
    server.end()
    figures.exit_ms.append((time.perf_counter() - ended) * 1e3)


def main(rounds: int) -> None:
    """Print one line for each kind."""
    agentstead = str(Path(sys.executable).parent / "agentstead")
    folder = Path(tempfile.mkdtemp(prefix="as-"))
    environ = {**os.environ, "AGENTSTEAD_HOME": str(folder / "home")}
    plain = folder / "plain.py"
    plain.write_text(PLAIN)
    cold, shim, sdk = Figures(), Figures(), Figures()
    try:
        measure(cold, [agentstead, "serve", "memory"], environ)
        for _ in range(rounds):
            measure(shim, [agentstead, "serve", "memory"], environ)
            measure(sdk, [sys.executable, str(plain)], environ)
    finally:
        subprocess.run([agentstead, "stop"], env=environ, capture_output=True, timeout=90, check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{'medians':<28}"
        + "".join(f"{name:>14}" for name in ("initialize ms", "ping ms", "exit ms", "RSS MiB", "PSS MiB"))
    )
    print(cold.row("shim, starts coordinator"))
    print(shim.row("shim, warm coordinator"))
    print(sdk.row("plain server of the SDK"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
