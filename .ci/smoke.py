"""Use an installed Agentstead as its user would, far from the checkout. Usage: smoke.py VENV CHECKOUT."""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

LIST_SHIPPED = """
import importlib.util, pathlib
for root in map(pathlib.Path, importlib.util.find_spec("agentstead").submodule_search_locations):
    for path in root.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            print(path.relative_to(root).as_posix())
"""

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "smoke", "version": "1"},
}
LINES = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


class User:
    """Somebody with an installed Agentstead, a folder, and a home of their own."""

    def __init__(self, venv: Path, folder: Path) -> None:
        self._programs = venv / "bin"
        self._folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTSTEAD_", "PYTHON"))}
        own = {"HOME": str(folder), "TMPDIR": str(folder), "AGENTSTEAD_HOME": str(folder / "home")}
        self._environ = {**kept, **own}

    def run(self, program: str, *arguments: str, typed: str = "") -> str:
        """Run one command to its end and return what it printed; anything but success ends the smoke test."""
        argv = [self._programs / program, *arguments]
        done = subprocess.run(
            argv,
            cwd=self._folder,
            env=self._environ,
            input=typed,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{program} {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def first_lines(self, server: str, wanted: int) -> list[dict[str, object]]:
        """Speak to one server as a host does; return its first answers."""
        argv = [self._programs / "agentstead", "serve", server]
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, cwd=self._folder, env=self._environ, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("".join(json.dumps(line) + "\n" for line in LINES))
            process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for _ in range(wanted)]
            process.stdin.close()
        return answers


def main(venv: Path, checkout: Path) -> None:
    """Check the files that came along, then do what a first hour brings."""
    with tempfile.TemporaryDirectory(prefix="as-") as folder:
        user = User(venv, Path(folder))
        look_at_files(user, checkout)
        look_at_version(user, checkout)
        meet_servers(user, checkout)
        print(user.run("agentstead", "install", "codex", "--dry-run").splitlines()[0])
        user.run("agentstead", "verify")
        user.run("agentstead", "stop")
        print(user.run("agentstead", "demo").splitlines()[-1])


def look_at_files(user: User, checkout: Path) -> None:
    """Compare the installed files with those of the checkout, migrations and `py.typed` among them."""
    shipped = set(user.run("python", "-c", LIST_SHIPPED).splitlines())
    expected = set(sources(checkout))
    if missing := sorted(expected - shipped):
        sys.exit(f"not in the installed package: {missing}")
    migrations = [path for path in expected if path.endswith(".sql")]
    print(f"{len(expected)} files of the checkout are installed, {len(migrations)} migrations among them")


def look_at_version(user: User, checkout: Path) -> None:
    """Ask the command for the version of the project."""
    version = project(checkout)["version"]
    said = user.run("agentstead", "--version").strip()
    if said != f"agentstead {version}":
        sys.exit(f"agentstead --version said {said!r}, the project is at {version}")
    print(said)


def meet_servers(user: User, checkout: Path) -> None:
    """List the tools of each server over stdio; the first starts the coordinator for all."""
    for server in project(checkout)["entry-points"]["agentstead.servers"]:
        greeting, listed = user.first_lines(server, 2)
        print(f"{server}: {greeting['result']['serverInfo']['version']}, {len(listed['result']['tools'])} tools")


def sources(checkout: Path) -> list[str]:
    """Return the files of both source folders, as they should be installed."""
    roots = [checkout / side / "agentstead" for side in ("shared", "servers")]
    return [
        path.relative_to(root).as_posix()
        for root in roots
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]


def project(checkout: Path) -> dict:
    """Return what the project says of itself."""
    return tomllib.loads((checkout / "pyproject.toml").read_text())["project"]


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
