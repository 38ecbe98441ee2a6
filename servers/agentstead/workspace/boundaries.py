"""Which directories may be put under versions, and that a root is still the directory it was."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentstead.identity import WorkspaceFacts
from agentstead.kit import Home
from agentstead.state import Conflict, Invalid, Reading, Tx
from agentstead.workspace.classes import POLICY_BODY, POLICY_ID

_SYSTEM: Final = ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/proc", "/sys", "/run")
# `/` and what stands directly in it (`/home`, `/opt`, `/var` ...) are never one project.
_TOP_LEVEL: Final = 2

_FIND: Final = "SELECT root_dev, root_ino, state, version FROM boundaries WHERE workspace_id = :workspace"
_BIND: Final = """
INSERT INTO boundaries (workspace_id, root_dev, root_ino, policy_id, state)
VALUES (:workspace, :dev, :ino, :policy_id, 'ready')
ON CONFLICT (workspace_id) DO UPDATE
SET root_dev = excluded.root_dev, root_ino = excluded.root_ino, state = 'ready', version = version + 1
"""
_POLICY: Final = "INSERT INTO path_policies (id, body) VALUES (:id, :body) ON CONFLICT (id) DO NOTHING"


@dataclass(frozen=True, slots=True)
class RootIdentity:
    """Which directory a root is, whatever its name."""

    device: int
    inode: int


async def check_boundary(home: Home, facts: WorkspaceFacts) -> RootIdentity:
    """Return the identity of a workspace's root, recording it at its first use.

    Raises Invalid `workspace.refused` for a root that may not be under versions, Conflict `workspace.rebound` where
    another directory stands at its path now.
    """
    refuse_unfit(facts.root, home.path)
    now = identity_of(facts.root)
    known = await home.state.read(_known, facts.id)
    if known is None:
        await home.state.write(bind, facts.id, now)
    elif known != now:
        raise Conflict(
            "workspace.rebound",
            f"{facts.root} is another directory than the one that workspace {facts.name} was bound to",
            remedy="If it was moved or restored on purpose, run `agentstead workspace bind`; nothing was done.",
            details={"root": str(facts.root), "workspace_id": facts.id},
        )
    return now


def identity_of(root: Path) -> RootIdentity:
    """Return which directory stands at a path now."""
    facts = root.stat()
    return RootIdentity(facts.st_dev, facts.st_ino)


def bind(tx: Tx, workspace_id: str, identity: RootIdentity) -> None:
    """Record that this directory is the root of a workspace."""
    tx.execute(_POLICY, id=POLICY_ID, body=POLICY_BODY)
    tx.execute(_BIND, workspace=workspace_id, dev=identity.device, ino=identity.inode, policy_id=POLICY_ID)
    body = {"device": identity.device, "inode": identity.inode}
    tx.journal("workspace.boundary.bound", subject=workspace_id, workspace=workspace_id, body=body)


def refuse_unfit(root: Path, home: Path) -> None:
    """Raise Invalid `workspace.refused` for a system directory, a home directory, or what holds or is our own home."""
    real = root.resolve()
    person = Path.home().resolve()
    ours = home.resolve()
    why = ""
    if len(real.parts) <= _TOP_LEVEL or any(real.is_relative_to(system) for system in _SYSTEM):
        why = "is a directory of the system"
    elif person.is_relative_to(real):
        why = "is a home directory or holds one"
    elif ours.is_relative_to(real) or real.is_relative_to(ours):
        why = "holds Agentstead's own home, or lies in it"
    if why:
        raise Invalid(
            "workspace.refused",
            f"{real} {why} and is not put under versions",
            remedy="Name the directory of one project.",
            details={"root": os.fspath(real)},
        )


def _known(reading: Reading, workspace_id: str) -> RootIdentity | None:
    row = reading.one(_FIND, workspace=workspace_id)
    return None if row is None else RootIdentity(row["root_dev"], row["root_ino"])
