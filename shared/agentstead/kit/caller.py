"""Where a call comes from, known to every handler of a connection."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Door = Literal["socket", "stdio", "http", "cli"]
Token = Literal["none", "home", "operator", "process"]

# What a shim hands over of its host's environment; nothing else of it is ever read.
ENVIRONMENT = ("AGENTSTEAD_WORKSPACE", "AGENTSTEAD_SESSION", "AGENTSTEAD_AGENT")


@dataclass(frozen=True, slots=True)
class Caller:
    """One connection: its door, and what its client sent or we saw of it."""

    door: Door
    cwd: Path | None = None
    pid: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    token: Token = "none"  # noqa: S105 - a kind of token, not one


CALLER: ContextVar[Caller] = ContextVar("agentstead_caller")
