"""Instants: ISO 8601 on the outside, microseconds UTC inside."""

from datetime import UTC, datetime, timedelta

from agentstead.state import Invalid

DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def read_instant(text: str, *, what: str) -> int:
    """Return the microseconds of a date or time; without a zone it is UTC, a date is its first instant.

    Raises `Invalid` with `memory.invalid`.
    """
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        raise Invalid(
            "memory.invalid",
            f"{what} is {text[:40]!r}, which is no date or time.",
            remedy="Use ISO 8601: 2026-11-30 or 2026-11-30T17:00:00Z.",
        ) from None


def show_instant(at_us: int) -> str:
    """Return an instant as ISO 8601 in UTC, as short as it can be without loss."""
    moment = date_of(at_us)
    text = moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def show_or_none(at_us: int | None) -> str | None:
    """Return an instant as text, or None for no end."""
    return None if at_us is None else show_instant(at_us)


def date_of(at_us: int) -> datetime:
    """Return an instant as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at_us)


def age_days(at_us: int, now_us: int) -> float:
    """Return how many days ago an instant was, never less than 0."""
    return max(0, now_us - at_us) / DAY_US
