"""The state library: one SQLite database, transaction functions, one journal, and what all servers need of it."""

from agentstead.state.canonical import canonical_json, sha256_hex
from agentstead.state.clock import Clock, SimulatedClock, SystemClock
from agentstead.state.crash import CRASH_POINTS, crash_point
from agentstead.state.database import DATABASE_FILE, State
from agentstead.state.errors import (
    AgentsteadError,
    Conflict,
    Denied,
    Exhausted,
    Invalid,
    LeaseLost,
    NotFound,
    PendingAnswer,
    Unavailable,
)
from agentstead.state.idempotency import KeyUse, is_used, once
from agentstead.state.ids import is_id, new_id
from agentstead.state.journal import Entry, Head, Verified
from agentstead.state.leases import Lease, lease_mint, lease_parse
from agentstead.state.lock import HomeLock
from agentstead.state.migrations import Migrations
from agentstead.state.outbox import Delivery, deliver_due
from agentstead.state.ports import ORIGIN, NoRedaction, Origin, Redactor, acting
from agentstead.state.refs import Look, References, RefFacts
from agentstead.state.repair import Quarantined, Repair, quarantined, refuse_quarantined, repair_all
from agentstead.state.transaction import Reading, Tx
from agentstead.state.versions import check_version

__all__ = [
    "CRASH_POINTS",
    "DATABASE_FILE",
    "ORIGIN",
    "AgentsteadError",
    "Clock",
    "Conflict",
    "Delivery",
    "Denied",
    "Entry",
    "Exhausted",
    "Head",
    "HomeLock",
    "Invalid",
    "KeyUse",
    "Lease",
    "LeaseLost",
    "Look",
    "Migrations",
    "NoRedaction",
    "NotFound",
    "Origin",
    "PendingAnswer",
    "Quarantined",
    "Reading",
    "Redactor",
    "RefFacts",
    "References",
    "Repair",
    "SimulatedClock",
    "State",
    "SystemClock",
    "Tx",
    "Unavailable",
    "Verified",
    "acting",
    "canonical_json",
    "check_version",
    "crash_point",
    "deliver_due",
    "is_id",
    "is_used",
    "lease_mint",
    "lease_parse",
    "new_id",
    "once",
    "quarantined",
    "refuse_quarantined",
    "repair_all",
    "sha256_hex",
]
