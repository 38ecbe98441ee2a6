"""Traces over OTLP/HTTP: a real coordinator exports to a real receiver on loopback, and only when it is asked to."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agentstead.telemetry import names
from tests.acceptance.doors import connected, serving, stop, trusting

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(180)]

TRACE = "0af7651916cd43dd8448eb211c80319c"
ASKER = trace.SpanContext(int(TRACE, 16), 0xB7AD6B7169203331, is_remote=True, trace_flags=trace.TraceFlags(1))


class Receiver:
    """What an OTLP collector was sent."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {}

    def spans(self) -> list[Any]:
        found = []
        for body in self.bodies.get("/v1/traces", []):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    found += list(scope.spans)
        return found

    def metrics(self) -> set[str]:
        found = set()
        for body in self.bodies.get("/v1/metrics", []):
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    found |= {metric.name for metric in scope.metrics}
        return found


@contextmanager
def receiving() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()

    class Post(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.bodies.setdefault(self.path, []).append(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Post)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


async def work(home: Path, project: Path, base: str) -> None:
    """Work as a client that is part of a trace, whether this process records spans of its own or not."""
    with trace.use_span(trace.NonRecordingSpan(ASKER)):
        async with connected("http", "2026-07-28", "sessions", home, base=base, cwd=project) as client:
            session = (await client.call_tool("session_open", {"workspace": str(project)})).structured_content
            await client.call_tool("task_save", {"workspace": str(project), "tasks": [{"title": "A"}]})
            assert session is not None
            packet = (await client.call_tool("task_claim", {"session_id": session["session_id"]})).structured_content
            assert packet is not None
            await client.call_tool("task_report", {"lease": packet["lease"], "state": "completed"})


async def test_one_call_is_one_trace_and_its_later_run_links_back(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    await trusting(home)
    with receiving() as (receiver, endpoint):
        with serving(home, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint) as base:
            await work(home, project, base)
        await asyncio.to_thread(stop, home)
        spans = receiver.spans()
        metrics = receiver.metrics()
    ours = [span for span in spans if span.trace_id.hex() == TRACE]
    servers = {span.name: span for span in ours if span.name.startswith("tools/call")}
    asker = servers["tools/call task_save"]
    below = [span for span in ours if span.parent_span_id == asker.span_id]
    assert names.DECISION in {span.name for span in below}
    assert names.TRANSACTION in {span.name for span in ours}
    (run,) = [span for span in spans if span.name == names.RUN]
    assert [link.span_id for link in run.links] == [asker.span_id]
    assert attributes(asker)[names.SERVER] == "sessions"
    assert attributes(asker)[names.TRANSPORT] == "tcp"
    assert names.OPERATION_DURATION in metrics


async def test_without_the_variable_nothing_is_sent(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    await trusting(home)
    with receiving() as (receiver, _), serving(home) as base:
        await work(home, project, base)
    assert receiver.bodies == {}
