"""What the sessions server does, as its face, the command line and the network server call it."""

from collections.abc import Iterable

from agentstead.kit import Home
from agentstead.sessions import events, runs
from agentstead.sessions.desk import desk_view
from agentstead.sessions.recording import session_close, session_events, session_find, session_open, session_record
from agentstead.sessions.runs import RunOwner, register_owner
from agentstead.sessions.working import (
    task_cancel,
    task_claim,
    task_find,
    task_get,
    task_report,
    task_save,
    task_unblock,
)
from agentstead.state import Entry, Reading

__all__ = [
    "RunOwner",
    "desk_view",
    "register_owner",
    "session_close",
    "session_events",
    "session_find",
    "session_open",
    "session_record",
    "sweep",
    "task_cancel",
    "task_claim",
    "task_find",
    "task_get",
    "task_report",
    "task_save",
    "task_unblock",
    "verify",
]

_PREFIXES = {"ses_": "session", "tsk_": "task", "run_": "run"}


async def sweep(home: Home) -> None:
    """Declare lost every lease that ran out, so that its work is taken up again."""
    while await home.state.read(runs.is_any_overdue):
        await home.state.write(runs.sweep)


async def verify(home: Home) -> list[str]:
    """Hold every recorded event against the journal; return what does not fit."""
    faults: list[str] = []
    after = 0
    while entries := await home.state.read(Reading.entries, after, kinds=("sessions.events.recorded",), most=500):
        after = entries[-1].seq
        faults += [fault for fault in await home.state.read(_faults, entries) if fault]
    return faults


def changes(entry: Entry) -> Iterable[str]:
    """Name the resources that a journal entry changed."""
    noun = _PREFIXES.get(entry.subject[:4])
    if noun == "session":
        yield f"session://{entry.subject}/recap"
        yield f"session://{entry.subject}/events"
    elif noun == "task":
        yield f"task://{entry.subject}"
    if noun is not None or entry.kind.startswith("permissions."):
        yield "desk://needs-you"


def _faults(reading: Reading, entries: list[Entry]) -> list[str]:
    return [events.fault_of(reading, entry) for entry in entries]
