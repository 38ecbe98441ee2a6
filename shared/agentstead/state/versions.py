"""Compare-and-swap on the `version` column of edited rows."""

from agentstead.state.errors import Conflict


def check_version(present: int, expected: int | None, *, noun: str, ref: str) -> None:
    """Raise `Conflict` with `version.conflict` where a caller's `expected_version` is not the present one."""
    if expected is None or expected == present:
        return
    raise Conflict(
        "version.conflict",
        f"{noun} {ref} is at version {present}, not {expected}.",
        remedy=f"Read it again, then repeat the change with expected_version={present}.",
        details={"version": present},
    )
