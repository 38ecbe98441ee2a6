"""Whether a session is open, asked of whoever owns sessions; where nobody does, only time ends an activation."""

from typing import Final

from agentstead.skills.activations import Activation, EndReason, end, end_of_session, end_over, sessions_in_use
from agentstead.state import NotFound, Reading, References, Tx

OPEN: Final = "open"


def is_open(reading: Reading, refs: References, session_id: str) -> bool:
    """Say whether a session goes on; one of an unknown kind does."""
    try:
        facts = refs.look(reading, session_id)
    except NotFound:
        return True
    return facts.exists and facts.state == OPEN


def require_open(reading: Reading, refs: References, session_id: str) -> None:
    """Raise NotFound (``session.not_found``) for a session that is not known or not open."""
    if session_id and not is_open(reading, refs, session_id):
        raise NotFound(
            "session.not_found",
            f"No open session {session_id[:40]!r} is known.",
            remedy="Use an id that session_open returned, or leave session_id out.",
        )


def is_over(reading: Reading, refs: References, activation: Activation) -> bool:
    """Say whether a live activation's session or time is over."""
    return _why_over(reading, refs, activation) is not None


def settle(tx: Tx, refs: References, activation: Activation) -> Activation:
    """End an activation whose session or time is over; return it as it is then."""
    reason = _why_over(tx, refs, activation)
    return end(tx, activation.id, reason) if reason else activation


def sweep(tx: Tx, refs: References) -> int:
    """End every activation whose session or time is over; return how many."""
    closed = [session_id for session_id in sessions_in_use(tx) if not is_open(tx, refs, session_id)]
    return end_over(tx) + sum(end_of_session(tx, session_id) for session_id in closed)


def _why_over(reading: Reading, refs: References, activation: Activation) -> EndReason | None:
    if activation.session_id and not is_open(reading, refs, activation.session_id):
        return "session_closed"
    return "expired" if activation.expires_at <= reading.now_us else None
