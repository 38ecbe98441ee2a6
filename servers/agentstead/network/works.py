"""Work inside of a container: opened by a directed message, moved by its two parties alone, closed once for good."""

import sqlite3
from dataclasses import dataclass
from typing import Any, cast

from agentstead.network.machines import TERMINAL, next_work_state, work_event
from agentstead.network.wire import Envelope, Refused
from agentstead.network.wire.grammar import Surface, WorkState
from agentstead.state import Reading, Tx

_COLUMNS = """
workspace, work_id, channel, surface, container_id, initiator, target, state, opened_seq, closed_seq, version
"""
_FIND = f"SELECT {_COLUMNS} FROM net_work WHERE workspace = :workspace AND work_id = :work_id"
_OPEN_OF_PEER = f"""
SELECT {_COLUMNS}
FROM net_work
WHERE workspace = :workspace
    AND channel = :channel
    AND closed_seq IS NULL
    AND (initiator = :peer_id OR target = :peer_id)
ORDER BY opened_seq
LIMIT :most
"""
_IN_CONTAINER = f"""
SELECT {_COLUMNS}
FROM net_work
WHERE workspace = :workspace
    AND channel = :channel
    AND container_id = :container_id
ORDER BY opened_seq DESC
LIMIT :most
"""
_INSERT = """
INSERT INTO net_work (
    workspace, work_id, channel, surface, container_id, initiator, target, state, opened_seq, closed_seq, version
)
VALUES (
    :workspace, :work_id, :channel, :surface, :container_id, :initiator, :target, 'submitted', :seq, NULL, 1
)
"""
_MOVE = """
UPDATE net_work
SET state = :state,
    closed_seq = :closed_seq,
    version = version + 1
WHERE workspace = :workspace
    AND work_id = :work_id
"""
_STEP = """
INSERT INTO net_work_step (seq, workspace, work_id, event, from_state, to_state, actor)
VALUES (:seq, :workspace, :work_id, :event, :from_state, :to_state, :actor)
"""
_STEPS = """
SELECT s.seq, m.message_id, m.accepted_at, s.event, s.from_state, s.to_state, s.actor
FROM net_work_step AS s
JOIN net_message AS m ON m.seq = s.seq
WHERE s.workspace = :workspace
    AND s.work_id = :work_id
    AND s.seq < :before
    AND s.seq > :after
ORDER BY s.seq DESC
LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work: what was fixed when it was opened, and its state."""

    workspace: str
    work_id: str
    channel: str
    surface: Surface
    container_id: str
    initiator: str
    target: str
    state: WorkState
    opened_seq: int
    closed_seq: int | None
    version: int

    def other_party(self, peer_id: str) -> str | None:
        """Return the counterparty of one of the two parties; None for anybody else."""
        return {self.initiator: self.target, self.target: self.initiator}.get(peer_id)


@dataclass(frozen=True, slots=True)
class Move:
    """What a message does to a work; `known` is None where it opens it."""

    known: Work | None
    event: str
    state: WorkState


def find_work(reading: Reading, workspace: str, work_id: str) -> Work | None:
    """Return a work of a workspace."""
    row = reading.one(_FIND, workspace=workspace, work_id=work_id)
    return None if row is None else _work(row)


def open_work(reading: Reading, workspace: str, channel: str, peer_id: str, *, most: int) -> list[Work]:
    """Return the open work that a peer is a party of, oldest first."""
    rows = reading.all(_OPEN_OF_PEER, workspace=workspace, channel=channel, peer_id=peer_id, most=most)
    return [_work(row) for row in rows]


def work_in(reading: Reading, workspace: str, channel: str, container_id: str, *, most: int) -> list[Work]:
    """Return the newest work of a thread or room, the last opened first."""
    at = {"workspace": workspace, "channel": channel, "container_id": container_id}
    return [_work(row) for row in reading.all(_IN_CONTAINER, **at, most=most)]


def work_steps(
    reading: Reading, workspace: str, work_id: str, *, before: int, after: int, most: int
) -> list[dict[str, Any]]:
    """Return the newest steps between two sequences, in order."""
    window = {"before": before, "after": after, "most": most}
    rows = reading.all(_STEPS, workspace=workspace, work_id=work_id, **window)
    return [dict(row) for row in reversed(rows)]


def judge(reading: Reading, envelope: Envelope) -> Move | None:
    """Return what a message does to the work it names, or None where it names none.

    Raises `Refused` in the protocol's order: unknown work, wrong container, closed, wrong actor, no such transition.
    """
    if envelope.work_id is None:
        return None
    work = find_work(reading, envelope.workspace_id, envelope.work_id)
    if work is None:
        return _opening(envelope)
    here = (envelope.channel, envelope.surface, envelope.container_id)
    if here != (work.channel, work.surface, work.container_id):
        raise Refused("work_container_mismatch", what="The work belongs to another container.", pointer="/work_id")
    if work.state not in TERMINAL:
        _check_actor(work, envelope)
    event = work_event(envelope, by_initiator=envelope.sender == work.initiator)
    return Move(work, event, next_work_state(work.state, event))


def apply(tx: Tx, envelope: Envelope, move: Move, seq: int) -> int:
    """Store a judged move with its step; return the work's version."""
    work, at = move.known, {"workspace": envelope.workspace_id, "work_id": envelope.work_id}
    if work is None:
        _insert(tx, envelope, seq)
    elif move.state != work.state:
        tx.execute(_MOVE, **at, state=move.state, closed_seq=seq if move.state in TERMINAL else None)
    before = work.state if work else ""
    tx.execute(_STEP, **at, seq=seq, event=move.event, from_state=before, to_state=move.state, actor=envelope.sender)
    if before != move.state:
        _tell(tx, envelope, move, before)
    return 1 if work is None else work.version + (move.state != work.state)


def _opening(envelope: Envelope) -> Move:
    if envelope.kind not in ("say", "capability"):
        raise Refused("not_found", "work_not_found", what="No work has that id.", pointer="/work_id")
    return Move(None, "opened", "submitted")


def _check_actor(work: Work, envelope: Envelope) -> None:
    other = work.other_party(envelope.sender)
    talks = envelope.kind in ("say", "capability")
    if other is None or (talks and envelope.to != other):
        raise Refused(
            "not_target",
            "work_actor_not_allowed",
            what="The sender is no party of this work, or does not address the other one.",
            pointer="/from" if other is None else "/to",
        )


def _insert(tx: Tx, envelope: Envelope, seq: int) -> None:
    tx.execute(
        _INSERT,
        workspace=envelope.workspace_id,
        work_id=envelope.work_id,
        channel=envelope.channel,
        surface=envelope.surface,
        container_id=envelope.container_id,
        initiator=envelope.sender,
        target=envelope.to,
        seq=seq,
    )


def _tell(tx: Tx, envelope: Envelope, move: Move, before: str) -> None:
    verb = "opened" if move.known is None else "closed" if move.state in TERMINAL else "moved"
    body = {"event": move.event, "from_state": before, "state": move.state, "actor": envelope.sender}
    tx.journal(f"network.work.{verb}", subject=envelope.work_id or "", workspace=envelope.workspace_id, body=body)


def _work(row: sqlite3.Row) -> Work:
    return Work(**cast("dict[str, Any]", dict(row)))
