"""What a snapshot saw and did not store, with the reason: an answer never passes over what it does not hold."""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from agentstead.state import canonical_json
from agentstead.workspace.classes import PathClass
from agentstead.workspace.paths import encoded, parts, shown

Reason = Literal[
    "derived",
    "secret",
    "vcs",
    "special",
    "too_large",
    "budget",
    "unstable",
    "unreadable",
    "placeholder",
    "mount",
    "limit",
]
REASONS: Final = get_args(Reason)
Completeness = Literal["complete", "partial", "unstable"]

_EXPECTED: Final = frozenset({"derived", "secret", "vcs"})


@dataclass(frozen=True, slots=True)
class Omission:
    """One path that was not stored; `digest` is keyed, so that a secret's change is seen but not its content."""

    path: bytes
    reason: Reason
    path_class: PathClass
    size: int = 0
    mode: int = 0
    digest: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the published form of an omission."""
        facts: dict[str, Any] = {"path": shown(self.path), "path_b64": encoded(self.path), "reason": self.reason}
        facts |= {"class": self.path_class, "size": self.size, "mode": self.mode, "digest": self.digest or None}
        return {name: value for name, value in facts.items() if value is not None}


def completeness_of(omissions: Iterable[Omission]) -> Completeness:
    """Return whether everything that should be stored was, and held still while it was read."""
    reasons = {omission.reason for omission in omissions} - _EXPECTED
    if "unstable" in reasons:
        return "unstable"
    return "partial" if reasons else "complete"


def counts(omissions: Iterable[Omission]) -> dict[str, int]:
    """Return how many paths each reason left out."""
    return dict(sorted(Counter(omission.reason for omission in omissions).items()))


def encode_omissions(omissions: Sequence[Omission]) -> bytes:
    """Return the blob of a list of omissions: the same list always gives the same bytes."""
    ordered = sorted(omissions, key=lambda omission: parts(omission.path))
    return canonical_json([_record(omission) for omission in ordered])


def decode_omissions(data: bytes) -> list[Omission]:
    """Return the omissions of a blob."""
    return [
        Omission(
            path=base64.b64decode(record["path"]),
            reason=record["reason"],
            path_class=record["class"],
            size=record["size"],
            mode=record["mode"],
            digest=record["digest"],
        )
        for record in json.loads(data)
    ]


def _record(omission: Omission) -> dict[str, Any]:
    return {
        "path": base64.b64encode(omission.path).decode(),
        "reason": omission.reason,
        "class": omission.path_class,
        "size": omission.size,
        "mode": omission.mode,
        "digest": omission.digest,
    }
