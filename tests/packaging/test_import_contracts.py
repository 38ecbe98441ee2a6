"""Each import contract of pyproject.toml bites: a skeleton of the packages holds, and breaks with one line planted."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
SERVERS = set(PROJECT["project"]["entry-points"]["agentstead.servers"])
PLACED = {name.strip(" ()") for layer in CONTRACTS[0]["layers"] for name in layer.split("|")}
NAMES = {contract["id"]: contract["name"] for contract in CONTRACTS}

# module that gets a line, the line, the contracts that it breaks
PLANTED = [
    ("state", "import agentstead.kit", {"layers"}),
    ("identity", "import agentstead.config", {"layers"}),
    ("policy", "def late():\n    import agentstead.runner", {"layers"}),
    ("kit.operation", "from agentstead.memory import service", {"layers", "servers"}),
    ("cli.main", "import agentstead.memory.service", {"servers"}),
    ("coordinator.run", "from agentstead.sessions import service", {"servers"}),
    ("memory.service", "from agentstead.skills import service", {"layers", "servers"}),
    ("sessions.service", "from agentstead.memory.service import recall", {"servers"}),
    ("sessions.service", "from agentstead.workspace import snapshots", {"servers"}),
    ("network.service", "from agentstead.workspace import service", {"servers"}),
    ("workspace.service", "from agentstead.sessions import service", {"layers", "servers"}),
    ("network.service", "from agentstead.sessions import server", {"servers", "faces"}),
    ("memory.service", "from agentstead.memory.server import SERVER", {"faces"}),
    ("coordinator.run", "import agentstead.cli.main", {"layers", "faces"}),
    ("memory.service", "import agentstead.coordinator", {"layers", "coordinator"}),
    ("memory.service", "import mcp", {"protocol"}),
    ("policy", "from mcp_types import Tool", {"protocol"}),
    ("memory.service", "import agentstead.kit.mcp_server", {"protocol"}),
    ("kit", "import agentstead.kit.mcp_server", {"front"}),
    ("coordinator.shim", "import pydantic", {"shim"}),
    ("coordinator.shim", "import agentstead.coordinator.run", {"shim"}),
]

ALLOWED = [
    ("network.service", "from agentstead.sessions import service"),
    ("sessions.service", "from agentstead.workspace import service"),
    ("memory.service", "import agentstead.kit, agentstead.policy, agentstead.state"),
    ("cli.main", "import agentstead.coordinator.run"),
]


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay out every package that has a place, with the modules that contracts speak of and nothing else."""
    root = tmp_path_factory.mktemp("skeleton")
    shutil.copy(ROOT / "pyproject.toml", root)
    for package in sorted(PLACED):
        folder = root / ("servers" if package in SERVERS else "shared") / "agentstead" / package
        folder.mkdir(parents=True)
        for module in ("__init__", "server", "service", "snapshots") if package in SERVERS else ("__init__",):
            (folder / f"{module}.py").touch()
    (root / "shared/agentstead/kit/operation.py").touch()
    (root / "shared/agentstead/kit/mcp_server.py").write_text("import mcp\n")
    (root / "shared/agentstead/coordinator/shim.py").touch()
    (root / "shared/agentstead/coordinator/run.py").write_text("import agentstead.kit.mcp_server\n")
    (root / "shared/agentstead/cli/main.py").touch()
    return root


def broken(root: Path) -> set[str]:
    """Return the ids of the contracts that import-linter calls broken."""
    # The checkout itself is installed editable: without its two folders, only the skeleton is seen.
    paths = {str(ROOT / side): str(root / side) for side in ("shared", "servers")}
    program = (
        "import sys; from importlinter.cli import lint_imports_command\n"
        f"sys.path = {list(paths.values())} + [path for path in sys.path if path not in {list(paths)}]\n"
        "lint_imports_command()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=root,
        env={**os.environ, "COLUMNS": "500", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = {contract for contract, name in NAMES.items() if f"{name} BROKEN" in done.stdout}
    kept = {contract for contract, name in NAMES.items() if f"{name} KEPT" in done.stdout}
    assert told | kept == set(NAMES), done.stdout + done.stderr
    assert (done.returncode == 0) == (told == set())
    return told


def planted(root: Path, module: str, line: str) -> set[str]:
    """Return what breaks while `module` has one more line."""
    (path,) = [
        candidate
        for side in ("shared", "servers")
        for tail in (f"{module.replace('.', '/')}.py", f"{module}/__init__.py")
        if (candidate := root / side / "agentstead" / tail).exists()
    ]
    before = path.read_text()
    path.write_text(f"{before}{line}\n")
    try:
        return broken(root)
    finally:
        path.write_text(before)


def test_the_bare_skeleton_holds(skeleton: Path) -> None:
    assert broken(skeleton) == set()


@pytest.mark.parametrize(("module", "line", "contracts"), PLANTED)
def test_a_planted_import_is_found(skeleton: Path, module: str, line: str, contracts: set[str]) -> None:
    assert planted(skeleton, module, line) == contracts


@pytest.mark.parametrize(("module", "line"), ALLOWED)
def test_an_import_of_the_design_is_kept(skeleton: Path, module: str, line: str) -> None:
    assert planted(skeleton, module, line) == set()


def test_a_package_that_nobody_placed_is_found(skeleton: Path) -> None:
    package = skeleton / "shared/agentstead/stray"
    package.mkdir()
    (package / "__init__.py").touch()
    try:
        assert broken(skeleton) == {"layers"}
    finally:
        shutil.rmtree(package)


def test_each_contract_is_broken_by_something_planted() -> None:
    assert set(NAMES) == {contract for _, _, contracts in PLANTED for contract in contracts}
