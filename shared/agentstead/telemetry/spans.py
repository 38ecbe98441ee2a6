"""Spans, links and durations; free while telemetry is off: OpenTelemetry is imported only once it is on.

Attributes hold names, states and codes, never an argument's value.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentstead.telemetry.recorder import Recorder

Attributes = Mapping[str, str | int | float | bool | Sequence[str]]


@dataclass(slots=True)
class _Switch:
    recorder: "Recorder | None" = None


_SWITCH = _Switch()


def is_on() -> bool:
    """Tell whether spans and metrics go anywhere."""
    return _SWITCH.recorder is not None


def switch(*, on: bool) -> None:
    """Turn telemetry on once providers are installed, or off."""
    if not on:
        _SWITCH.recorder = None
        return
    from agentstead.telemetry.recorder import Recorder

    _SWITCH.recorder = Recorder()


def span(name: str, attributes: Attributes | None = None) -> AbstractContextManager[None]:
    """Run a block as a span below the current one; an error marks it with its class or our code, never its text."""
    recorder = _SWITCH.recorder
    return nullcontext() if recorder is None else recorder.span(name, attributes or {})


def describe(attributes: Attributes) -> None:
    """Add attributes to the current span."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.describe(attributes)


def finished(name: str, attributes: Attributes, *, asked_by: str, start_us: int, end_us: int, failed: bool) -> None:
    """Emit a span of work that ran in the background, linked to the call that asked for it (a `traceparent`)."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.finished(name, attributes, asked_by=asked_by, start_us=start_us, end_us=end_us, failed=failed)


def record_seconds(name: str, seconds: float, attributes: Attributes) -> None:
    """Record one duration in a histogram of the conventions."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.record_seconds(name, seconds, attributes)


def traceparent() -> str:
    """Return the current span as a W3C `traceparent`; empty without one, or where nobody traces."""
    if "opentelemetry.trace" not in sys.modules:
        return ""
    from agentstead.telemetry.recorder import current_traceparent

    return current_traceparent()


def trace_id_of(parent: str) -> str:
    """Return the trace id of a `traceparent`; empty for anything else."""
    parts = parent.split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else ""
