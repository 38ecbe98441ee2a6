"""Recording through OpenTelemetry's API."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from agentstead.telemetry import names
from agentstead.telemetry.spans import Attributes

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class Recorder:
    """Where spans and durations go while telemetry is on."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer(names.SCOPE)
        meter = metrics.get_meter(names.SCOPE)
        self._histograms = {
            name: meter.create_histogram(name, unit="s", explicit_bucket_boundaries_advisory=list(names.BUCKETS_S))
            for name in (names.OPERATION_DURATION, names.SESSION_DURATION)
        }

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[None]:
        """Run a block as a span; see `spans.span`."""
        with self._tracer.start_as_current_span(
            name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        ) as current:
            try:
                yield
            except BaseException as error:
                current.set_attribute(names.ERROR_TYPE, _kind(error))
                current.set_status(Status(StatusCode.ERROR))
                raise

    def describe(self, attributes: Attributes) -> None:
        """Add attributes to the current span."""
        trace.get_current_span().set_attributes(dict(attributes))

    def finished(
        self, name: str, attributes: Attributes, *, asked_by: str, start_us: int, end_us: int, failed: bool
    ) -> None:
        """Emit a span that is over; see `spans.finished`."""
        asker = _context(asked_by)
        links = [] if asker is None else [Link(asker)]
        done = self._tracer.start_span(name, attributes=dict(attributes), links=links, start_time=start_us * 1000)
        if failed:
            done.set_status(Status(StatusCode.ERROR))
        done.end(end_us * 1000)

    def record_seconds(self, name: str, seconds: float, attributes: Attributes) -> None:
        """Record one duration."""
        self._histograms[name].record(seconds, dict(attributes))


def current_traceparent() -> str:
    """Return the current span as a `traceparent`; empty without one."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _kind(error: BaseException) -> str:
    code = getattr(error, "code", None)
    return code if isinstance(code, str) else type(error).__name__


def _context(parent: str) -> SpanContext | None:
    found = _TRACEPARENT.fullmatch(parent)
    if found is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None
