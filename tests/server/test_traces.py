"""A request belongs to its caller's trace: the log and the answer name it, and its steps are spans of it."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.datastructures import Headers

from tests.fakes import tone_engine
from tests.server.harness import LONG, RunningServer, serving
from tutti.server.spans import Spans, open_spans
from tutti.trace import parse_trace_id
from tutti.voices import Voices

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
UNSAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-00"}


@pytest.mark.parametrize(
    ("header", "is_valid"),
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"00-{TRACE}-{PARENT}-00", True),
        (f"cc-{TRACE}-{PARENT}-01", True),
        (f"cc-{TRACE}-{PARENT}-01-what-will-be", True),
        (f"00-{TRACE}-{PARENT}-01-more", False),
        (f"ff-{TRACE}-{PARENT}-01", False),
        (f"00-{TRACE.upper()}-{PARENT}-01", False),
        (f"00-{'0' * 32}-{PARENT}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE[1:]}-{PARENT}-01", False),
        (f"00-{TRACE}-{PARENT}", False),
        (f"00-{TRACE}-{PARENT}-01\n", False),
        ("", False),
    ],
)
def test_only_a_valid_header_names_a_trace(header: str, is_valid: bool) -> None:
    assert parse_trace_id(header) == (TRACE if is_valid else "")


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture(scope="module")
def server(voices: Voices, exporter: InMemorySpanExporter) -> Iterator[RunningServer]:
    """A real engine on the tone model, whose spans stay in memory."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tutti.server.app.open_spans", lambda _: Spans(provider))
            running = stack.enter_context(serving(tone_engine(voices), cache_mb=0))
        yield running


def spans_of(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    """The spans up to that of the request, which ends last."""
    while not any(span.name.startswith("POST") for span in exporter.get_finished_spans()):
        threading.Event().wait(0.005)
    spans = list(exporter.get_finished_spans())
    exporter.clear()
    return spans


@pytest.mark.server
@pytest.mark.parametrize("more", [{}, {"stream": False}], ids=["stream", "whole"])
def test_the_steps_of_a_request_are_spans_below_it(
    server: RunningServer, exporter: InMemorySpanExporter, more: dict[str, Any]
) -> None:
    exporter.clear()
    answer = server.post("/v1/audio/speech", {"input": LONG, **more}, headers=SAMPLED)
    assert (answer.status_code, answer.headers["x-trace-id"]) == (200, TRACE)
    *steps, request = spans_of(exporter)
    assert request.name == "POST /v1/audio/speech"
    assert request.parent is not None
    assert format(request.parent.span_id, "016x") == PARENT
    assert {span.name for span in steps} == {"g2p", "queue", "batch", "encode"}
    assert {span.attributes["stage"] for span in steps if span.name == "batch"} >= {"acoustic"}  # type: ignore[index]
    for span in steps:
        assert format(span.context.trace_id, "032x") == TRACE
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id
        assert request.start_time <= span.start_time <= span.end_time <= request.end_time  # type: ignore[operator]
    assert request.attributes["http.response.status_code"] == 200  # type: ignore[index]
    assert request.attributes["tutti.request_id"] == answer.headers["x-request-id"]  # type: ignore[index]
    assert "bridge" not in str([dict(span.attributes or {}) for span in (*steps, request)]), "never the text"


@pytest.mark.server
def test_a_request_without_a_trace_begins_one(server: RunningServer, exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    answer = server.speak()
    *_, request = spans_of(exporter)
    assert request.parent is None
    assert answer.headers["x-trace-id"] == format(request.context.trace_id, "032x")
    assert server.speak(input="").status_code == 400
    assert spans_of(exporter)[-1].attributes["http.response.status_code"] == 400  # type: ignore[index]


@pytest.mark.server
def test_a_trace_that_is_not_sampled_and_probes_have_no_spans(
    server: RunningServer, exporter: InMemorySpanExporter
) -> None:
    exporter.clear()
    for answer in (
        server.post("/v1/audio/speech", {"input": "deep water"}, headers=UNSAMPLED),
        server.get("/readyz", headers=SAMPLED),
    ):
        assert (answer.status_code, answer.headers["x-trace-id"]) == (200, TRACE)
    server.speak()
    spans = spans_of(exporter)
    assert TRACE not in {format(span.context.trace_id, "032x") for span in spans}


@pytest.mark.server
def test_the_log_names_the_trace_without_any_collector(voices: Voices, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tutti"), serving(tone_engine(voices), cache_mb=0) as server:
        answer = server.post("/v1/audio/speech", {"input": "deep water"}, headers=SAMPLED)
        assert answer.headers["x-trace-id"] == TRACE
        assert "x-trace-id" not in server.speak().headers
    lines = [record.getMessage() for record in caplog.records]
    for start in (f"request id={answer.headers['x-request-id']} ", f"chunk spoken id={answer.headers['x-stream-id']} "):
        (line,) = [line for line in lines if line.startswith(start)]
        assert line.endswith(f" trace={TRACE}")
    assert sum(line.endswith(" trace=-") for line in lines) == 2, "of the other request"


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector that keeps what it gets."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", received
        http.shutdown()
        thread.join()


@pytest.mark.server
def test_spans_reach_the_collector_that_the_standard_variables_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        spans = open_spans({"OTEL_EXPORTER_OTLP_ENDPOINT": url})
        span = spans.start(Headers(SAMPLED))
        span.trace.record_step("batch", 1.0, 2.0, rows=3)
        span.end("POST /tts", 503)
        spans.close()
    (resource,) = [resource for request in received for resource in request.resource_spans]
    names = {field.key: field.value.string_value for field in resource.resource.attributes}
    assert names["service.name"] == "tutti"
    exported = {span.name: span for scope in resource.scope_spans for span in scope.spans}
    assert exported.keys() == {"batch", "POST /tts"}
    assert exported["batch"].end_time_unix_nano - exported["batch"].start_time_unix_nano == 1_000_000_000
    assert exported["batch"].trace_id.hex() == TRACE


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_recorded_unless_it_is_wanted(environ: dict[str, str]) -> None:
    assert open_spans(environ)._provider is None


def test_a_missing_extra_is_named_and_the_server_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    spans = open_spans({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert spans.start(Headers(SAMPLED)).trace.id == TRACE
    assert "[otel]" in caplog.text
