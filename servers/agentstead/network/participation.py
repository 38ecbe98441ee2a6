"""How a session takes part: Live in one channel with seven finite bounds, resolved once, never changed."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from agentstead.network.machines import Mode, ParticipationSource
from agentstead.network.peers import Place
from agentstead.state import Conflict, Invalid, Reading, Tx, canonical_json, sha256_hex

VERSION: Final = "network-participation/v1"

_FIND = """
SELECT mode, snapshot
FROM net_participation
WHERE owner_kind = :owner_kind
    AND owner_id = :owner_id
"""
_INSERT = """
INSERT INTO net_participation (owner_kind, owner_id, mode, snapshot, sha256, source, created_at)
VALUES (:owner_kind, :owner_id, :mode, :snapshot, :sha256, :source, :now)
"""


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit: its default and the range that a request may choose from; times are seconds."""

    default: float
    least: float
    ceiling: float


BOUNDS: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        "max_wakes": Bound(8, 1, 64),
        "max_wake_wall_time": Bound(300, 0.001, 900),
        "max_total_wall_time": Bound(1800, 0.001, 7200),
        "max_input_tokens": Bound(200_000, 1, 1_000_000),
        "max_output_tokens": Bound(50_000, 1, 200_000),
        "max_wake_depth": Bound(3, 1, 5),
        "coalesce_window": Bound(0.5, 0.1, 5),
    }
)
_COUNTS: Final = frozenset({"max_wakes", "max_input_tokens", "max_output_tokens", "max_wake_depth"})


@dataclass(frozen=True, slots=True)
class Participation:
    """The resolved snapshot of one owner."""

    mode: Mode
    channel: str
    bounds: Mapping[str, float]


def resolve_bounds(asked: Mapping[str, float]) -> dict[str, float]:
    """Return all seven bounds, the asked ones in place of defaults.

    Raises `Invalid`: `network.bounds_invalid` for an unknown, fractional, zero or negative one or a wake longer than
    the total, `network.bounds_exceed_ceiling` with the allowed values.
    """
    unknown = sorted(set(asked) - set(BOUNDS))
    if unknown:
        raise _invalid(f"There is no bound {unknown[0][:40]!r}.")
    for name, value in asked.items():
        _check(name, value)
    bounds = {name: asked.get(name, bound.default) for name, bound in BOUNDS.items()}
    if bounds["max_wake_wall_time"] > bounds["max_total_wall_time"]:
        raise _invalid("max_wake_wall_time is longer than max_total_wall_time.")
    return {name: int(value) if value == int(value) else value for name, value in bounds.items()}


def find_participation(reading: Reading, owner_kind: str, owner_id: str) -> Participation | None:
    """Return what was resolved for an owner."""
    row = reading.one(_FIND, owner_kind=owner_kind, owner_id=owner_id)
    return None if row is None else _of(row)


def resolve(
    tx: Tx,
    place: Place,
    *,
    session_id: str,
    asked: Mapping[str, float] | None,
    source: ParticipationSource = "explicit_request",
) -> Participation:
    """Return a session's participation, deciding it at the first call.

    Raises `Conflict` with `network.participation_fixed` where it was decided otherwise.
    """
    known = find_participation(tx, "session", session_id)
    bounds = resolve_bounds(asked or {})
    if known is None:
        return _decide(tx, place, session_id, bounds, source)
    if known.channel != place.channel or (asked is not None and bounds != known.bounds):
        raise Conflict(
            "network.participation_fixed",
            f"Session {session_id} takes part in channel {known.channel!r} with bounds that were fixed when it joined.",
            remedy="Leave participation out, or open another session for another channel.",
            details={"channel": known.channel, "bounds": dict(known.bounds)},
        )
    return known


def _decide(
    tx: Tx, place: Place, session_id: str, bounds: Mapping[str, float], source: ParticipationSource
) -> Participation:
    snapshot = {
        "version": VERSION,
        "mode": "live",
        "workspace_id": place.workspace,
        "channel_strategy": "named",
        "channel_id": place.channel,
        "source": source,
        "bounds": dict(bounds),
    }
    text = canonical_json(snapshot)
    digest = sha256_hex(text)
    tx.execute(
        _INSERT,
        owner_kind="session",
        owner_id=session_id,
        mode="live",
        snapshot=text.decode(),
        sha256=digest,
        source=source,
        now=tx.now_us,
    )
    body = {"mode": "live", "channel": place.channel, "source": source, "sha256": digest}
    tx.journal("network.participation.resolved", subject=session_id, workspace=place.workspace, body=body)
    return Participation("live", place.channel, bounds)


def _check(name: str, value: float) -> None:
    bound = BOUNDS[name]
    if value > bound.ceiling or (name == "coalesce_window" and 0 < value < bound.least):
        allowed = {each: limit.ceiling for each, limit in BOUNDS.items()}
        raise Invalid(
            "network.bounds_exceed_ceiling",
            f"{name}={value:g} is outside of {bound.least:g} to {bound.ceiling:g}.",
            remedy=f"Ask for at most {bound.ceiling:g}.",
            details={"allowed": allowed},
        )
    # Written so that NaN, which is below nothing, is refused too.
    if not value >= bound.least or (name in _COUNTS and value % 1):
        raise _invalid(f"{name}={value:g} is no positive {'count' if name in _COUNTS else 'time'}.")


def _invalid(what: str) -> Invalid:
    return Invalid(
        "network.bounds_invalid",
        what,
        remedy="Every bound is finite and greater than zero; zero never means unlimited.",
        details={"bounds": {name: [bound.least, bound.ceiling] for name, bound in BOUNDS.items()}},
    )


def _of(row: sqlite3.Row) -> Participation:
    snapshot: dict[str, Any] = json.loads(row["snapshot"])
    return Participation(row["mode"], snapshot["channel_id"], snapshot["bounds"])
