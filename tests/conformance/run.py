"""Run the protocol's own conformance suite against the six servers over HTTP, in both eras.

Usage: run.py [--record]. Needs npm; the suite and its Node are installed once into a cache of the user's. What a
server need not pass is listed in `expected-*.yml`, one list for all six; a listed scenario that passes fails the run
too. `--record` prints what fails now.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

HERE = Path(__file__).parent
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node@22"
REVISIONS = ("2025-11-25", "2026-07-28")
SERVERS = sorted(point.name for point in entry_points(group="agentstead.servers"))
AGENTSTEAD = Path(sys.executable).parent / "agentstead"


@dataclass(frozen=True, slots=True)
class Served:
    """A running coordinator."""

    base: str
    token: str


def install() -> Path:
    """Install the suite where it is missing; return the folder that holds `node_modules`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "agentstead-ci" / SUITE.rpartition("@")[2]
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", NODE, SUITE], cwd=folder, check=True
        )
        (folder / "installed").touch()
    shutil.copy(HERE / "auth.mjs", folder)
    return folder


@contextmanager
def served() -> Iterator[Served]:
    """Serve a new home over HTTP on a free port, and drain it at the end."""
    with tempfile.TemporaryDirectory(prefix="as-") as folder:
        home = Path(folder) / "home"
        port = free_port()
        environ = {**os.environ, "AGENTSTEAD_HOME": str(home)}
        with (Path(folder) / "out").open("w") as out:
            process = subprocess.Popen([AGENTSTEAD, "up", "--port", str(port)], env=environ, stdout=out, stderr=out)
        try:
            base = f"http://127.0.0.1:{port}"
            wait_until_ready(base, process)
            yield Served(base, token_of(environ))
        finally:
            process.terminate()
            process.wait(timeout=90)


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(base: str, process: subprocess.Popen[bytes], *, within_s: float = 60) -> None:
    """Ask until the coordinator is ready; raises RuntimeError where it ends or takes too long."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"agentstead up ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{base}/readyz", timeout=2):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise RuntimeError(f"agentstead up was not ready within {within_s:.0f} s")


def token_of(environ: dict[str, str]) -> str:
    """Return the home's token as a person gets it."""
    told = subprocess.run(
        [AGENTSTEAD, "home", "token", "-o", "json"], env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    token: str = json.loads(told.stdout)["token"]
    return token


def check(suite: Path, target: Served, *, server: str, revision: str, record: bool) -> bool:
    """Run one server at one revision; return whether it did as expected."""
    expected = HERE / f"expected-{revision}.yml"
    environ = {
        **os.environ,
        "NODE_OPTIONS": f"--import {suite / 'auth.mjs'}",
        "MCP_BASE": target.base,
        "MCP_BEARER": target.token,
    }
    url = f"{target.base}/{server}/mcp"
    with tempfile.TemporaryDirectory() as results:
        argv = ["server", "--url", url, "--requirements", revision, "--output-dir", results]
        if not record:
            argv += ["--expected-failures", str(expected)]
        programs = suite / "node_modules/.bin"
        done = subprocess.run(
            [programs / "node", programs / "conformance", *argv],
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    if record:
        print(*(f"  - {name}" for name in failed(done.stdout)), sep="\n")
    right = record or done.returncode == 0
    print(
        f"{server:<12} {revision}  {totals(done.stdout)}, {'as expected' if right else 'NOT as expected'}", flush=True
    )
    if not right:
        print(done.stdout[-6000:], done.stderr[-2000:], sep="\n")
    return right


def failed(printed: str) -> list[str]:
    """Return the scenarios that the suite's summary marks as failed."""
    return sorted(set(re.findall(r"^✗ ([\w-]+):", printed, re.MULTILINE)))


def totals(printed: str) -> str:
    """Return how many checks passed and failed, as one phrase."""
    found = re.search(r"^Total: (\d+) passed, (\d+) failed", printed, re.MULTILINE)
    return f"{found[1]} checks held and {found[2]} did not" if found else "no totals"


def main() -> int:
    """Return 0 where every server did as expected in both eras."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    record = parser.parse_args().record
    if shutil.which("npm") is None:
        print("skipped: there is no npm on this machine")
        return 0
    suite = install()
    with served() as target:
        went = [
            check(suite, target, server=server, revision=revision, record=record)
            for server in SERVERS
            for revision in REVISIONS
        ]
    return 0 if all(went) else 1


if __name__ == "__main__":
    sys.exit(main())
