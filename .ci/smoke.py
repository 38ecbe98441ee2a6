"""Use an installed Agentstead as its user would, far from the checkout. Usage: smoke.py VENV CHECKOUT."""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

LIST_SHIPPED = """
import importlib.util, pathlib
spec = importlib.util.find_spec("agentstead")
for root in map(pathlib.Path, spec.submodule_search_locations if spec else ()):
    for path in root.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            print(path.relative_to(root).as_posix())
"""


def main(venv: Path, checkout: Path) -> None:
    """Check the files that came along, then run commands in a home of their own."""
    shipped = set(_run(venv / "bin" / "python", "-c", LIST_SHIPPED).splitlines())
    expected = set(_sources(checkout))
    missing = sorted(expected - shipped)
    if missing:
        sys.exit(f"not in the installed package: {missing}")
    print(f"{len(expected)} files of the checkout are in the installed package")

    if not (checkout / "shared/agentstead/cli/main.py").exists():
        return
    version = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["version"]
    said = _run(venv / "bin" / "agentstead", "--version")
    if version not in said:
        sys.exit(f"agentstead --version said {said!r}, the project is at {version}")
    print(said.strip())


def _sources(checkout: Path) -> list[str]:
    roots = [checkout / side / "agentstead" for side in ("shared", "servers")]
    return [
        path.relative_to(root).as_posix()
        for root in roots
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]


def _run(*argv: str | Path) -> str:
    with tempfile.TemporaryDirectory(prefix="as-") as folder:
        home = Path(folder) / "home"
        environ = {**os.environ, "AGENTSTEAD_HOME": str(home), "HOME": folder}
        done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
