"""Forgetting in two steps: a preview that names exactly what would go, and its digest as the key to do just that."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agentstead.memory.changes import Draft
from agentstead.memory.controller import Writer
from agentstead.memory.intents import visible_target
from agentstead.memory.scopes import Reach
from agentstead.memory.store import Memory, load
from agentstead.memory.writing import Outcome, Request, submit
from agentstead.state import Conflict, Invalid, Reading, References, Tx, canonical_json, sha256_hex

ForgetMode = Literal["archive", "retract"]


class Going(BaseModel):
    """One memory that would go."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    memory_id: str
    version: int
    scope: str
    type: str
    title: str
    trust: str


def preview(reading: Reading, ids: Sequence[str], mode: ForgetMode, reach: Reach) -> tuple[list[Going], str]:
    """Return what would go, and the digest of exactly that.

    Raises `memory.not_found` for an id that is not seen here, `memory.state` for one that is not live.
    """
    known = load(reading, ids)
    found = [visible_target(known.get(memory_id), memory_id, reach) for memory_id in dict.fromkeys(ids)]
    gone = [memory for memory in found if memory.state != "live"]
    if gone:
        raise Conflict(
            "memory.state",
            f"{gone[0].id} is {gone[0].state} already.",
            remedy="Name live memories only.",
            details={"state": gone[0].state, "memory_ids": [memory.id for memory in gone]},
        )
    return [_going(memory) for memory in found], digest_of(found, mode)


def digest_of(memories: Sequence[Memory], mode: ForgetMode) -> str:
    """Return the digest of a forgetting: its mode, its memories, and their versions."""
    lines = sorted([memory.id, memory.version] for memory in memories)
    return sha256_hex(canonical_json({"mode": mode, "memories": lines}))


def forget(
    tx: Tx,
    refs: References,
    ids: Sequence[str],
    mode: ForgetMode,
    writer: Writer,
    *,
    confirm: str,
    reason: str,
    key: str = "",
) -> Outcome:
    """Archive or retract what a preview named; raises `memory.confirm_mismatch` where anything differs since."""
    _, digest = preview(tx, ids, mode, writer.reach)
    if digest != confirm:
        raise Conflict(
            "memory.confirm_mismatch",
            "The digest is not that of these memories in their present versions.",
            remedy="Call again without confirm, look at what would go, and pass the digest that it gives.",
        )
    if mode == "retract" and not reason:
        raise Invalid("memory.invalid", "Retracting needs a reason.", remedy="Say why it was never true.")
    drafts = [Draft(op=mode, memory_id=memory_id, reason=reason) for memory_id in dict.fromkeys(ids)]
    return submit(tx, refs, Request(drafts, reason, key=key), writer)


def _going(memory: Memory) -> Going:
    return Going(
        memory_id=memory.id,
        version=memory.version,
        scope=memory.scope,
        type=memory.type,
        title=memory.title,
        trust=memory.trust.word,
    )
