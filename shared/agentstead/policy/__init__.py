"""What agents may do: one decision for every call, questions that a person answers, grants that always end.

Reads no protocol: neither `mcp` nor `pydantic` is imported here.
"""

from agentstead.policy.answers import answer
from agentstead.policy.approvals import Approval, find_approval, get_approval, list_approvals, withdraw
from agentstead.policy.approvers import form_counts
from agentstead.policy.audit import Recorded, find_decision
from agentstead.policy.decide import PolicySet, decide
from agentstead.policy.ended import session_ended
from agentstead.policy.enforce import Enforcement
from agentstead.policy.grants import Grant, grants_end, list_grants, revoke_grant
from agentstead.policy.layers import Loaded
from agentstead.policy.model import Access, CallFacts, Decision, Risk, Ruled, Verdict
from agentstead.policy.question import Question
from agentstead.policy.redact import Redactor
from agentstead.policy.subjects import subject_ask, subject_use
from agentstead.policy.ticket import Ticket
from agentstead.policy.trust import host_trusted, trust_bytes, trust_host, trusted, untrust
from agentstead.state import Migrations

MIGRATIONS = Migrations(package="policy", anchor="agentstead.policy")

__all__ = [
    "MIGRATIONS",
    "Access",
    "Approval",
    "CallFacts",
    "Decision",
    "Enforcement",
    "Grant",
    "Loaded",
    "PolicySet",
    "Question",
    "Recorded",
    "Redactor",
    "Risk",
    "Ruled",
    "Ticket",
    "Verdict",
    "answer",
    "decide",
    "find_approval",
    "find_decision",
    "form_counts",
    "get_approval",
    "grants_end",
    "host_trusted",
    "list_approvals",
    "list_grants",
    "revoke_grant",
    "session_ended",
    "subject_ask",
    "subject_use",
    "trust_bytes",
    "trust_host",
    "trusted",
    "untrust",
    "withdraw",
]
