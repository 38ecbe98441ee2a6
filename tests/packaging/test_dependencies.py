"""What pyproject.toml promises about versions, and that no machine's lock file is kept."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

REQUIREMENTS = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(line for lines in PROJECT["dependency-groups"].values() for line in lines),
]


def test_python_has_a_floor_and_a_ceiling() -> None:
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.15"


def test_each_supported_python_is_a_classifier() -> None:
    named = {line.rsplit(" ", 1)[1] for line in PROJECT["project"]["classifiers"] if "Python :: 3." in line}
    assert named == {"3.11", "3.12", "3.13", "3.14"}


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_each_dependency_has_a_floor_and_a_ceiling(requirement: str) -> None:
    bounds = re.fullmatch(r"[a-z0-9-]+(\[[a-z,]+\])?>=\d[\d.]*,<\d[\d.]*(; .+)?", requirement)
    assert bounds, f"{requirement}: write it as name>=floor,<ceiling"


@pytest.mark.parametrize("table", ["dependencies", "dev"])
def test_dependencies_are_sorted_and_named_once(table: str) -> None:
    lines = PROJECT["project"]["dependencies"] if table == "dependencies" else PROJECT["dependency-groups"]["dev"]
    names = [re.split(r"[\[>]", line)[0] for line in lines]
    assert names == sorted(set(names))


def test_no_lock_file_is_tracked() -> None:
    tracked = subprocess.run(["git", "ls-files", "uv.lock"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert tracked.stdout == ""
