"""What the operations of memory return."""

from typing import Any

from agentstead.kit import Result
from agentstead.memory.forgetting import Going
from agentstead.memory.reviewing import Drift
from agentstead.memory.views import MemoryView
from agentstead.memory.vocabulary import ProposalState
from agentstead.memory.writing import DecisionRow, Outcome


class Memories(Result):
    """Memories in full."""

    items: list[MemoryView]


class Listed(Result):
    """One page of a list."""

    rows: list[dict[str, Any]]
    counts: dict[str, int]
    next_cursor: str | None = None
    note: str | None = None


class Written(Result):
    """What became of a proposal."""

    proposal_id: str
    state: ProposalState
    decisions: list[DecisionRow]
    next_step: str


class Context(Result):
    """A context pack."""

    text: str
    sha256: str
    recall_id: str
    items: list[str]
    left_out: int
    newer: int = 0
    note: str | None = None

    def summary(self) -> str:
        """Return the pack itself."""
        return self.text


class Reviewed(Result):
    """What a review settled, and what drifted and stays open."""

    settled: dict[str, ProposalState]
    decisions: list[DecisionRow]
    drift: list[Drift]


class Forgotten(Result):
    """A preview with its digest, or what became of it."""

    preview: list[Going] | None = None
    digest: str | None = None
    decisions: list[DecisionRow] | None = None
    next_step: str


class Reindexed(Result):
    """How much was made anew."""

    memories: int
    editions: int


def next_step(outcome: Outcome, *, dry_run: bool = False) -> str:
    """Return what the caller should do now that its changes are judged."""
    if dry_run:
        return f"Nothing was kept. Without dry_run this would be {outcome.state}."
    match outcome.state:
        case "pending":
            return f"A person must accept {outcome.proposal_id}: ask them (memory_review), and do not send it again."
        case "held":
            return (
                f"The text reads like an order to agents, so {outcome.proposal_id} waits for a person (memory_review)."
            )
        case "refused":
            return "Nothing was stored."
        case _:
            return _after_accepted(outcome)


def _after_accepted(outcome: Outcome) -> str:
    twins = [row.twin for row in outcome.decisions if row.verdict == "duplicate" and row.twin]
    if twins:
        return f"Known already: {', '.join(dict.fromkeys(twins))}. Nothing was added for it."
    return "Kept."
