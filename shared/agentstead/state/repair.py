"""Start-up repair: each entity on its own, so that one bad row never blocks the rest."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentstead.state.errors import Unavailable
from agentstead.state.transaction import Reading, Tx

if TYPE_CHECKING:
    from agentstead.state.database import State

_QUARANTINE = """
INSERT INTO quarantine (entity, ref, reason, at_us)
VALUES (:entity, :ref, :reason, :now)
ON CONFLICT (entity, ref) DO UPDATE SET reason = excluded.reason
"""
_RELEASE = "DELETE FROM quarantine WHERE entity = :entity AND ref = :ref"
_HELD = "SELECT entity, ref, reason, at_us FROM quarantine ORDER BY entity, ref"
_IS_HELD = "SELECT reason FROM quarantine WHERE entity = :entity AND ref = :ref"


@dataclass(frozen=True, slots=True)
class Repair:
    """How one table is mended at start-up.

    `select` yields the rows to look at with a column `ref`; `mend` checks one row and settles what a crash left. What
    it raises puts that row into quarantine.
    """

    entity: str
    select: str
    mend: Callable[[Tx, sqlite3.Row], None]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that could not be mended, and why."""

    entity: str
    ref: str
    reason: str
    at_us: int


async def repair_all(state: "State", repairs: Sequence[Repair]) -> list[Quarantined]:
    """Mend every row of every repair; return what stands in quarantine afterwards."""
    for repair in repairs:
        for row in await state.read(_rows, repair):
            try:
                await state.write(_mend, repair, row)
            except Exception as error:
                await state.write(_quarantine, repair.entity, row["ref"], f"{type(error).__name__}: {error}")
    return await state.read(quarantined)


def quarantined(reading: Reading) -> list[Quarantined]:
    """Return every row in quarantine."""
    return [Quarantined(*row) for row in reading.all(_HELD)]


def refuse_quarantined(reading: Reading, entity: str, ref: str) -> None:
    """Raise `Unavailable` with `home.quarantined` for a row that start-up set aside."""
    reason = reading.value(_IS_HELD, entity=entity, ref=ref)
    if reason is not None:
        raise Unavailable(
            "home.quarantined",
            f"{ref} was set aside at start-up: {reason}.",
            remedy="`agentstead doctor` shows what can be done.",
        )


def _rows(reading: Reading, repair: Repair) -> list[sqlite3.Row]:
    return reading.all(repair.select)


def _mend(tx: Tx, repair: Repair, row: sqlite3.Row) -> None:
    repair.mend(tx, row)
    tx.execute(_RELEASE, entity=repair.entity, ref=row["ref"])


def _quarantine(tx: Tx, entity: str, ref: str, reason: str) -> None:
    tx.execute(_QUARANTINE, entity=entity, ref=ref, reason=tx.redact(reason)[:500], now=tx.now_us)
    tx.journal("state.row.quarantined", subject=ref, body={"entity": entity, "reason": reason[:500]})
