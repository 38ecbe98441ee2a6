"""Where a call comes from, known to every handler of a connection."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Door = Literal["socket", "stdio", "http", "cli"]
Token = Literal["none", "home", "operator", "process"]

# What a shim hands over of its host's environment; nothing else of it is ever read.
ENVIRONMENT = ("AGENTSTEAD_WORKSPACE", "AGENTSTEAD_SESSION", "AGENTSTEAD_AGENT", "AGENTSTEAD_PROCESS")
# Whoever has one of these works for an agent; no form that it shows is a person's answer.
_OF_AGENTS = ("AGENTSTEAD_AGENT", "AGENTSTEAD_PROCESS")


@dataclass(frozen=True, slots=True)
class Caller:
    """One connection: its door, and what its client sent or we saw of it.

    `descends` tells that the client's process descends from one that the runner started.
    """

    door: Door
    cwd: Path | None = None
    pid: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    token: Token = "none"  # noqa: S105 - a kind of token, not one
    descends: bool = False

    @property
    def supervised(self) -> bool:
        """Tell whether an agent, and no person, is behind this connection."""
        marked = any(self.environ.get(name) for name in _OF_AGENTS)
        return self.descends or marked or self.token == "process"  # noqa: S105 - a kind of token


CALLER: ContextVar[Caller] = ContextVar("agentstead_caller")
