"""The workspaces of a home as rows: found by id, name or root, and moved through their states.

Reads no file: `resolve` looks at folders and calls these functions with what it saw.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentstead.identity.folders import Folder
from agentstead.identity.machines import WORKSPACE_TRANSITIONS, WorkspaceEvent, WorkspaceState
from agentstead.state import Conflict, Invalid, NotFound, Reading, Tx, check_version, is_id

NAME_CHARS = 64
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")

_COLUMNS = "id, root, name, extra_roots, repository, default_agent, state, version, created_at, updated_at"
_BY_ID = f"SELECT {_COLUMNS} FROM workspaces WHERE id = :id"
_BY_NAME = f"SELECT {_COLUMNS} FROM workspaces WHERE name = :name AND state <> 'gone'"
_BY_ROOT = f"SELECT {_COLUMNS} FROM workspaces WHERE root = :root AND state = 'present'"
_BY_ROOTS = f"""
SELECT {_COLUMNS}
FROM workspaces
WHERE state = 'present'
    AND root IN (SELECT value FROM json_each(:roots))
ORDER BY LENGTH(root) DESC
LIMIT 1
"""
_LIST = f"SELECT {_COLUMNS} FROM workspaces WHERE state <> 'gone' ORDER BY name"
_INSERT = """
INSERT INTO workspaces (id, root, name, extra_roots, repository, default_agent, state, version, created_at, updated_at)
VALUES (:id, :root, :name, '[]', :repository, '', 'present', 1, :now, :now)
"""
_SET = """
UPDATE workspaces
SET state = :state,
    root = :root,
    name = :name,
    repository = :repository,
    version = version + 1,
    updated_at = :now
WHERE id = :id
"""


@dataclass(frozen=True, slots=True)
class Workspace:
    """One registered directory tree."""

    id: str
    root: Path
    name: str
    extra_roots: tuple[Path, ...]
    repository: str
    default_agent: str
    state: WorkspaceState
    version: int
    created_at: int
    updated_at: int


def by_id(reading: Reading, workspace_id: str) -> Workspace | None:
    """Return the workspace of this id, a forgotten one too."""
    return _workspace(reading.one(_BY_ID, id=workspace_id))


def by_root(reading: Reading, root: Path) -> Workspace | None:
    """Return the present workspace that stands at this real path."""
    return _workspace(reading.one(_BY_ROOT, root=str(root)))


def named(reading: Reading, text: str) -> Workspace | None:
    """Return the workspace of this id or name; a forgotten one is not found."""
    found = by_id(reading, text) if is_id(text, "wsp_") else _workspace(reading.one(_BY_NAME, name=text))
    return None if found is None or found.state == "gone" else found


def enclosing(reading: Reading, directory: Path) -> Workspace | None:
    """Return the present workspace with the nearest root at or above a real path."""
    roots = json.dumps([str(directory), *map(str, directory.parents)])
    return _workspace(reading.one(_BY_ROOTS, roots=roots))


def listed(reading: Reading) -> list[Workspace]:
    """Return every workspace that is not forgotten, by name."""
    return [found for row in reading.all(_LIST) if (found := _workspace(row)) is not None]


def place(tx: Tx, folder: Folder, *, name: str = "") -> Workspace:
    """Register a folder that carries its id, or confirm where a known workspace stands now.

    Whatever else was recorded at that root is marked as moved. Raises `Invalid` for a name that is none, `Conflict` for
    a taken one.
    """
    known = by_id(tx, folder.id)
    other = by_root(tx, folder.root)
    if other is not None and other.id != folder.id:
        change(tx, other, "lost")
    if known is None:
        return _add(tx, folder, name or _free_name(tx, folder.root.name))
    if (known.state, known.root, known.repository) == ("present", folder.root, folder.repository):
        return known
    kept = known.name if named(tx, known.name) in (None, known) else _free_name(tx, known.name)
    return change(tx, known, "found", root=folder.root, repository=folder.repository, name=kept)


def change(
    tx: Tx,
    workspace: Workspace,
    event: WorkspaceEvent,
    *,
    root: Path | None = None,
    repository: str | None = None,
    name: str = "",
) -> Workspace:
    """Move a workspace by an event of its machine; raises `Conflict` for an event its state does not take."""
    state = WORKSPACE_TRANSITIONS.get((workspace.state, event))
    if state is None:
        legal = sorted(event for state, event in WORKSPACE_TRANSITIONS if state == workspace.state)
        raise Conflict(
            "workspace.transition_refused",
            f"Workspace {workspace.name} is {workspace.state}: it cannot be {event}.",
            remedy=f"Possible now: {', '.join(legal)}.",
            details={"legal": legal},
        )
    tx.execute(
        _SET,
        id=workspace.id,
        state=state,
        root=str(root or workspace.root),
        name=name or workspace.name,
        repository=workspace.repository if repository is None else repository,
        now=tx.now_us,
    )
    body = {"root": str(root or workspace.root), "was": str(workspace.root), "state": state}
    tx.journal(f"identity.workspace.{event}", subject=workspace.id, workspace=workspace.id, body=body)
    return _present(tx, workspace.id)


def forget(tx: Tx, text: str, *, expected_version: int | None = None) -> Workspace:
    """Take a workspace off the list; its rows elsewhere stay, and its folder brings it back when it is used again."""
    found = named(tx, text)
    if found is None:
        raise NotFound("workspace.unknown", f"No workspace is named {text!r}.", remedy=_known_names(tx))
    check_version(found.version, expected_version, noun="workspace", ref=found.id)
    return change(tx, found, "forgotten")


def rename(tx: Tx, workspace: Workspace, name: str) -> Workspace:
    """Give a workspace another name; raises `Invalid` or `Conflict`."""
    _check_free(tx, name)
    return change(tx, workspace, "found", name=name)


def _known_names(reading: Reading) -> str:
    names = ", ".join(workspace.name for workspace in listed(reading)[:10])
    return f"Known: {names}." if names else "None is registered yet."


def _add(tx: Tx, folder: Folder, name: str) -> Workspace:
    _check_free(tx, name)
    tx.execute(_INSERT, id=folder.id, root=str(folder.root), name=name, repository=folder.repository, now=tx.now_us)
    body = {"root": str(folder.root), "name": name}
    tx.journal("identity.workspace.registered", subject=folder.id, workspace=folder.id, body=body)
    return _present(tx, folder.id)


def _check_free(tx: Tx, name: str) -> None:
    if not _NAME.match(name) or name.startswith("wsp_"):
        raise Invalid(
            "tool.invalid_arguments",
            f"{name[:NAME_CHARS]!r} is no workspace name.",
            remedy="Use 1 to 64 letters, digits, dots, dashes and underscores, and not the form of an id.",
        )
    if named(tx, name) is not None:
        raise Conflict("workspace.duplicate", f"A workspace is named {name} already.", remedy="Choose another name.")


def _free_name(reading: Reading, wanted: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("-._")[: NAME_CHARS - 6] or "workspace"
    stem = f"w-{stem}" if stem.startswith("wsp_") else stem
    return next(name for name in _candidates(stem) if named(reading, name) is None)


def _candidates(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1


def _present(reading: Reading, workspace_id: str) -> Workspace:
    found = by_id(reading, workspace_id)
    assert found is not None
    return found


def _workspace(row: sqlite3.Row | None) -> Workspace | None:
    if row is None:
        return None
    fields = dict(row)
    fields["root"] = Path(row["root"])
    fields["extra_roots"] = tuple(Path(root) for root in json.loads(row["extra_roots"]))
    return Workspace(**fields)
