"""The spans of requests, for OpenTelemetry. Off unless the standard variables OTEL_EXPORTER_OTLP_… name a collector."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutti import __version__
from tutti.errors import install_hint
from tutti.trace import NO_TRACE, Trace, parse_trace_id

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
WALL_NS = time.time_ns() - time.monotonic_ns()  # spans have wall-clock times, all of tutti the monotonic clock
log = logging.getLogger("tutti.server")


class RequestSpan:
    """One request: its trace, and the span around all others. Without a collector the trace is only an id."""

    def __init__(self, trace: Trace, span: "Span | None" = None) -> None:
        self.trace = trace
        self._span = span

    def end(self, name: str, status: int, **attributes: str | int) -> None:
        if self._span is None:
            return
        from opentelemetry.trace import StatusCode

        self._span.update_name(name)
        self._span.set_attributes({"http.response.status_code": status, **attributes})
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


@dataclass(frozen=True, slots=True)
class RecordedTrace(Trace):
    """A trace whose spans go to the collector, below the span of the request."""

    tracer: "Tracer | None" = None
    parent: "Context | None" = None

    def record_step(self, name: str, start_s: float, end_s: float, **attributes: str | int) -> None:
        assert self.tracer is not None
        span = self.tracer.start_span(name, self.parent, start_time=_wall_ns(start_s), attributes=attributes)
        span.end(_wall_ns(end_s))


class Spans:
    """Takes over the trace of each request, and exports its spans if there is a provider."""

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        self._provider = provider

    def start(self, headers: Mapping[str, str], *, is_recorded: bool = True) -> RequestSpan:
        """Begin the span of a request, below that of the caller if it names one; else only take over the trace id."""
        trace_id = parse_trace_id(headers.get("traceparent", ""))
        if self._provider is None or not is_recorded:
            return RequestSpan(Trace(trace_id) if trace_id else NO_TRACE)
        from opentelemetry.trace import SpanKind, format_trace_id, set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {name: headers[name] for name in ("traceparent", "tracestate") if trace_id and name in headers}
        parent = TraceContextTextMapPropagator().extract(carrier)
        tracer = self._provider.get_tracer("tutti", __version__)
        span = tracer.start_span("request", parent, kind=SpanKind.SERVER)
        trace_id = format_trace_id(span.get_span_context().trace_id)
        if not span.is_recording():  # the caller, or the sampler, does not want it
            return RequestSpan(Trace(trace_id))
        return RequestSpan(RecordedTrace(trace_id, tracer, set_span_in_context(span)), span)

    def close(self) -> None:
        """Send what is left."""
        if self._provider is not None:
            self._provider.shutdown()


def is_exporting(environ: Mapping[str, str]) -> bool:
    """Whether the standard variables of OpenTelemetry name a collector."""
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    return not is_off and any(environ.get(name) for name in ENDPOINTS)


def open_spans(environ: Mapping[str, str]) -> Spans:
    """Return what the standard variables of OpenTelemetry ask for."""
    if not is_exporting(environ):
        return Spans()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("OTEL_EXPORTER_OTLP_… is set, but spans need an extra: %s", install_hint("otel"))
        return Spans()
    fields: dict[str, Any] = {"service.version": __version__}
    if "OTEL_SERVICE_NAME" not in environ:
        fields["service.name"] = "tutti"
    provider = TracerProvider(resource=Resource.create(fields))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)


def _wall_ns(monotonic_s: float) -> int:
    return WALL_NS + round(1e9 * monotonic_s)
