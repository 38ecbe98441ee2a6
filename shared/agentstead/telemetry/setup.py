"""Switching telemetry on, only where the standard OTLP variables ask for it; nothing is imported otherwise."""

import os
from collections.abc import Callable, Mapping

from agentstead.telemetry import spans

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
OFF = "OTEL_SDK_DISABLED"

Stop = Callable[[], None]


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Tell whether the environment names an OTLP endpoint and does not switch the SDK off."""
    return any(environ.get(name) for name in ENDPOINTS) and environ.get(OFF, "").lower() != "true"


def start(*, version: str, environ: Mapping[str, str] | None = None) -> Stop:
    """Export spans and metrics over OTLP/HTTP where that is wanted; return what sends the rest and stops.

    Without a wanted endpoint, nothing is imported and nothing leaves the machine.
    """
    if not is_wanted(os.environ if environ is None else environ):
        return _nothing
    from agentstead.telemetry.exporting import export

    stop = export(version)
    spans.switch(on=True)

    def end() -> None:
        spans.switch(on=False)
        stop()

    return end


def _nothing() -> None:
    return None
