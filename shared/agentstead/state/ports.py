"""What the state library asks of others: a redactor, and who acts."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol


class Redactor(Protocol):
    """Take secrets out of text before it is stored."""

    def text(self, text: str) -> str:
        """Return `text` with every secret replaced by a mark."""
        ...


class NoRedaction:
    """Leave text as it is; for libraries and tests without secrets."""

    def text(self, text: str) -> str:
        """Return `text`."""
        return text


@dataclass(frozen=True, slots=True)
class Origin:
    """Who causes a change (`user`, `host:<name>`, `session:<id>` ...), and the W3C `traceparent` of the call."""

    principal: str = "coordinator"
    traceparent: str = ""

    @property
    def trace_id(self) -> str:
        """Return the trace id, 32 hex digits; empty without a trace."""
        parts = self.traceparent.split("-")
        return parts[1] if len(parts) == 4 else ""


ORIGIN: ContextVar[Origin] = ContextVar("agentstead_origin", default=Origin())  # noqa: B039 - frozen


def redact_value(redactor: Redactor, value: Any) -> Any:
    """Return a JSON value with every string in it, keys too, redacted."""
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, dict):
        return {redactor.text(str(key)): redact_value(redactor, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(redactor, item) for item in value]
    return value


@contextmanager
def acting(principal: str, traceparent: str = "") -> Iterator[None]:
    """Let a block's changes name this principal, and this trace or else the one that holds already."""
    token = ORIGIN.set(Origin(principal, traceparent or ORIGIN.get().traceparent))
    try:
        yield
    finally:
        ORIGIN.reset(token)
