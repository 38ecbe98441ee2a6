"""The state machines of this server as data: the tables' CHECK sets and every transition are held to them by tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agentstead.state import Conflict


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: from a state, by an event, to a state; what is not listed is refused."""

    noun: str
    transitions: Mapping[tuple[str, str], str]

    @property
    def states(self) -> frozenset[str]:
        """Return every state that occurs."""
        return frozenset({state for state, _ in self.transitions if state} | set(self.transitions.values()))

    def after(self, state: str, event: str) -> str:
        """Return the state that follows; raise Conflict `<noun>.transition_refused` with the legal events."""
        found = self.transitions.get((state, event))
        if found is None:
            legal = sorted(each for from_state, each in self.transitions if from_state == state)
            raise Conflict(
                f"{self.noun}.transition_refused",
                f"a {self.noun} in state {state!r} takes no {event!r}",
                remedy=f"It takes: {', '.join(legal) or 'nothing; it has ended'}.",
                details={"state": state, "event": event, "legal": legal},
            )
        return found


def _machine(noun: str, table: str) -> Machine:
    """Read a table of lines `from, from: event -> to`; an empty from is the beginning."""
    transitions: dict[tuple[str, str], str] = {}
    for line in table.strip().splitlines():
        states, _, rest = line.partition(":")
        events, _, to = rest.partition("->")
        for state in states.split(","):
            for event in events.split(","):
                transitions[state.strip(), event.strip()] = to.strip()
    return Machine(noun, transitions)


OPERATION: Final = _machine(
    "operation",
    """
    : accepted -> queued
    queued: started -> running
    queued: cancel -> canceled
    running: done -> done
    running: error -> failed
    running: cancel -> canceled
    running: approval_needed -> parked
    parked: approved -> running
    parked: denied, expired, stale -> failed
    running: lost -> recovering
    recovering: forward -> done
    recovering: rolled_back -> failed
    """,
)
FORK: Final = _machine(
    "fork",
    """
    : make -> making
    making: verified -> open
    making: conflicts -> conflicted
    making: error -> failed
    conflicted: resolved -> open
    open: settle -> settled
    open: write -> open
    settled: reopen -> open
    open, settled: promote -> promoting
    promoting: promoted -> closed
    promoting: kept -> open
    open, settled, conflicted: close -> closed
    closed: sweep -> gone
    """,
)
RECEIPT: Final = _machine(
    "receipt",
    """
    : asked -> queued
    queued: ready -> preparing
    queued: refused -> refused
    preparing: started -> running
    running: ended -> settling
    settling: stored -> recorded
    queued, preparing, running: cancel -> canceled
    queued, preparing, running, settling: lost -> lost
    """,
)
PROMOTION: Final = _machine(
    "promotion",
    """
    : plan -> planned
    planned: prove -> proving
    planned, proving: approval_needed -> waiting
    planned, proving: approved -> ready
    planned, proving: refused -> refused
    planned, proving, waiting, ready: stale -> stale
    waiting: approved -> ready
    waiting: denied, expired -> refused
    ready: locked -> staging
    staging: staged -> applying
    applying: swapped -> confirming
    staging, applying: failed -> rolling_back
    confirming: confirmed -> committed
    rolling_back: reverted -> rolled_back
    committed: undone -> reversed
    """,
)
STEP: Final = _machine(
    "step",
    """
    : plan -> planned
    planned: staged -> staged
    staged: exchanged -> swapped
    swapped: as_expected -> verified
    swapped: differs -> contested
    contested: put_back -> reverted
    verified: rollback -> reverted
    """,
)
MACHINES: Final = (OPERATION, FORK, RECEIPT, PROMOTION, STEP)
