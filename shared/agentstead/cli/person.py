"""Whether a person types: what is reserved for a person is refused to whatever an agent or a host started.

A hostile program of the same user can still get round this; `docs/security.md` says so.
"""

import os
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from agentstead.cli.terminal import Terminal
from agentstead.coordinator import control
from agentstead.identity import Principal, ancestors
from agentstead.identity.ancestry import parent_of
from agentstead.runner import MARKER
from agentstead.state import DATABASE_FILE, Denied

# Set for what works for an agent; its mere presence says that no person typed this.
_AGENT_VARIABLES = (MARKER, "AGENTSTEAD_AGENT")
_RUNNING = "SELECT pid FROM processes WHERE state IN ('running', 'stopping') AND pid > 0"


def started_by(home: Path) -> str:
    """Say which agent or host this process descends from, as far as can be seen; '' for none."""
    named = next((name for name in _AGENT_VARIABLES if os.environ.get(name)), "")
    if named:
        return f"an agent's process (it has the variable {named})"
    above = ancestors(os.getpid())
    if any(pid in above for pid in _hosts(home)):
        return "a host that is connected to Agentstead"
    if any(pid in above for pid in _runner_processes(home)):
        return "a process that Agentstead runs"
    return ""


def refuse_agents(terminal: Terminal, path: Sequence[str]) -> None:
    """Raise Denied `permission.denied` where an agent or a host stands above this process."""
    by = started_by(terminal.home)
    if by:
        verb = f"agentstead {' '.join(path)}"
        raise Denied(
            "permission.denied",
            f"`{verb}` is for a person, and this one was started by {by}.",
            remedy=f"Ask the person to run `{verb}` in a terminal of their own.",
        )


def principal_of(terminal: Terminal) -> Principal:
    """Return the person of this home, with what was seen of the process that they type in."""
    return Principal.user(at_terminal=terminal.at_terminal, supervised=bool(started_by(terminal.home)), pid=os.getpid())


def _hosts(home: Path) -> Collection[int]:
    """Return the processes that started the connected shims; none where no coordinator runs."""
    shims = control.status(home).live.get("shims", ())
    return {parent for pid in shims if (parent := parent_of(int(pid))) is not None and parent > 1}


def _runner_processes(home: Path) -> Collection[int]:
    """Return the processes that the runner has recorded as running; none in a home that has no such table yet.

    The database is read without opening the home: a verb that sets up a host must not need a sound one.
    """
    path = home / DATABASE_FILE
    if not path.exists():
        return ()
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5.0)) as connection:
            return {int(pid) for (pid,) in connection.execute(_RUNNING)}
    except sqlite3.Error:
        return ()
