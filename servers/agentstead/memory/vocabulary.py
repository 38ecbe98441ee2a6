"""The closed sets of memory: types, states, judgements and the rest; the migrations' CHECKs list the same values."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Literal, get_args

MemoryType = Literal[
    "preference", "instruction", "fact", "choice", "procedure", "incident", "person", "reference", "episode"
]
MemoryState = Literal["live", "superseded", "retracted", "archived", "expired", "merged", "erased"]
Stale = Literal["no", "changed", "missing", "unknown"]
Channel = Literal["tool", "cli", "folder", "import", "extension", "consolidation", "fork", "network"]
EventOp = Literal[
    "add",
    "revise",
    "confirm",
    "supersede",
    "retract",
    "archive",
    "restore",
    "expire",
    "move",
    "merge",
    "link",
    "unlink",
    "pin",
    "stale",
    "fresh",
    "suspect",
    "clear",
    "erase",
    "promote",
    "drop",
]
ProposalState = Literal["accepted", "pending", "held", "refused", "rejected", "withdrawn", "replaced", "expired"]
DecisionOp = Literal[
    "none",
    "add",
    "revise",
    "supersede",
    "retract",
    "archive",
    "restore",
    "merge",
    "move",
    "link",
    "pin",
    "erase",
    "refuse",
]
Verdict = Literal["accepted", "duplicate", "pending", "held", "refused"]
JudgedBy = Literal["rule", "person", "policy"]
EvidenceKind = Literal["file", "receipt", "url", "turn", "commit", "memory"]
EvidenceState = Literal["holds", "changed", "missing", "unchecked"]
LinkKind = Literal["supersedes", "contradicts", "extends", "derives", "relates", "merged_into"]
LinkState = Literal["open", "settled"]
RecallMode = Literal["lexical", "hybrid", "relaxed", "as_of"]
Outcome = Literal["none", "helped", "misled"]

MEMORY_TYPES: tuple[MemoryType, ...] = get_args(MemoryType)
BEHAVIOURAL: frozenset[MemoryType] = frozenset({"preference", "instruction"})


class Trust(IntEnum):
    """Where a claim comes from; a larger number may replace a smaller one, never the other way round."""

    FOREIGN = 0
    AGENT = 1
    HOST = 2
    CHECKED = 3
    PERSON = 4

    @property
    def word(self) -> str:
        """Return the word that answers show."""
        return self.name.lower()


HALF_LIFE_DAYS: Mapping[MemoryType, float | None] = MappingProxyType(
    {
        "preference": 365,
        "instruction": None,
        "fact": 180,
        "choice": 365,
        "procedure": 180,
        "incident": 120,
        "person": 365,
        "reference": 180,
        "episode": 30,
    }
)
