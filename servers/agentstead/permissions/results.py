"""What the operations of this server return."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentstead.kit import Result
from agentstead.policy import Approval, Grant, find_approval, list_grants
from agentstead.state import Reading

Object = Mapping[str, Any]


class DecisionView(Result):
    """What the policy says of a call now; `basis` holds the hashes, the revision and the engine that it stands on."""

    verdict: str
    reasons: Sequence[str]
    accesses: Sequence[Object]
    would_allow: Sequence[str]
    basis: Object
    grant_id: str | None = None

    def summary(self) -> str:
        """Say the verdict, why, and what would allow it."""
        texts = ", ".join(access["text"] for access in self.accesses)
        return f"{self.verdict}: {texts} ({', '.join(self.reasons)}). {' '.join(self.would_allow)}".rstrip()


class Explained(Result):
    """A recorded decision: what was judged, by which rules and layers, what came of it, what would allow it."""

    decision_id: str
    verdict: str
    outcome: str
    reasons: Sequence[str]
    accesses: Sequence[Object]
    would_allow: Sequence[str]
    call: Object
    approval: Object | None = None

    def summary(self) -> str:
        """Say what was decided, why, and what would allow it."""
        said = f"{self.decision_id}: {self.call['tool']} was judged {self.verdict}, outcome {self.outcome}"
        return f"{said} ({', '.join(self.reasons)}). {' '.join(self.would_allow)}".rstrip()


class Answered(Result):
    """The state of a question, its answer once there is one, and by whom and how it was given."""

    approval_id: str
    state: str
    expires_at: int
    answer: str | None = None
    note: str | None = None
    how_to_answer: str | None = None
    record: Object

    def summary(self) -> str:
        """Say where the question stands and what to do next."""
        if self.state == "pending":
            return f"{self.approval_id} waits for a person: {self.how_to_answer}."
        by = f" ({self.answer} by {self.record['answered_by']})" if self.answer else ""
        note = f" They say: {self.note}" if self.note else ""
        then = " Repeat the call now." if self.state == "allowed" else ""
        return f"{self.approval_id} is {self.state}{by}.{note}{then}"


class Requested(Result):
    """What each asked-for call gets: its verdict, and the question that waits for it."""

    calls: Sequence[Object]
    how_to_answer: str | None = None

    def summary(self) -> str:
        """Say each call's verdict."""
        lines = [f"{each['tool']}: {each['verdict']} {each.get('approval_id') or ''}".rstrip() for each in self.calls]
        return "\n".join([*lines, *([self.how_to_answer] if self.how_to_answer else [])])


class Status(Result):
    """The policy in force here with its axes, files and faults; the grants that hold; the open questions."""

    policy: Object | None = None
    grants: Sequence[Object] | None = None
    pending: Sequence[Object] | None = None

    def summary(self) -> str:
        """Say the axes, what is wrong, and how much is granted and asked."""
        parts = []
        if self.policy is not None:
            axes = self.policy["axes"].items()
            parts += [f"{axis} = {set_to['value']} ({set_to['set_by']})" for axis, set_to in axes]
            parts += [f"policy fault: {fault}" for fault in self.policy["faults"]]
        if self.grants is not None:
            parts.append(f"{len(self.grants)} grants in force")
        if self.pending is not None:
            parts.append(f"{len(self.pending)} questions wait for a person")
        return "; ".join(parts) + "."


class ApprovalPage(Result):
    """Questions about permissions, newest first."""

    items: Sequence[Object]
    next_cursor: str | None = None

    def summary(self) -> str:
        """Say each question in a line."""
        return "\n".join(f"{each['approval_id']} {each['state']} {each['tool']}" for each in self.items) or "none"


class GrantPage(Result):
    """Grants in force, newest first."""

    items: Sequence[Object]

    def summary(self) -> str:
        """Say each grant in a line."""
        lines = (f"{each['grant_id']} {each['effect']} {each['scope']} {each['tool']}" for each in self.items)
        return "\n".join(lines) or "none"


class GrantRevoked(Result):
    """A grant that holds no more."""

    grant_id: str
    revoked_at: int

    def summary(self) -> str:
        """Say that it ended."""
        return f"{self.grant_id} holds no more."


def approval_object(approval: Approval, now_us: int, *, full: bool = False) -> Object:
    """Return the short form of a question; `full` adds its text and options."""
    short = {
        "approval_id": approval.id,
        "state": approval.state_at(now_us),
        "kind": approval.kind,
        "tool": f"{approval.server}/{approval.tool}" if approval.tool else approval.subject_kind,
        "asked_by": approval.principal,
        "accesses": [access["text"] for access in approval.accesses],
        "expires_at": approval.expires_at,
    }
    return {**short, "question": approval.summary, "options": list(approval.options)} if full else short


def grant_objects(
    reading: Reading, *, session_id: str = "", workspace_id: str = "", most: int = 50
) -> Sequence[Object]:
    """Return the published forms of the grants in force, newest first, each with the tool it was asked for."""
    found = list_grants(reading, session_id=session_id, workspace_id=workspace_id, most=most)
    return [_grant_object(grant, find_approval(reading, grant.approval_id)) for grant in found]


def _grant_object(grant: Grant, approval: Approval | None) -> Object:
    return {
        "grant_id": grant.id,
        "effect": grant.effect,
        "scope": grant.scope,
        "tool": f"{approval.server}/{approval.tool}" if approval is not None else "",
        "session_id": grant.session_id or None,
        "workspace_id": grant.workspace_id or None,
        "actor": grant.actor or None,
        "uses_left": grant.uses_left,
        "expires_at": grant.expires_at,
        "last_used_at": grant.last_used_at,
        "created_by": grant.created_by,
    }


def answered(approval: Approval, now_us: int) -> Answered:
    """Return where a question stands."""
    state = approval.state_at(now_us)
    record = {name: getattr(approval, name) for name in ("asks", "answered_by", "proof", "answered_at", "exec_state")}
    return Answered(
        approval_id=approval.id,
        state=state,
        expires_at=approval.expires_at,
        answer=approval.answer or None,
        note=approval.note or None,
        how_to_answer=f"agentstead answer {approval.id}" if state == "pending" else None,
        record=record,
    )
