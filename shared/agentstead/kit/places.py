"""What a call asks of identity and policy: its workspace, and a person's yes to one subject."""

from typing import TYPE_CHECKING

from agentstead.identity import Asked, WorkspaceFacts, resolve
from agentstead.state import ORIGIN, Origin

if TYPE_CHECKING:
    from agentstead.kit.call import Call

SESSION_VARIABLE = "AGENTSTEAD_SESSION"


async def resolve_workspace(call: "Call", name: str | None, *, session_id: str | None) -> WorkspaceFacts:
    """Return the workspace of a call; see `identity.resolve` for the order and the errors."""
    asked = Asked(
        home=call.home.path,
        name=name or "",
        environ=call.environ,
        session_id=session_id or call.environ.get(SESSION_VARIABLE, ""),
        cwd=call.cwd,
    )
    token = ORIGIN.set(Origin(call.principal.text, call.trace_id))
    try:
        return await resolve(call.home.state, asked)
    finally:
        ORIGIN.reset(token)


async def ask_subject(
    call: "Call", kind: SubjectKind, subject_hash: str, *, question: str, workspace: str, session_id: str | None
) -> str:
    """Return the allowed approval of a subject; raises `PendingAnswer` while nobody has answered."""
    token = ORIGIN.set(Origin(call.principal.text, call.trace_id))
    try:
        approval = await call.home.state.write(
            subject_ask,
            kind,
            subject_hash,
            question=question,
            asker=call.principal,
            workspace_id=workspace,
            session_id=session_id or "",
        )
    finally:
        ORIGIN.reset(token)
    if approval.state == "allowed":
        return approval.id
    raise PendingAnswer(
        "permission.pending",
        f"A person must answer {approval.id} first.",
        remedy=f"They run `agentstead answer {approval.id}`; then repeat the same call.",
        retryable=True,
        details={"approval_id": approval.id, "expires_at": approval.expires_at},
    )
