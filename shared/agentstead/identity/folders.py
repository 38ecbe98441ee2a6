"""What a folder says of itself on disk: its id file, its repository, and where a project begins.

Writes only `.agentstead/` of the folder: the id file, and the lines that keep our own files out of git.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from agentstead.state import CRASH_POINTS, Invalid, crash_point, is_id

OWN_FOLDER = ".agentstead"
ID_FILE = "workspace.json"
ID_SCHEMA = "agentstead.workspace/1"
# what stands here is ours alone; a draft that a crash left of the id file is overlooked too
OWN_PATHS = ("/.gitignore", "/workspace.json", "/.workspace.json.*", "/fork.json", "/stage", "/trash", "/probe")

_READ_BYTES = 4096

CRASH_POINTS.declare("identity.id_file")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that may be a workspace: its real path, the id it carries ('' without), its git common directory."""

    root: Path
    id: str
    repository: str


def look(root: Path) -> Folder:
    """Read what `root` says of itself; a link is followed once, to the real path."""
    real = root.resolve()
    return Folder(real, read_id(real), repository_of(real))


def is_project(folder: Path) -> bool:
    """Tell whether a folder may be registered without being named: it holds `.git` or `.agentstead`."""
    return (folder / ".git").exists() or (folder / OWN_FOLDER).is_dir()


def project_of(directory: Path, *, stop: frozenset[Path]) -> Path | None:
    """Return the nearest folder at or above `directory` that is a project, never one of `stop` or above it."""
    real = directory.resolve()
    for folder in (real, *real.parents):
        if folder in stop or folder == folder.parent:
            return None
        if is_project(folder):
            return folder
    return None


def is_linked_worktree(folder: Path) -> bool:
    """Tell whether git keeps this folder as a worktree of another folder's repository (a submodule is none)."""
    gitdir = _git_directory(folder)
    return gitdir is not None and gitdir.parent.name == "worktrees" and (folder / ".git").is_file()


def repository_of(root: Path) -> str:
    """Return the real path of git's common directory, the same for all worktrees of a repository; '' without git."""
    gitdir = _git_directory(root)
    if gitdir is None:
        return ""
    common = _first_line(gitdir / "commondir")
    return str((gitdir / common).resolve()) if common else str(gitdir.resolve())


def read_id(root: Path) -> str:
    """Return the workspace id that a folder carries; '' for none or an unreadable one."""
    try:
        with (root / OWN_FOLDER / ID_FILE).open("rb") as file:
            document = json.loads(file.read(_READ_BYTES))
    except (OSError, ValueError):
        return ""
    found = document.get("id") if isinstance(document, dict) else None
    return found if isinstance(found, str) and is_id(found, "wsp_") else ""


def write_id(root: Path, workspace_id: str, *, replace: bool = False) -> str:
    """Give a folder its id file; return the id it carries afterwards.

    Without `replace` the first writer wins, so that two processes that register a folder at once agree. An id file that
    cannot be read is replaced. Raises `Invalid` where `.agentstead` is a link: what is written must stay in the folder.
    """
    own = root / OWN_FOLDER
    if own.is_symlink():
        raise Invalid("path.symlink", f"{own} is a link.", remedy="Make it a folder: Agentstead writes only inside it.")
    own.mkdir(exist_ok=True)
    _ignore_own_paths(own / ".gitignore")
    draft = own / f".{ID_FILE}.{os.getpid()}"
    draft.write_text(json.dumps({"schema": ID_SCHEMA, "id": workspace_id}) + "\n", encoding="utf-8")
    crash_point("identity.id_file.before")
    try:
        _put(draft, own / ID_FILE, replace=replace or not read_id(root))
    finally:
        draft.unlink(missing_ok=True)
    crash_point("identity.id_file.after")
    return read_id(root)


def _put(draft: Path, final: Path, *, replace: bool) -> None:
    if replace and (final.exists() or final.is_symlink()):
        draft.replace(final)
        return
    try:
        final.hardlink_to(draft)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not final.exists():
            draft.replace(final)


def _ignore_own_paths(path: Path) -> None:
    known = path.read_text("utf-8", "replace") if path.is_file() else ""
    missing = [line for line in OWN_PATHS if line not in known.splitlines()]
    if missing:
        gap = "" if not known or known.endswith("\n") else "\n"
        path.write_text(known + gap + "\n".join(missing) + "\n", encoding="utf-8")


def _git_directory(root: Path) -> Path | None:
    git = root / ".git"
    if git.is_dir():
        return git
    line = _first_line(git)
    return (root / line.removeprefix("gitdir:").strip()).resolve() if line.startswith("gitdir:") else None


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_READ_BYTES).decode("utf-8", "replace").splitlines()[0].strip()
    except (OSError, IndexError):
        return ""
