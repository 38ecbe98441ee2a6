"""OpenTelemetry: one place for names, spans, links and durations; nothing is imported or sent unless asked for."""

from agentstead.telemetry import names
from agentstead.telemetry.setup import is_wanted, start
from agentstead.telemetry.spans import (
    Attributes,
    describe,
    finished,
    is_on,
    record_seconds,
    span,
    switch,
    trace_id_of,
    traceparent,
)

__all__ = [
    "Attributes",
    "describe",
    "finished",
    "is_on",
    "is_wanted",
    "names",
    "record_seconds",
    "span",
    "start",
    "switch",
    "trace_id_of",
    "traceparent",
]
