"""The same key and the same arguments give the same result; other arguments are refused."""

from collections.abc import Callable
from dataclasses import dataclass

from agentstead.state.errors import Conflict
from agentstead.state.transaction import Reading, Tx

_FIND = """
SELECT arguments_sha256, result
FROM idempotency_keys
WHERE principal = :principal
    AND operation = :operation
    AND key = :key
    AND step = :step
"""
_KEEP = """
INSERT INTO idempotency_keys (principal, operation, key, step, arguments_sha256, result, created_at)
VALUES (:principal, :operation, :key, :step, :arguments_sha256, :result, :now)
"""


@dataclass(frozen=True, slots=True)
class KeyUse:
    """One use of a key: `step` counts the transactions of one call, from 0."""

    principal: str
    operation: str
    key: str
    arguments_sha256: str
    step: int = 0


def is_used(reading: Reading, use: KeyUse) -> bool:
    """Tell whether this key holds a result for the same arguments: the call was let through before."""
    row = reading.one(_FIND, principal=use.principal, operation=use.operation, key=use.key, step=use.step)
    return row is not None and row["arguments_sha256"] == use.arguments_sha256


def once(tx: Tx, use: KeyUse, run: Callable[[], str]) -> tuple[str, bool]:
    """Run `run` unless this key was used; return its JSON result and whether it is the stored one.

    The result is kept in the same transaction. Raises `Conflict` with `key.conflict` for other arguments.
    """
    at = {"principal": use.principal, "operation": use.operation, "key": use.key, "step": use.step}
    row = tx.one(_FIND, **at)
    if row is None:
        result = run()
        tx.execute(_KEEP, **at, arguments_sha256=use.arguments_sha256, result=result, now=tx.now_us)
        return result, False
    if row["arguments_sha256"] != use.arguments_sha256:
        raise Conflict(
            "key.conflict",
            f"idempotency_key {use.key!r} was used for {use.operation} with other arguments.",
            remedy="Use a new key for a new request; repeat the old arguments to read the old result.",
        )
    return row["result"], True
