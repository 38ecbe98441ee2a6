"""What a person trusts of a workspace's skills, as policy recorded it; a copy of the folder carries none of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agentstead.policy.trust import trust_bytes, trusted_bytes, untrust
from agentstead.skills.rulings import TrustMode
from agentstead.state import Reading, Tx

GivenMode = Literal["content", "all"]
KIND: Final = "skills"


@dataclass(frozen=True, slots=True)
class WorkspaceTrust:
    """The mode in force, the trusted contents (tree ids), and the folders whose content was trusted once."""

    mode: TrustMode = TrustMode.NONE
    trees: frozenset[str] = frozenset()
    folders: frozenset[Path] = frozenset()


def trust_in(reading: Reading, workspace_id: str, root: Path | None) -> WorkspaceTrust:
    """Return what is trusted of the workspace that stands at ``root`` now."""
    if root is None:
        return WorkspaceTrust()
    here = standing_of(root)
    rows = [row for row in trusted_bytes(reading, workspace_id, KIND) if row.root_device_inode == here]
    if not rows:
        return WorkspaceTrust()
    mode = TrustMode.ALL if any(row.mode == TrustMode.ALL.value for row in rows) else TrustMode.CONTENT
    return WorkspaceTrust(mode, frozenset(row.sha256 for row in rows), frozenset(root / row.path for row in rows))


def record(tx: Tx, workspace_id: str, root: Path, *, contents: Mapping[str, str], mode: GivenMode) -> None:
    """Trust exactly these contents (tree id by path) of the workspace that stands at ``root``."""
    here = standing_of(root)
    for path, tree_id in contents.items():
        trust_bytes(tx, workspace_id, KIND, path=path, digest=tree_id, mode=mode, root_device_inode=here)


def end(tx: Tx, workspace_id: str) -> list[str]:
    """End the trust in every skill of a workspace; return the folders that were trusted."""
    paths = sorted({row.path for row in trusted_bytes(tx, workspace_id, KIND)})
    for path in paths:
        untrust(tx, workspace_id, KIND, path=path)
    return paths


def standing_of(root: Path) -> str:
    """Return what tells this folder from a copy of it: device and inode."""
    facts = root.stat()
    return f"{facts.st_dev}:{facts.st_ino}"
