"""What a skill folder is, as it stands on disk: data alone, judged by the rulings."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from agentstead.skills.capabilities import capability_digest
from agentstead.skills.document import Judged, SkillDocument
from agentstead.skills.naming import name_key, normal_name
from agentstead.skills.store import HeldTree, Place


class Origin(StrEnum):
    """Where a skill stands, the strongest first."""

    MANAGED = "managed"
    WORKSPACE = "workspace"
    USER = "user"
    INSTALLED = "installed"
    EXTENSION = "extension"
    BUNDLED = "bundled"


RANKS: Final = {origin: rank for rank, origin in enumerate(Origin, start=1)}


@dataclass(frozen=True, slots=True)
class Root:
    """A folder in which skills are looked for; ``index`` orders the roots of one origin."""

    origin: Origin
    path: Path
    index: int = 0
    workspace_id: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a folder's content cannot be held."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A folder with a SKILL.md as it stands on disk now.

    ``judged`` is None where SKILL.md could not be read at all, ``tree`` where the content cannot be held (then
    ``refusal`` says why). ``unseen`` names the first character of SKILL.md that nobody sees.
    """

    root: Root
    shown: Path
    place: Place | None
    judged: Judged | None = None
    tree: HeldTree | None = None
    refusal: Refusal | None = None
    unseen: str = ""

    @property
    def origin(self) -> Origin:
        """Where it stands."""
        return self.root.origin

    @property
    def document(self) -> SkillDocument | None:
        """What it says, or None while it cannot be read."""
        return self.judged.document if self.judged else None

    @property
    def name(self) -> str:
        """Its name; the folder's while its own cannot be read."""
        return self.document.name if self.document else normal_name(self.shown.name)

    @property
    def key(self) -> str:
        """The key under which its name is held."""
        return name_key(self.name)

    @property
    def qualified_name(self) -> str:
        """The name that no skill of another origin has."""
        return f"{self.origin}:{self.name}"

    @property
    def selector(self) -> str:
        """What a switch names it by."""
        return f"skill:{self.qualified_name}"

    @property
    def origin_key(self) -> str:
        """What consents and activations know it by: origin, workspace, name."""
        return f"{self.origin}/{self.root.workspace_id or '-'}/{self.key}"

    @property
    def order(self) -> tuple[int, int, bytes]:
        """Its rank among all candidates; the lowest comes first."""
        return RANKS[self.origin], self.root.index, os.fsencode(self.shown)

    @property
    def tree_id(self) -> str:
        """The identity of its content, or an empty text."""
        return self.tree.tree_id if self.tree else ""

    @property
    def capability_digest(self) -> str:
        """The digest of what it can do or asks for, or an empty text."""
        return capability_digest(self.tree, self.document) if self.tree and self.document else ""
