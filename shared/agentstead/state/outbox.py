"""Effects after a commit: each queued delivery runs at least once, under its delivery id."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentstead.state.crash import CRASH_POINTS, crash_point
from agentstead.state.transaction import Reading, Tx

if TYPE_CHECKING:
    from agentstead.state.database import State

CRASH_POINTS.declare("outbox.delivery")

ATTEMPTS = 8
FIRST_PAUSE_US = 1_000_000

_DUE = """
SELECT delivery_id, topic, payload, attempts
FROM outbox
WHERE state = 'pending'
    AND next_at <= :now
ORDER BY next_at, delivery_id
LIMIT 50
"""
_SENT = "UPDATE outbox SET state = 'sent', attempts = attempts + 1 WHERE delivery_id = :delivery_id"
_FAILED = """
UPDATE outbox
SET state = CASE WHEN attempts + 1 >= :most THEN 'failed' ELSE 'pending' END,
    attempts = attempts + 1,
    next_at = :next_at,
    error = :error
WHERE delivery_id = :delivery_id
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One effect to run; a receiver that saw `delivery_id` before does nothing again."""

    delivery_id: str
    topic: str
    payload: Mapping[str, Any]
    attempts: int


Deliver = Callable[[Delivery], Awaitable[None]]


async def deliver_due(state: "State", receivers: Mapping[str, Deliver]) -> int:
    """Run every delivery that is due and has a receiver; return how many succeeded."""
    sent = 0
    for delivery in await state.read(_due):
        receiver = receivers.get(delivery.topic)
        if receiver is not None:
            sent += await _deliver(state, receiver, delivery)
    return sent


async def _deliver(state: "State", receiver: Deliver, delivery: Delivery) -> bool:
    crash_point("outbox.delivery.before")
    try:
        await receiver(delivery)
    except Exception as error:
        await state.write(_note_failed, delivery, f"{type(error).__name__}: {error}")
        return False
    crash_point("outbox.delivery.after")
    await state.write(_note_sent, delivery)
    return True


def _due(reading: Reading) -> list[Delivery]:
    return [
        Delivery(row["delivery_id"], row["topic"], json.loads(row["payload"]), row["attempts"])
        for row in reading.all(_DUE, now=reading.now_us)
    ]


def _note_sent(tx: Tx, delivery: Delivery) -> None:
    tx.execute(_SENT, delivery_id=delivery.delivery_id)


def _note_failed(tx: Tx, delivery: Delivery, error: str) -> None:
    pause_us = FIRST_PAUSE_US * 2**delivery.attempts
    tx.execute(
        _FAILED,
        delivery_id=delivery.delivery_id,
        most=ATTEMPTS,
        next_at=tx.now_us + pause_us,
        error=tx.redact(error)[:500],
    )
