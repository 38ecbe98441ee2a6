"""The door that every call passes: a decision, what stored grants say of it, a question where a person must answer.

ticket = await enforcement.enter(CallFacts(...))   # or Denied / PendingAnswer
... ticket.spend(tx) in the first mutation ...
await enforcement.settle(ticket, completed=True)   # only has work to do where a grant let the call go
"""

from typing import Protocol

from agentstead.policy.model import CallFacts, Decision
from agentstead.policy.ticket import Ticket


class EnforcementPort(Protocol):
    """What the kit calls."""

    def decide(self, call: CallFacts) -> Decision:
        """Return what the policy says of `call`; pure, no database."""
        ...

    async def enter(self, call: CallFacts) -> Ticket:
        """Judge `call` before its body runs.

        An allowed read or write costs a pure decision and is counted. Raises `Denied` (`permission.denied`,
        `permission.headless`) or `PendingAnswer` (`permission.pending`, details `approval_id`, `expires_at`, `answer`).
        """
        ...

    async def settle(self, ticket: Ticket, *, completed: bool) -> None:
        """Record how an approved call ended."""
        ...
