"""Questions and grants as lists, and what ends them: a person's answer, withdrawing, revoking."""

from typing import Annotated, Literal

from pydantic import Field

from agentstead.identity import Principal
from agentstead.kit import Call, operation
from agentstead.permissions.results import (
    Answered,
    ApprovalPage,
    GrantPage,
    GrantRevoked,
    answered,
    approval_object,
    grant_objects,
)
from agentstead.policy import answer, get_approval, list_approvals, revoke_grant, withdraw
from agentstead.policy.machines import ApprovalState, Choice
from agentstead.state import Tx

_Approval = Annotated[str, Field(description="apr_ id of the question.", max_length=64)]


@operation("approval_list", action="permissions.approval_list", risk="read", title="List questions", idempotent=True)
async def approval_list(
    call: Call,
    *,
    state: Annotated[ApprovalState | None, Field(description="Only those in this state.")] = "pending",
    session_id: Annotated[str | None, Field(description="Only those of this session.", max_length=64)] = None,
    workspace: Annotated[str | None, Field(description="Only those of this workspace.", max_length=4096)] = None,
    limit: Annotated[int, Field(description="How many.", ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Field(description="next_cursor of the page before.", max_length=2000)] = None,
) -> ApprovalPage:
    """Use to see which questions about permissions wait for a person, or how earlier ones were answered. Newest first,
    each with its text and the answers that it takes.
    """
    workspace_id = (await call.workspace(workspace)).id if workspace else ""
    filters = {"state": state or "", "session_id": session_id or "", "workspace_id": workspace_id}
    after = str(call.home.state.cursors.open(cursor, filters)["after"]) if cursor else ""
    found = await call.read(list_approvals, **filters, after=after, most=limit + 1)
    now_us = call.home.clock.now_us()
    more = len(found) > limit
    return ApprovalPage(
        items=[approval_object(each, now_us, full=True) for each in found[:limit]],
        next_cursor=call.home.state.cursors.seal({"after": found[limit - 1].id}, filters) if more else None,
    )


@operation(
    "approval_answer", action="permissions.approval_answer", risk="write", title="Answer a question", idempotent=False
)
async def approval_answer(
    call: Call,
    *,
    approval_id: _Approval,
    choice: Annotated[Choice, Field(description="One of the question's options.")],
    note: Annotated[str, Field(description="Shown to the asker.", max_length=500)] = "",
    until_us: Annotated[int | None, Field(description="For allow_until: microseconds UTC, at most 90 days on.")] = None,
    uses: Annotated[int | None, Field(description="For allow_uses: how many.", ge=1, le=10_000)] = None,
) -> Answered:
    """For a person alone: settles a question by a connection with an operator token, or from the person's terminal.
    Agents, and the asker itself, are refused. The first answer holds.
    """
    return await call.write(_answer, call.principal, approval_id, choice, note, until_us, uses)


@operation(
    "approval_withdraw",
    action="permissions.approval_withdraw",
    risk="write",
    title="Withdraw a question",
    idempotent=False,
)
async def approval_withdraw(call: Call, *, approval_id: _Approval) -> Answered:
    """Use when you asked for a permission that you no longer need: takes your open question back."""
    return await call.write(_withdraw, approval_id)


@operation("grant_list", action="permissions.grant_list", risk="read", title="List grants", idempotent=True)
async def grant_list(
    call: Call,
    *,
    session_id: Annotated[str | None, Field(description="Only those of this session.", max_length=64)] = None,
    workspace: Annotated[str | None, Field(description="Only those of this workspace.", max_length=4096)] = None,
    limit: Annotated[int, Field(description="How many.", ge=1, le=200)] = 50,
) -> GrantPage:
    """Use to see which permissions a person has given that hold now: for what, how long, how many uses are left."""
    workspace_id = (await call.workspace(workspace)).id if workspace else ""
    return GrantPage(
        items=await call.read(grant_objects, session_id=session_id or "", workspace_id=workspace_id, most=limit)
    )


@operation("grant_revoke", action="permissions.grant_revoke", risk="write", title="Revoke a grant", idempotent=True)
async def grant_revoke(
    call: Call,
    *,
    grant_id: Annotated[str, Field(description="grn_ id of the grant.", max_length=64)],
    reason: Annotated[str, Field(description="Kept with it.", max_length=500)] = "",
) -> GrantRevoked:
    """Use to end a permission before its time, for instance when the work it was given for is done."""
    return await call.write(_revoke, grant_id, reason)


def _answer(
    tx: Tx, by: Principal, approval_id: str, choice: str, note: str, until_us: int | None, uses: int | None
) -> Answered:
    proof: Literal["operator", "terminal"] = "operator" if by.proof == "operator" else "terminal"
    settled = answer(tx, approval_id, choice, by=by, proof=proof, note=note, until_us=until_us, uses=uses)
    return answered(settled, tx.now_us)


def _withdraw(tx: Tx, approval_id: str) -> Answered:
    withdraw(tx, approval_id, by=tx.principal)
    return answered(get_approval(tx, approval_id), tx.now_us)


def _revoke(tx: Tx, grant_id: str, reason: str) -> GrantRevoked:
    ended = revoke_grant(tx, grant_id, reason=tx.redact(reason))
    return GrantRevoked(grant_id=ended.id, revoked_at=ended.revoked_at or tx.now_us)
