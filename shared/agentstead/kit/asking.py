"""Putting a stored question to the person behind a host, in the form of either protocol era."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agentstead.identity import Principal
from agentstead.kit.sdk import Context, can_elicit, is_modern
from agentstead.policy import Question, answer, form_counts, get_approval, question
from agentstead.state import ORIGIN, AgentsteadError, Origin, PendingAnswer, Reading

if TYPE_CHECKING:
    from agentstead.kit.home import Home

ASK = "ask"
_DECLINED = "deny_once"


class AskInRetry(Exception):
    """Carry a question that a modern client answers by repeating its request."""

    def __init__(self, approval_id: str, form: types.ElicitRequestFormParams) -> None:
        super().__init__(approval_id)
        self.approval_id = approval_id
        self.form = form

    def result(self) -> types.InputRequiredResult:
        """Return the result that asks; the sealed request state carries the approval's id."""
        return types.InputRequiredResult(
            input_requests={ASK: types.ElicitRequest(params=self.form)}, request_state=self.approval_id
        )


class HostPerson:
    """The person behind one request of a host."""

    def __init__(self, home: "Home", context: Context, principal: Principal) -> None:
        self._home = home
        self._context = context
        self._principal = principal

    async def ask(self, pending: PendingAnswer) -> bool:
        """Show the question of `pending` and record the answer; return whether there is one.

        Raises `AskInRetry` on a modern request. No form, no answer or a closed form leave the question pending.
        """
        approval_id = str(pending.details.get("approval_id", ""))
        if not approval_id or not can_elicit(self._context):
            return False
        asked = await self._home.state.read(self._question, approval_id)
        if asked is None:
            return False
        form = _form(asked)
        if is_modern(self._context):
            raise AskInRetry(approval_id, form)
        result = await self._show(form)
        return result is not None and await self._record(approval_id, result)

    async def take_answer(self, approval_id: str, responses: Mapping[str, Any]) -> None:
        """Record what a modern client's repeated request brings along."""
        given = responses.get(ASK)
        if isinstance(given, types.ElicitResult):
            await self._record(approval_id, given)

    def _question(self, reading: Reading, approval_id: str) -> Question | None:
        """Return the form, or None where this host's forms prove no person."""
        if not form_counts(reading, self._principal, trusted_hosts=self._trusted):
            return None
        approval = get_approval(reading, approval_id)
        return question(approval.summary, approval.options)

    @property
    def _trusted(self) -> tuple[str, ...]:
        return self._home.settings.texts("elicitation.trusted_hosts")

    async def _show(self, form: types.ElicitRequestFormParams) -> types.ElicitResult | None:
        wait_s = self._home.settings.number("elicitation.wait_s")
        try:
            async with asyncio.timeout(wait_s):
                return await self._context.session.elicit_form(
                    form.message, form.requested_schema, related_request_id=self._context.request_id
                )
        except (TimeoutError, MCPError):
            return None

    async def _record(self, approval_id: str, result: types.ElicitResult) -> bool:
        content = result.content or {}
        choice = str(content.get("decision", "")) if result.action == "accept" else ""
        if result.action == "decline":
            choice = _DECLINED
        if not choice:
            return False
        token = ORIGIN.set(Origin(self._principal.text))
        try:
            await self._home.state.write(
                answer,
                approval_id,
                choice,
                by=self._principal,
                proof="elicited",
                note=str(content.get("note", "")),
                trusted_hosts=self._trusted,
            )
        except AgentsteadError:
            # Somebody was faster, or this host's answers do not count: the repeated attempt finds what holds.
            return True
        finally:
            ORIGIN.reset(token)
        return True


def _form(question: Question) -> types.ElicitRequestFormParams:
    decision = {"type": "string", "title": "Decision", "enum": list(question.options)}
    note = {"type": "string", "title": "Note", "maxLength": 500}
    schema = {"type": "object", "properties": {"decision": decision, "note": note}, "required": ["decision"]}
    return types.ElicitRequestFormParams(message=question.text, requested_schema=schema)
