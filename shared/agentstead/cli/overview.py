"""What `agentstead` says by itself: what this is, whether it runs, and the next step."""

import json
import os
from pathlib import Path

from agentstead.coordinator.places import home_path, state_file
from agentstead.coordinator.version import installed_version

_TEXT = """Agentstead {version}: a local-first home for agents' work, reached through MCP.

{next}

  agentstead install HOST   add the six servers to claude-desktop, claude-code, codex, cursor, vscode or zed
  agentstead up             serve them over HTTP as well
  agentstead demo           the whole idea in seconds, with no model and no key
  agentstead status         what runs, and where
  agentstead doctor         what is wrong, and the fix
  agentstead --help         every verb; `agentstead NOUN --help` for one noun"""


def overview() -> int:
    """Print the overview with the next step for this home."""
    print(_TEXT.format(version=installed_version(), next=_next(Path(home_path()))))
    return 0


def _next(home: Path) -> str:
    if not (home / "state.db").exists():
        return f"No home yet at {home}. Next: `agentstead install HOST`, then ask your agent to open a session."
    if Path(state_file(str(home))).exists() and (servers := _servers(home)):
        return f"Home: {home}. The coordinator serves {servers}. Next: `agentstead status`."
    return f"Home: {home}. Nothing runs; a host starts it when it needs it. Next: `agentstead session list`."


def _servers(home: Path) -> str:
    try:
        record = json.loads(Path(state_file(str(home))).read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    if not isinstance(record, dict) or not _is_alive(record.get("pid")):
        return ""
    return ", ".join(record.get("servers", ()))


def _is_alive(pid: object) -> bool:
    """Tell whether a process is there; what it is, `agentstead status` says."""
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
