"""The hosts that `agentstead install` knows: their files on each system, and the shape of an entry."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

System = Literal["darwin", "linux", "win32"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides where a host keeps its files; tests make one for each system."""

    system: System
    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def this(cls) -> "Machine":
        """Describe the machine that this process runs on."""
        system: System = "win32" if sys.platform == "win32" else "darwin" if sys.platform == "darwin" else "linux"
        return cls(system, Path.home(), dict(os.environ))

    def folder(self, variable: str, *beneath_home: str) -> Path:
        """Name the folder of a variable, or one beneath the person's own folder where it is not set."""
        value = self.environ.get(variable, "")
        return Path(value) if value else self.home.joinpath(*beneath_home)

    def applications(self) -> Path:
        """Name the folder in which desktop programs keep their settings."""
        match self.system:
            case "darwin":
                return self.home / "Library" / "Application Support"
            case "win32":
                return self.folder("APPDATA", "AppData", "Roaming")
            case "linux":
                return self.folder("XDG_CONFIG_HOME", ".config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host program.

    `table` is the key under which its servers stand, `extra` what an entry has beside command, args and env.
    `client_names` are what the program calls itself when it connects, `then` is what makes it read the file again.
    """

    name: str
    title: str
    text: Literal["json", "jsonc", "toml"]
    table: str
    place: Callable[[Machine], Path]
    client_names: tuple[str, ...]
    then: str
    extra: Mapping[str, Any] = field(default_factory=dict)


def _claude_code(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR") / ".claude.json"


def _zed(machine: Machine) -> Path:
    if machine.system == "darwin":
        return machine.home / ".config" / "zed" / "settings.json"
    return machine.applications() / ("Zed" if machine.system == "win32" else "zed") / "settings.json"


HOSTS: Mapping[str, Host] = {
    host.name: host
    for host in (
        Host(
            name="claude-desktop",
            title="Claude Desktop",
            text="json",
            table="mcpServers",
            place=lambda machine: machine.applications() / "Claude" / "claude_desktop_config.json",
            client_names=("claude-ai",),
            then="Quit Claude Desktop and open it again.",
        ),
        Host(
            name="claude-code",
            title="Claude Code",
            text="json",
            table="mcpServers",
            place=_claude_code,
            client_names=("claude-code",),
            then=(
                "Start a new session; `/mcp` lists the servers. If they are missing, a session that was running has "
                "written the file over: close it, and run this again."
            ),
            extra={"type": "stdio"},
        ),
        Host(
            name="codex",
            title="Codex",
            text="toml",
            table="mcp_servers",
            place=lambda machine: machine.folder("CODEX_HOME", ".codex") / "config.toml",
            client_names=("codex-mcp-client",),
            then="Start a new session; `/mcp` lists the servers.",
            # The host gives up after 60 s, which is less than a person may take to answer a form.
            extra={"tool_timeout_sec": 150},
        ),
        Host(
            name="cursor",
            title="Cursor",
            text="json",
            table="mcpServers",
            place=lambda machine: machine.home / ".cursor" / "mcp.json",
            client_names=("cursor-vscode",),
            then="Open Cursor's settings, MCP, and switch the servers on.",
        ),
        Host(
            name="vscode",
            title="VS Code",
            text="jsonc",
            table="servers",
            place=lambda machine: machine.applications() / "Code" / "User" / "mcp.json",
            client_names=("Visual Studio Code",),
            then="Run `MCP: List Servers` and start them.",
            extra={"type": "stdio"},
        ),
        Host(
            name="zed",
            title="Zed",
            text="jsonc",
            table="context_servers",
            place=_zed,
            client_names=("Zed",),
            then="Open the agent panel's settings: the servers are listed there.",
        ),
    )
}
