"""What a stored object is: bytes named by their SHA-256, of kind blob or tree.

A reference always carries the kind with the id, so that a blob can never be read as a tree.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from agentstead.state import Invalid, Unavailable

Kind = Literal["blob", "tree"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_ID: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """Name one object: its kind and the 64 hexadecimal digits of its SHA-256."""

    kind: Kind
    id: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """Say how large a stored object is, without reading it."""

    kind: Kind
    id: str
    size_bytes: int


def object_id(data: bytes) -> str:
    """Return the id of an object: the SHA-256 of its bytes in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def object_key(kind: str, object_id: str) -> ObjectKey:
    """Return the key of an object; raise Invalid `ref.not_found` for a text that cannot name one."""
    if kind not in KINDS or not _ID.fullmatch(object_id):
        raise Invalid(
            "ref.not_found",
            f"{kind}:{object_id[:80]} names no stored object",
            remedy="Give the kind blob or tree and an id of 64 lower-case hexadecimal digits.",
        )
    return ObjectKey("tree" if kind == "tree" else "blob", object_id)


def corrupt(key: ObjectKey, what: str) -> Unavailable:
    """Return the error for bytes that are gone or altered; they are never taken for absent content."""
    return Unavailable(
        "store.corrupt",
        f"object {key} {what}",
        remedy="Run `agentstead store verify` to see what else is affected; everything else stays readable.",
        details={"kind": key.kind, "id": key.id},
    )
