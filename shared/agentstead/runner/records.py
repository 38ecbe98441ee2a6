"""The rows of processes: written before a program can run, so that a restart ends what was left over and only that."""

import json
import os
import sqlite3
from dataclasses import dataclass
from typing import Final

from agentstead.runner.command import ENFORCED_UNKNOWN, ISOLATION, Command, Exit
from agentstead.runner.sightings import Identity, identify
from agentstead.state import Reading, Tx, canonical_json, sha256_hex

_RESERVE: Final = """
INSERT INTO processes (
    id, owner, state, argv_digest, isolation, enforced, limits, started_at, supervisor_pid, supervisor_ticks,
    supervisor_boot
)
VALUES (
    :id, :owner, 'reserved', :argv_digest, :isolation, :enforced, :limits, :now, :supervisor_pid, :supervisor_ticks,
    :supervisor_boot
)
"""
_STARTED: Final = """
UPDATE processes
SET state = 'running', pid = :pid, start_ticks = :start_ticks, boot_id = :boot_id
WHERE id = :id AND state = 'reserved'
"""
_ENDED: Final = """
UPDATE processes
SET state = :state, reason = :reason, exit = :exit, ended_at = :now
WHERE id = :id AND state IN ('reserved', 'running', 'stopping')
"""
_OPEN: Final = """
SELECT id, owner, pid, start_ticks, boot_id, supervisor_pid, supervisor_ticks, supervisor_boot
FROM processes
WHERE state IN ('reserved', 'running', 'stopping')
ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class OpenProcess:
    """A process that was never recorded as ended, and the process of ours that watches it.

    `identity.pid` is 0 where a crash came before it was known.
    """

    id: str
    owner: str
    identity: Identity
    supervisor: Identity


def reserve(tx: Tx, command: Command, owner: str) -> str:
    """Record that a process is about to be started; return its id."""
    process_id = tx.new_id("prc_")
    limits = {name: getattr(command.limits, name) for name in command.limits.__slots__}
    digest = sha256_hex(canonical_json(list(command.argv)))
    supervisor = identify(os.getpid())
    tx.execute(
        _RESERVE,
        id=process_id,
        owner=owner,
        argv_digest=digest,
        isolation=ISOLATION,
        enforced=json.dumps(dict(ENFORCED_UNKNOWN)),
        limits=json.dumps(limits),
        now=tx.now_us,
        supervisor_pid=supervisor.pid,
        supervisor_ticks=supervisor.start_ticks,
        supervisor_boot=supervisor.boot_id,
    )
    tx.journal("runner.process.reserved", subject=process_id, body={"owner": owner, "argv_digest": digest})
    return process_id


def started(tx: Tx, process_id: str, identity: Identity) -> None:
    """Record which process it is."""
    tx.execute(_STARTED, id=process_id, pid=identity.pid, start_ticks=identity.start_ticks, boot_id=identity.boot_id)
    tx.journal("runner.process.started", subject=process_id, body={"pid": identity.pid})


def refused(tx: Tx, process_id: str) -> None:
    """Record that the system did not start it."""
    tx.execute(_ENDED, id=process_id, state="start_failed", reason="", exit="", now=tx.now_us)
    tx.journal("runner.process.refused", subject=process_id, body={})


def ended(tx: Tx, result: Exit) -> None:
    """Record how it ended."""
    facts = {
        "exit_code": result.exit_code,
        "signal": result.signal,
        "wall_us": result.wall_us,
        "cpu_user_us": result.cpu_user_us,
        "cpu_system_us": result.cpu_system_us,
        "peak_rss_bytes": result.peak_rss_bytes,
        "orphans_killed": result.orphans_killed,
        "usage_complete": result.usage_complete,
    }
    tx.execute(
        _ENDED, id=result.process_id, state="exited", reason=result.reason, exit=json.dumps(facts), now=tx.now_us
    )
    tx.journal("runner.process.exited", subject=result.process_id, body={"reason": result.reason, **facts})


def lost(tx: Tx, process_id: str, *, killed: int) -> None:
    """Record that its supervisor died; `killed` processes of it were still alive."""
    tx.execute(_ENDED, id=process_id, state="lost", reason="parent_lost", exit="", now=tx.now_us)
    tx.journal("runner.process.lost", subject=process_id, body={"killed": killed})


def open_processes(reading: Reading) -> list[OpenProcess]:
    """Return every process that was not recorded as ended."""
    return [_open(row) for row in reading.all(_OPEN)]


def _open(row: sqlite3.Row) -> OpenProcess:
    watched = Identity(row["pid"], row["start_ticks"], row["boot_id"])
    watcher = Identity(row["supervisor_pid"], row["supervisor_ticks"], row["supervisor_boot"])
    return OpenProcess(row["id"], row["owner"], watched, watcher)
