"""The closed sets and state machines of approvals and grants, as data; tables, faces and tests read the same values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

ApprovalState = Literal["pending", "allowed", "denied", "expired", "canceled", "superseded"]
ExecState = Literal["none", "dispatching", "completed", "failed", "uncertain"]
ApprovalKind = Literal["call", "batch", "definition", "trust", "subject"]
SubjectKind = Literal["promotion", "gate", "consent", "erase", "override"]
Choice = Literal[
    "allow_once", "allow_session", "allow_workspace", "allow_until", "allow_uses", "deny_once", "deny_always"
]
Scope = Literal["once", "session", "workspace", "until", "activation"]
Effect = Literal["allow", "deny"]
MatchKind = Literal["input", "exact", "pattern"]
TrustKind = Literal["policy", "agent", "hook", "job", "trigger", "loop", "check", "gate", "skills", "host"]
TrustMode = Literal["", "content", "all", "forms"]
Outcome = Literal["run", "granted", "person", "subject", "pending", "denied", "headless"]
Headless = Literal["queue", "deny", "declared"]

APPROVAL_STATES: tuple[ApprovalState, ...] = get_args(ApprovalState)
EXEC_STATES: tuple[ExecState, ...] = get_args(ExecState)
APPROVAL_KINDS: tuple[ApprovalKind, ...] = get_args(ApprovalKind)
SUBJECT_KINDS: tuple[SubjectKind, ...] = get_args(SubjectKind)
CHOICES: tuple[Choice, ...] = get_args(Choice)
SCOPES: tuple[Scope, ...] = get_args(Scope)
EFFECTS: tuple[Effect, ...] = get_args(Effect)
MATCH_KINDS: tuple[MatchKind, ...] = get_args(MatchKind)
TRUST_KINDS: tuple[TrustKind, ...] = get_args(TrustKind)
TRUST_MODES: tuple[TrustMode, ...] = get_args(TrustMode)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US

ONCE_US = 15 * MINUTE_US
SESSION_US = 8 * HOUR_US
WORKSPACE_US = 30 * DAY_US
UNTIL_MOST_US = 90 * DAY_US
USES_MOST = 10_000

# a person's no is not asked about again by the very next attempt
DENIED_HOLDS_US = MINUTE_US


@dataclass(frozen=True, slots=True)
class Answer:
    """What one choice does: the approval's state, and the grant it makes (none for a plain deny and for subjects)."""

    state: ApprovalState
    effect: Effect | None = None
    scope: Scope = "once"
    lasts_us: int = ONCE_US


ANSWERS: Mapping[Choice, Answer] = {
    "allow_once": Answer("allowed", "allow", "once", ONCE_US),
    "allow_session": Answer("allowed", "allow", "session", SESSION_US),
    "allow_workspace": Answer("allowed", "allow", "workspace", WORKSPACE_US),
    "allow_until": Answer("allowed", "allow", "until", UNTIL_MOST_US),
    "allow_uses": Answer("allowed", "allow", "until", WORKSPACE_US),
    "deny_once": Answer("denied"),
    "deny_always": Answer("denied", "deny", "until", UNTIL_MOST_US),
}

# what happens to a pending approval other than an answer
EVENTS: Mapping[str, ApprovalState] = {"expire": "expired", "withdraw": "canceled", "supersede": "superseded"}

APPROVAL_TRANSITIONS: Mapping[tuple[ApprovalState, str], ApprovalState] = {
    **{("pending", choice): answer.state for choice, answer in ANSWERS.items()},
    **{("pending", event): state for event, state in EVENTS.items()},
}

EXEC_TRANSITIONS: Mapping[tuple[ExecState, str], ExecState] = {
    ("none", "dispatch"): "dispatching",
    ("dispatching", "complete"): "completed",
    ("dispatching", "fail"): "failed",
    ("dispatching", "found_at_start"): "uncertain",
}

SUBJECT_CHOICES: tuple[Choice, ...] = ("allow_once", "deny_once")
# a form cannot carry a date or a number beside its choice
FORM_CHOICES: tuple[Choice, ...] = ("allow_once", "allow_session", "allow_workspace", "deny_once", "deny_always")
