"""Putting a stored question to the person behind a host, in the form of either protocol era."""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agentstead.identity import Principal
from agentstead.kit.sdk import Context, can_elicit, is_modern
from agentstead.policy import Question
from agentstead.state import AgentsteadError, PendingAnswer

if TYPE_CHECKING:
    from agentstead.kit.home import Home

log = logging.getLogger(__name__)

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
        self._closed: set[str] = set()

    async def ask(self, pending: PendingAnswer) -> bool:
        """Show the question of `pending` and record the answer; return whether there is one.

        Raises `AskInRetry` on a modern request. No form, no answer or a closed form leave the question pending.
        """
        approval_id = str(pending.details.get("approval_id", ""))
        if not approval_id or approval_id in self._closed or not can_elicit(self._context):
            return False
        asked = await self._home.enforcement.question(approval_id, self._principal)
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
        if not isinstance(given, types.ElicitResult) or not await self._record(approval_id, given):
            self._closed.add(approval_id)

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
        try:
            await self._home.enforcement.answer_elicited(
                approval_id, choice, principal=self._principal, note=str(content.get("note", ""))
            )
        except AgentsteadError as error:
            # Somebody was faster, or this host's answers do not count: the repeated attempt finds what holds.
            log.info("an answer by form was not taken: %s", error.code)
        return True


def _form(question: Question) -> types.ElicitRequestFormParams:
    decision = {"type": "string", "title": "Decision", "enum": list(question.options)}
    note = {"type": "string", "title": "Note", "maxLength": 500}
    schema = {"type": "object", "properties": {"decision": decision, "note": note}, "required": ["decision"]}
    return types.ElicitRequestFormParams(message=question.text, requested_schema=schema)
