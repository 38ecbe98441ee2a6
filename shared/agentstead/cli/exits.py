"""Exit codes of every verb, and which of them an error ends with."""

from agentstead.state import (
    AgentsteadError,
    Conflict,
    Denied,
    LeaseLost,
    PendingAnswer,
    Unavailable,
)

DONE = 0
FAILED = 1
USAGE = 2
DENIED = 3
PENDING = 4
TIMED_OUT = 5
CONFLICT = 6
UNAVAILABLE = 7
INTERRUPTED = 130
BROKEN_PIPE = 141

# What was typed is wrong, not what was found.
_USAGE_CODES = frozenset({"tool.invalid_arguments", "config.unknown_key"})
_PERSON_CODES = frozenset({"pending.person_required", "pending.self_answer", "approval.self", "approval.not_approver"})


def exit_code(error: AgentsteadError) -> int:
    """Return the exit code for an error: by its code where that says more than its class."""
    if error.code in _USAGE_CODES:
        return USAGE
    if error.code in _PERSON_CODES:
        return DENIED
    match error:
        case Denied():
            return DENIED
        case PendingAnswer():
            return PENDING
        case Conflict() | LeaseLost():
            return CONFLICT
        case Unavailable():
            return TIMED_OUT if error.code.endswith(".timeout") else UNAVAILABLE
        case _:
            return FAILED
