"""Each kind of error ends with the exit code of the table."""

import pytest

from agentstead.cli.exits import exit_code
from agentstead.cli.outcomes import outcome
from agentstead.state import (
    AgentsteadError,
    Conflict,
    Denied,
    Exhausted,
    Invalid,
    LeaseLost,
    NotFound,
    PendingAnswer,
    Unavailable,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("task.not_found", ""), 1),
        (Invalid("loop.invalid", ""), 1),
        (Invalid("config.invalid", ""), 1),
        (Exhausted("budget.exhausted", ""), 1),
        (Invalid("tool.invalid_arguments", ""), 2),
        (Invalid("config.unknown_key", ""), 2),
        (Denied("permission.denied", ""), 3),
        (Denied("approval.self", ""), 3),
        (Conflict("pending.person_required", ""), 3),
        (PendingAnswer("permission.pending", ""), 4),
        (Unavailable("source.timeout", ""), 5),
        (Conflict("version.conflict", ""), 6),
        (LeaseLost("run.lease_lost", ""), 6),
        (Unavailable("coordinator.lost", ""), 7),
    ],
)
def test_an_error_ends_with_the_code_of_its_kind(error: AgentsteadError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("operation", "result", "code"),
    [
        ("permission_check", {"verdict": "allow"}, 0),
        ("permission_check", {"verdict": "ask"}, 4),
        ("permission_check", {"verdict": "deny"}, 3),
        ("session_open", {"verdict": "deny"}, 0),
    ],
)
def test_a_result_ends_with_what_it_says_of_its_subject(operation: str, result: dict[str, str], code: int) -> None:
    assert outcome(operation, result) == code
