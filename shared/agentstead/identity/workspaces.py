"""Which workspace a call is about: named, from the environment, of its session, or around the caller's directory.

A folder that is a project is registered on first use, and the answer says so once. Nothing is guessed beyond that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentstead.identity import folders, registry
from agentstead.identity.registry import Workspace
from agentstead.state import AgentsteadError, Conflict, Invalid, NotFound, Reading, State, Tx, Unavailable, new_id

VARIABLE = "AGENTSTEAD_WORKSPACE"
Source = Literal["argument", "environment", "session", "directory", "registered"]

HOW_TO_NAME = (
    "Name it: pass workspace=<id, name, or the absolute path of a folder that holds .git or .agentstead>, "
    f"or set {VARIABLE} in the host's configuration (over HTTP: the header Agentstead-Workspace); "
    "`agentstead registry add PATH` in a terminal registers any folder."
)


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """The workspace of a call, how it was found, and what to tell the caller once (empty most of the time)."""

    id: str
    root: Path
    name: str
    source: Source
    note: str = ""
    repository: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller gave to find its workspace by; `home` is Agentstead's own directory, never a workspace."""

    home: Path
    name: str = ""
    environ: Mapping[str, str] | None = None
    session_id: str = ""
    cwd: Path | None = None


async def resolve(state: State, asked: Asked) -> WorkspaceFacts:
    """Return the workspace of a call: argument, environment, session, enclosing root, else the project around it.

    Raises `NotFound` (`workspace.unknown`, with how to name one; `session.not_found`), `Unavailable`
    (`workspace.gone`) or `Conflict` (`workspace.duplicate`).
    """
    if asked.name:
        return await _by_text(state, asked, asked.name, "argument")
    variable = (asked.environ or {}).get(VARIABLE, "")
    if variable:
        return await _by_text(state, asked, variable, "environment")
    if asked.session_id:
        workspace_id = await state.read(_of_session, state, asked.session_id)
        if workspace_id:
            return await _by_text(state, asked, workspace_id, "session")
    if asked.cwd is not None:
        return await _around(state, asked, asked.cwd)
    raise NotFound(
        "workspace.unknown", "This host gave no working directory, so no workspace is known.", remedy=HOW_TO_NAME
    )


async def register(state: State, path: Path, *, home: Path, name: str = "", fresh_id: bool = False) -> Workspace:
    """Register a folder by its path, a project or not; `fresh_id` makes a copy of another workspace one of its own.

    Raises `Invalid` for a folder that can be none, `Conflict` (`workspace.duplicate`) for a copy, `Unavailable` where
    the folder cannot be written.
    """
    folder = folders.look(path)
    _refuse_unfit(folder.root, home)
    if fresh_id:
        known = await state.read(registry.by_root, folder.root)
        if known is None or known.id != folder.id:
            _write_id(folder.root, new_id("wsp_", state.clock), replace=True)
    workspace = await _place(state, folder.root, name=name)
    if name and workspace.name != name:
        workspace = await state.write(registry.rename, workspace, name)
    return workspace


async def _by_text(state: State, asked: Asked, text: str, source: Source) -> WorkspaceFacts:
    if Path(text).is_absolute():
        if not Path(text).is_dir():
            raise await _unknown(state, f"{text} is no folder.")
        return await _around(state, asked, Path(text), source=source)
    found = await state.read(registry.named, text)
    if found is None:
        raise await _unknown(state, f"No workspace has the id or name {text[:80]!r}.")
    return await _confirm(state, found, source)


async def _around(state: State, asked: Asked, directory: Path, *, source: Source = "directory") -> WorkspaceFacts:
    real = directory.resolve()
    found = await state.read(registry.enclosing, real)
    project = folders.project_of(real, stop=_stops(asked.home))
    if found is not None and not _own_worktree(project, found.root):
        if folders.read_id(found.root) in (found.id, ""):
            return await _confirm(state, found, source)
        project = found.root
    if project is None:
        raise await _unknown(state, f"{real} is in no registered workspace and in no project (.git or .agentstead).")
    _refuse_unfit(project, asked.home)
    before = await state.read(registry.by_id, folders.read_id(project))
    placed = await _place(state, project)
    if before is not None:
        return _facts(placed, source, note=_moved_note(before, placed))
    return _facts(placed, "registered", note=_registered_note(placed))


