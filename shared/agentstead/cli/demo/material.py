"""What the demonstration works on: its own small project with a failing test, or a copy of somebody's repository."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from agentstead.state import Invalid

OWN_CHECK = ("-m", "unittest", "-q")
CANDIDATES = 16


@dataclass(frozen=True, slots=True)
class Candidate:
    """One attempt: a name, and a unified diff."""

    name: str
    patch: str


@dataclass(frozen=True, slots=True)
class Material:
    """The project's directory, the command that proves it, and the attempts."""

    project: Path
    check: tuple[str, ...]
    candidates: tuple[Candidate, ...]


def own(place: Path) -> Material:
    """Lay out the bundled project with its three candidate patches."""
    bundled = resources.files("agentstead.cli.demo")
    project = place / "basket"
    with resources.as_file(bundled / "project") as source:
        shutil.copytree(source, project, ignore=shutil.ignore_patterns("__pycache__"))
    (project / ".git").mkdir()
    with resources.as_file(bundled / "candidates") as folder:
        return Material(project, (sys.executable, *OWN_CHECK), _candidates(folder))


def of_repository(place: Path, repository: Path, *, check: str, candidates: Path) -> Material:
    """Copy a repository, so that its own tree stays as it is, and read the patches in a folder.

    Raises `Invalid` for a folder, a command or patches that are not there.
    """
    if not repository.is_dir() or not candidates.is_dir():
        missing = candidates if repository.is_dir() else repository
        raise Invalid("tool.invalid_arguments", f"{missing} is no folder.", remedy="Give the path of a folder.")
    command = tuple(shlex.split(check))
    found = _candidates(candidates)
    if not command or not found:
        raise Invalid(
            "tool.invalid_arguments",
            "--repo needs a command in --check and at least one .patch or .diff file in --candidates.",
            remedy="For example: --check 'pytest -q' --candidates patches/",
        )
    project = place / repository.resolve().name
    shutil.copytree(repository, project, symlinks=True)
    (project / ".git").mkdir(exist_ok=True)
    return Material(project, command, found)


def _candidates(folder: Path) -> tuple[Candidate, ...]:
    files: Sequence[Path] = sorted([*folder.glob("*.patch"), *folder.glob("*.diff")])
    return tuple(Candidate(file.stem, file.read_text("utf-8")) for file in files[:CANDIDATES])
