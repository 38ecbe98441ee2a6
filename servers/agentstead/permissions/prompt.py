"""The tool that a host asks before it runs one of its own tools. It answers allow or deny, and never waits for good.

Every failure is a deny with its code: a host that gets anything else might let the call go.
"""

import time
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from agentstead.kit import Call, Operation, Result, operation
from agentstead.permissions.calls import host_call, own_behind
from agentstead.permissions.hosts import claude_code
from agentstead.permissions.hosts.claude_code import Classification
from agentstead.policy import Approval, CallFacts, Ticket, get_approval
from agentstead.state import AgentsteadError, Denied, PendingAnswer, Tx

PROGRESS_S = 2.0


class HostAnswer(Result):
    """The one text that the host reads."""

    text: str

    def summary(self) -> str:
        """Return the text, and nothing around it."""
        return self.text


def failed(error: AgentsteadError) -> str:
    """Return the deny that stands for an error."""
    return claude_code.deny(str(error))


@operation(
    "permission_prompt",
    action="permissions.prompt",
    risk="write",
    title="Permission prompt",
    idempotent=False,
    raw_text=True,
    lenient=True,
    failure=failed,
    cli=False,
)
async def permission_prompt(
    call: Call,
    *,
    tool_name: Annotated[str, Field(description="The host's name of the tool.", max_length=260)],
    input: Annotated[Mapping[str, Any], Field(description="The tool's input.")],  # noqa: A002 - the host's own word
    tool_use_id: Annotated[str | None, Field(description="The host's id of the use.", max_length=200)] = None,
) -> HostAnswer:
    """For hosts (--permission-prompt-tool), not models: judges a host's tool call, waits a bounded time for a person,
    and answers one JSON object, allow or deny.
    """
    try:
        own = own_behind(call.home, tool_name)
        text = await (_own(call, own, input, tool_use_id) if own else _judge(call, tool_name, input, tool_use_id))
    except AgentsteadError as error:
        text = claude_code.deny(call.home.redactor.text(str(error)), tool_use_id=tool_use_id)
    return HostAnswer(text=text)


async def _own(call: Call, own: Operation, tool_input: Mapping[str, Any], tool_use_id: str | None) -> str:
    """Let a tool of ours go unless it is denied: its own door judges it again, and asks where it must."""
    action, risk = own.action_for(tool_input)
    facts = CallFacts(
        server=own.server,
        tool=own.name,
        action=action,
        risk=risk,
        arguments=dict(tool_input),
        principal=call.principal,
        now_us=call.home.clock.now_us(),
        cwd=str(call.cwd or ""),
    )
    decision = call.home.enforcement.decide(facts)
    if decision.verdict != "deny":
        return claude_code.allow(tool_input, tool_use_id=tool_use_id)
    await call.home.enforcement.enter(facts)
    raise Denied("permission.denied", f"{own.name} is denied.", remedy="permission_check says why.")


async def _judge(call: Call, tool_name: str, tool_input: Mapping[str, Any], tool_use_id: str | None) -> str:
    facts = host_call(call, tool_name, tool_input)
    try:
        ticket = await call.home.enforcement.enter(facts)
    except PendingAnswer as pending:
        approval = await _wait(call, str(pending.details["approval_id"]))
        if approval.state == "denied":
            message = _refused(approval)
            return claude_code.deny(message, tool_use_id=tool_use_id, classification="user_reject")
        if approval.state != "allowed":
            return claude_code.deny(f"pending {approval.id}; retry after approval", tool_use_id=tool_use_id)
        ticket = await call.home.enforcement.enter(facts)
    await call.write(_spend, ticket)
    # what the host does with it is out of sight: letting it go is all that can be recorded as done
    await call.home.enforcement.settle(ticket, completed=True)
    given: Classification | None = "user_temporary" if ticket.grant_id else None
    return claude_code.allow(tool_input, tool_use_id=tool_use_id, classification=given)


async def _wait(call: Call, approval_id: str) -> Approval:
    """Wait for the answer, at most `prompt.wait_s`, with a sign of life every two seconds."""
    wait_s = call.home.settings.number("prompt.wait_s")
    started = time.monotonic()
    approval = await call.read(get_approval, approval_id)
    while approval.state == "pending" and (waited := time.monotonic() - started) < wait_s:
        await call.progress(waited, wait_s, f"{approval_id} waits for a person: agentstead answer {approval_id}")
        seen = (await call.home.state.head()).seq
        approval = await call.read(get_approval, approval_id)
        if approval.state == "pending":
            step_s = min(PROGRESS_S, wait_s - waited)
            await call.home.state.wait(seen, kinds=("permissions.approval.*",), timeout_s=step_s)
            approval = await call.read(get_approval, approval_id)
    return approval


def _refused(approval: Approval) -> str:
    return f"A person refused this. They say: {approval.note}" if approval.note else "A person refused this."


def _spend(tx: Tx, ticket: Ticket) -> None:
    ticket.spend(tx)