async def _confirm(state: State, found: Workspace, source: Source) -> WorkspaceFacts:
    """Return a known workspace whose folder stands; put its id file back where only that was lost."""
    carried = folders.read_id(found.root)
    if carried == found.id and found.state == "present":
        return _facts(found, source)
    if found.root.is_dir() and carried in (found.id, ""):
        return _facts(await _place(state, found.root, expected=found.id), source)
    if found.state == "present":
        await state.write(_lose, found.id)
    raise Unavailable(
        "workspace.gone",
        f"The folder of workspace {found.name} is no longer at {found.root}.",
        remedy="If it moved, pass workspace=<its new absolute path> once; if it is deleted, run "
        f"`agentstead registry forget {found.name}`.",
    )


async def _place(state: State, root: Path, *, name: str = "", expected: str = "") -> Workspace:
    """Give `root` its id file if it lacks one, and bring the registry in line with it."""
    carried = folders.read_id(root)
    if not carried:
        known = await state.read(registry.by_root, root)
        fresh = expected or (known.id if known else new_id("wsp_", state.clock))
        carried = _write_id(root, fresh)
    known = await state.read(registry.by_id, carried)
    if known is not None and known.root != root and _still_there(known):
        raise Conflict(
            "workspace.duplicate",
            f"{root} is a copy of workspace {known.name} at {known.root}: both carry {carried}.",
            remedy=f"Register the copy as its own: registry_add(path={str(root)!r}, fresh_id=true), or "
            f"`agentstead registry add {root} --fresh-id`.",
        )
    return await state.write(registry.place, folders.look(root), name=name)


def _write_id(root: Path, workspace_id: str, *, replace: bool = False) -> str:
    try:
        return folders.write_id(root, workspace_id, replace=replace)
    except OSError as error:
        raise Unavailable(
            "workspace.unknown",
            f"{root} cannot be registered: its .agentstead folder cannot be written ({error.strerror}).",
            remedy="Make the folder writable, or work in another one.",
        ) from error


def _still_there(known: Workspace) -> bool:
    return known.state != "gone" and folders.read_id(known.root) == known.id


def _own_worktree(project: Path | None, root: Path) -> bool:
    """Tell whether a linked worktree lies inside a registered root: each worktree is a workspace of its own."""
    return project is not None and project != root and root in project.parents and folders.is_linked_worktree(project)


def _stops(home: Path) -> frozenset[Path]:
    return frozenset({Path.home().resolve(), home.resolve()})


def _refuse_unfit(root: Path, home: Path) -> None:
    if not root.is_dir():
        raise Invalid("workspace.unknown", f"{root} is no folder.", remedy="Give the path of an existing folder.")
    own = home.resolve()
    if root in _stops(home) or root == root.parent or root in own.parents or own in root.parents:
        raise Invalid(
            "workspace.unknown",
            f"{root} cannot be a workspace: it is a home folder, holds one, or belongs to Agentstead.",
            remedy="Use the folder of one project.",
        )


async def _unknown(state: State, what: str) -> AgentsteadError:
    names = [workspace.name for workspace in await state.read(registry.listed)][:8]
    known = f" Registered: {', '.join(names)}." if names else ""
    return NotFound("workspace.unknown", what, remedy=HOW_TO_NAME + known, details={"registered": names})


def _of_session(reading: Reading, state: State, session_id: str) -> str:
    facts = state.refs.look(reading, session_id)
    if not facts.exists:
        raise NotFound(
            "session.not_found",
            f"No session {session_id[:40]} is known.",
            remedy="Use an id that session_open returned.",
        )
    return facts.workspace


def _lose(tx: Tx, workspace_id: str) -> None:
    found = registry.by_id(tx, workspace_id)
    if found is not None and found.state == "present":
        registry.change(tx, found, "lost")


def _facts(workspace: Workspace, source: Source, *, note: str = "") -> WorkspaceFacts:
    return WorkspaceFacts(workspace.id, workspace.root, workspace.name, source, note, workspace.repository)


def _registered_note(workspace: Workspace) -> str:
    return (
        f"Registered {workspace.root} as workspace {workspace.name} ({workspace.id}). "
        "Only its .agentstead/ folder was written, and git ignores our files there."
    )


def _moved_note(before: Workspace, after: Workspace) -> str:
    if before.root == after.root:
        return ""
    return f"Workspace {after.name} moved: it stands at {after.root} now, not at {before.root}."
