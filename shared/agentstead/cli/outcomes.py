"""What a result says about its subject, as an exit code: a check that failed ran well, and still is no success."""

from collections.abc import Mapping
from typing import Any

from agentstead.cli.exits import DENIED, DONE, FAILED, PENDING

# Field of a result and the exit codes of its values; what is not named is done.
OUTCOMES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "permission_check": ("verdict", {"allow": DONE, "ask": PENDING, "deny": DENIED}),
    "check_run": ("outcome", {"pass": DONE, "fail": FAILED}),
    "skill_validate": ("valid", {"True": DONE, "False": FAILED}),
}


def outcome(operation: str, result: Mapping[str, Any]) -> int:
    """Return the exit code for a result of an operation."""
    field, codes = OUTCOMES.get(operation, ("", {}))
    return codes.get(str(result.get(field)), DONE)
