"""One tool call as a trace: server span, decision, transaction; work of later calls links back to the asker."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import Implementation
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentstead import telemetry
from agentstead.kit import CALLER, Caller, Home
from agentstead.kit.changes import ChangeHub
from agentstead.kit.mcp_server import build
from agentstead.state import Reading
from agentstead.telemetry import names

pytestmark = pytest.mark.anyio

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
ASKER = trace.SpanContext(int(TRACE, 16), 0xB7AD6B7169203331, is_remote=True, trace_flags=trace.TraceFlags(1))
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture(scope="session")
def providers() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """OpenTelemetry's providers can be set once a process."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(MeterProvider([reader]))
    return exporter, reader


@pytest.fixture
def spans(providers: tuple[InMemorySpanExporter, InMemoryMetricReader]) -> Iterator[InMemorySpanExporter]:
    exporter, _ = providers
    exporter.clear()
    telemetry.switch(on=True)
    yield exporter
    telemetry.switch(on=False)


async def call(home: Home, server: str, tool: str, arguments: dict[str, Any], cwd: Path, *, fails: bool = False) -> Any:
    (declaration,) = [each for each in home.servers if each.name == server]
    CALLER.set(Caller(door="socket", cwd=cwd))
    client = Client(
        build(declaration, home, hub=ChangeHub(home.servers), toolset="full"),
        mode="legacy",
        client_info=Implementation(name="tester", version="1"),
    )
    async with client:
        with trace.use_span(trace.NonRecordingSpan(ASKER)):
            answer = await client.call_tool(tool, arguments)
    assert answer.is_error is fails, answer.content
    return answer.structured_content


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


async def test_a_call_with_a_traceparent_shows_server_decision_and_transaction(
    home: Home, project: Path, spans: InMemorySpanExporter
) -> None:
    await call(home, "sessions", "session_open", {"name": "a"}, project)
    (server,) = [
        span
        for span in spans.get_finished_spans()
        if span.name == "tools/call session_open" and span.kind == trace.SpanKind.SERVER
    ]
    ours = [span for span in spans.get_finished_spans() if span.context.trace_id == server.context.trace_id]
    assert f"{server.context.trace_id:032x}" == TRACE
    (decision,) = [span for span in ours if span.name == names.DECISION]
    transactions = [span for span in ours if span.name == names.TRANSACTION]
    assert decision.parent is not None
    assert decision.parent.span_id == server.context.span_id
    assert facts(decision)[names.VERDICT] == "allow"
    assert facts(decision)[names.ACTION] == "sessions.session_open"
    assert "_open" in {facts(span)[names.FUNCTION] for span in transactions}
    assert facts(server)[names.TRANSPORT] == "pipe"
    assert facts(server)[names.SERVER] == "sessions"


async def test_the_journal_keeps_the_trace(home: Home, project: Path, spans: InMemorySpanExporter) -> None:
    await call(home, "sessions", "session_open", {"name": "a"}, project)
    entries = await home.state.read(Reading.entries, 0, kinds=("sessions.session.opened",))
    assert [entry.trace_id for entry in entries] == [TRACE]


async def test_a_finished_run_links_back_to_the_call_that_asked_for_it(
    home: Home, project: Path, spans: InMemorySpanExporter
) -> None:
    session = (await call(home, "sessions", "session_open", {}, project))["session_id"]
    spans.clear()
    await call(home, "sessions", "task_save", {"tasks": [{"title": "A"}]}, project)
    (asker,) = [each for each in named(spans, "tools/call task_save") if each.kind == trace.SpanKind.SERVER]
    packet = await call(home, "sessions", "task_claim", {"session_id": session}, project)
    await call(home, "sessions", "task_report", {"lease": packet["lease"], "state": "completed"}, project)
    (run,) = named(spans, names.RUN)
    (link,) = run.links
    assert link.context.span_id == asker.context.span_id
    assert facts(run)[names.RUN_ID] == packet["run_id"]
    assert facts(run)[names.RUN_STATE] == "completed"
    assert (run.end_time or 0) >= (run.start_time or 1)


async def test_an_error_marks_the_span_with_its_code_and_no_text(
    home: Home, project: Path, spans: InMemorySpanExporter
) -> None:
    await call(home, "sessions", "task_get", {"task_id": f"tsk_{SECRET}"[:40]}, project, fails=True)
    report = {"lease": SECRET, "state": "completed", "summary": SECRET}
    await call(home, "sessions", "task_report", report, project, fails=True)
    told = [
        (span.name, facts(span), [event.attributes for event in span.events]) for span in spans.get_finished_spans()
    ]
    assert SECRET not in repr(told)
    assert any(attributes.get("error.type") == "run.lease_lost" for _, attributes, _ in told)


async def test_durations_are_measured_under_the_names_of_the_conventions(
    home: Home,
    project: Path,
    spans: InMemorySpanExporter,
    providers: tuple[InMemorySpanExporter, InMemoryMetricReader],
) -> None:
    await call(home, "sessions", "session_find", {}, project)
    data: Any = providers[1].get_metrics_data()
    points: list[Any] = [
        point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "mcp.server.operation.duration"
        for point in metric.data.data_points
    ]
    mine = [point for point in points if point.attributes.get("gen_ai.tool.name") == "session_find"]
    assert mine
    assert mine[0].attributes["mcp.method.name"] == "tools/call"
    assert mine[0].count >= 1


async def test_while_telemetry_is_off_nothing_is_recorded(
    home: Home, project: Path, spans: InMemorySpanExporter
) -> None:
    telemetry.switch(on=False)
    await call(home, "sessions", "session_open", {}, project)
    assert not named(spans, names.DECISION)
    assert not named(spans, names.TRANSACTION)


@pytest.mark.parametrize("text", ["", "x", "00-zz-yy-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "a-b-c-d-e"])
def test_a_damaged_traceparent_gives_no_link(text: str, spans: InMemorySpanExporter) -> None:
    telemetry.finished("x", {}, asked_by=text, start_us=1, end_us=2, failed=True)
    (span,) = named(spans, "x")
    assert span.links == ()
    assert not span.status.is_ok


def test_the_trace_id_of_a_traceparent() -> None:
    assert telemetry.trace_id_of(PARENT) == TRACE
    assert telemetry.trace_id_of("") == ""


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
    ],
)
def test_export_starts_only_where_a_variable_asks_for_it(environ: dict[str, str], wanted: bool) -> None:
    assert telemetry.is_wanted(environ) is wanted


def test_nothing_of_opentelemetry_is_imported_unless_it_is_wanted() -> None:
    code = (
        "import sys; from agentstead import telemetry\n"
        "telemetry.start(version='0', environ={})()\n"
        "with telemetry.span('x'): telemetry.describe({'a': 1})\n"
        "assert telemetry.traceparent() == ''\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"
