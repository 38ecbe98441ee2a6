"""What lets a judged call go: the right of one call to run, spent in its first mutation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agentstead.policy.model import CallFacts, Decision
from agentstead.state import Tx

PassedBy = Literal["verdict", "grant", "person", "subject", "asking"]
Spend = Callable[[Tx, "Ticket"], None]


@dataclass(slots=True)
class Ticket:
    """The right of one call to run.

    `passed_by`: the verdict was allow; a grant answered it; the caller is the person; the body asks its own subject;
    or the tool is one that asks. `decision_id` is empty where the allow is only counted. `spent` turns true when a
    transaction that spent it is on disk, so a transaction that rolled back leaves it whole.
    """

    call: CallFacts
    decision: Decision
    passed_by: PassedBy
    decision_id: str = ""
    approval_id: str = ""
    grant_id: str = ""
    spent: bool = False
    on_spend: Spend | None = None

    @property
    def needs_settling(self) -> bool:
        """Tell whether `Enforcement.settle` has something to write when the body is done."""
        return self.on_spend is not None and (not self.spent or bool(self.approval_id))

    def spend(self, tx: Tx) -> None:
        """Use the right up in this transaction, first of all in the first mutation of the call; later calls do nothing.

        Raises `Denied` when the grant was revoked, ran out or expired, or a deny rule holds since the call entered.
        """
        if self.spent or self.on_spend is None:
            return
        self.on_spend(tx, self)
        tx.after_commit(self._mark)

    def _mark(self) -> None:
        self.spent = True
