"""Supervised processes: one argv in one directory, measured, bounded, and ended as a whole.

Isolation is stated as what it is here: none, with every fact that a canary would have to prove unknown.
"""

from agentstead.runner.command import ENFORCED_UNKNOWN, ISOLATION, Command, Exit, ExitReason, Limits, Stream
from agentstead.runner.environment import MARKER, environment
from agentstead.runner.runner import Runner, end_left_overs, runner_of
from agentstead.runner.sightings import Identity, identify, is_alive
from agentstead.state import Migrations

MIGRATIONS = Migrations(package="runner", anchor="agentstead.runner")

__all__ = [
    "ENFORCED_UNKNOWN",
    "ISOLATION",
    "MARKER",
    "MIGRATIONS",
    "Command",
    "Exit",
    "ExitReason",
    "Identity",
    "Limits",
    "Runner",
    "Stream",
    "end_left_overs",
    "environment",
    "identify",
    "is_alive",
    "runner_of",
]
