"""What a result says about its subject, as an exit code: a check that failed ran well, and still is no success."""

from collections.abc import Mapping
from typing import Any

from agentstead.cli.exits import CONFLICT, DENIED, DONE, FAILED, PENDING, TIMED_OUT

# Field of a result and the exit codes of its values; what is not named is done.
OUTCOMES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "permission_check": ("verdict", {"allow": DONE, "ask": PENDING, "deny": DENIED}),
    "check_run": ("outcome", {"pass": DONE, "fail": FAILED, "running": TIMED_OUT}),
    "tree_promote": ("state", {"refused": FAILED, "rolled_back": FAILED, "waiting": PENDING, "stale": CONFLICT}),
    "tree_restore": ("state", {"failed": FAILED, "parked": PENDING}),
    "skill_validate": ("valid", {"True": DONE, "False": FAILED}),
}

# Results that say "not yet": the command line waits, since the work ends with its process. The repeated call carries
# the same key, so it finds the same work.
UNDER_WAY: Mapping[str, tuple[str, str]] = {"check_run": ("outcome", "running")}


def is_under_way(operation: str, result: Mapping[str, Any]) -> bool:
    """Tell whether what an operation began is still going on."""
    field, value = UNDER_WAY.get(operation, ("", ""))
    return bool(field) and result.get(field) == value


def outcome(operation: str, result: Mapping[str, Any]) -> int:
    """Return the exit code for a result of an operation."""
    field, codes = OUTCOMES.get(operation, ("", {}))
    return codes.get(str(result.get(field)), DONE)
