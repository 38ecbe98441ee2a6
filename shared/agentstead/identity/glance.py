"""Which workspace a call seems to be about, from the rows alone: nothing is registered, confirmed or written."""

from pathlib import Path

from agentstead.identity import registry
from agentstead.identity.registry import Workspace
from agentstead.state import Reading


def glance(reading: Reading, *, name: str = "", session_workspace: str = "", cwd: str = "") -> Workspace | None:
    """Return the registered workspace that a name, a session or a directory points to; None where none does."""
    for text in (name, session_workspace):
        if text and Path(text).is_absolute():
            return registry.enclosing(reading, Path(text).resolve())
        if text:
            return registry.named(reading, text)
    return registry.enclosing(reading, Path(cwd).resolve()) if cwd else None
