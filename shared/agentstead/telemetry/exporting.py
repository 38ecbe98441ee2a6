"""The OpenTelemetry SDK with its OTLP/HTTP exporters; imported only once telemetry is wanted."""

from collections.abc import Callable

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def export(version: str) -> Callable[[], None]:
    """Install providers that export as the OTEL_* variables say; return what flushes and shuts them down."""
    resource = Resource.create({"service.name": "agentstead", "service.version": version})
    tracing = TracerProvider(resource=resource)
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    metering = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(metering)

    def stop() -> None:
        tracing.shutdown()
        metering.shutdown()

    return stop
