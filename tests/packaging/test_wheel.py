"""What the built wheel holds: everything that git tracks in the two source folders, and how it is found."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIDES = ("shared", "servers")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def tracked(side: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", side], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line.removeprefix(f"{side}/") for line in listed.splitlines() if (ROOT / line).exists()]


@pytest.mark.parametrize("side", SIDES)
def test_each_tracked_source_file_is_in_the_wheel(wheel: zipfile.ZipFile, side: str) -> None:
    missing = set(tracked(side)) - set(wheel.namelist())
    assert missing == set()


def test_each_migration_is_in_the_wheel_byte_for_byte(wheel: zipfile.ZipFile) -> None:
    migrations = [(side, path) for side in SIDES for path in tracked(side) if path.endswith(".sql")]
    assert len(migrations) >= 1
    for side, path in migrations:
        assert wheel.read(path) == (ROOT / side / path).read_bytes(), path


def test_each_package_is_marked_as_typed(wheel: zipfile.ZipFile) -> None:
    packages = {name.split("/")[1] for name in wheel.namelist() if name.startswith("agentstead/")}
    untyped = sorted(name for name in packages if f"agentstead/{name}/py.typed" not in wheel.namelist())
    assert untyped == []


def test_nothing_stands_in_the_namespace_itself() -> None:
    for side in SIDES:
        assert sorted(path.name for path in (ROOT / side / "agentstead").glob("*.py")) == []


def test_the_wheel_offers_each_server_and_one_command(wheel: zipfile.ZipFile) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (entry_points,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    told = wheel.read(entry_points).decode()
    assert "[console_scripts]\nagentstead = agentstead.cli.main:main\n" in told
    for name, target in project["entry-points"]["agentstead.servers"].items():
        assert f"\n{name} = {target}\n" in told


def test_the_licence_comes_along(wheel: zipfile.ZipFile) -> None:
    (licence,) = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
