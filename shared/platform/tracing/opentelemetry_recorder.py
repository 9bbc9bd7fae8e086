"""Sends spans to an OTLP collector in the background. Imported only if tracing is on.

A collector that is down, slow or broken costs spans and nothing else: the queue is bounded, and the process stops in
time.
"""

import logging
from threading import Lock
from time import monotonic

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as OpenTelemetrySpan

from shared.platform.settings import TracingSettings
from shared.platform.tracing.spans import Attributes, Kind
from shared.platform.tracing.traceparent import TraceContext, format_traceparent, parse_traceparent

_NAMESPACE = "mizan"
_SHUTDOWN_LIMIT_MS = 2000
_LOG_EVERY_S = 60.0
_KINDS = {
    Kind.SERVER: SpanKind.SERVER,
    Kind.CLIENT: SpanKind.CLIENT,
    Kind.PRODUCER: SpanKind.PRODUCER,
    Kind.CONSUMER: SpanKind.CONSUMER,
}
_NO_PARENT = Context()
_ERROR = Status(StatusCode.ERROR)


def create_provider(service: str, settings: TracingSettings) -> TracerProvider:
    """Create it after fork, in the process that uses it. Its `shutdown` sends the remaining spans, or gives up soon."""
    _limit_opentelemetry_logs()
    provider = TracerProvider(
        resource=Resource.create(
            {"service.name": f"{_NAMESPACE}-{service}", "service.namespace": _NAMESPACE}
        ),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint=settings.endpoint)
    provider.add_span_processor(_QuickShutdownProcessor(exporter, max_queue_size=settings.queue))
    return provider


class _QuickShutdownProcessor(BatchSpanProcessor):
    def shutdown(self) -> None:
        """Wait for two seconds at most. The inherited method waits for 30, and the process would be killed first."""
        self._batch_processor.shutdown(timeout_millis=_SHUTDOWN_LIMIT_MS)


class RateLimitedHandler(logging.Handler):
    """Passes on one line a minute: while the collector is down, OpenTelemetry logs an error for every batch."""

    def __init__(self) -> None:
        super().__init__()
        self._mutex = Lock()
        self.next_at = float("-inf")
        self._held_back = 0

    def emit(self, record: logging.LogRecord) -> None:
        with self._mutex:
            if monotonic() < self.next_at:
                self._held_back += 1
                return
            self.next_at = monotonic() + _LOG_EVERY_S
            record.held_back, self._held_back = self._held_back, 0
        logging.getLogger().handle(record)


def _limit_opentelemetry_logs() -> None:
    logger = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, RateLimitedHandler) for handler in logger.handlers):
        logger.addHandler(RateLimitedHandler())
        logger.propagate = False


class OpenTelemetryRecorder:
    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("mizan")

    def start_span(
        self, name: str, kind: Kind, parent: str | None, attributes: Attributes, started_ns: int | None
    ) -> "RecordedSpan":
        return RecordedSpan(
            self._tracer.start_span(
                name,
                context=_parent_context(parent),
                kind=_KINDS[kind],
                attributes=attributes,
                start_time=started_ns,
                record_exception=False,
                set_status_on_exception=False,
            )
        )


class RecordedSpan:
    __slots__ = ("_span", "trace")

    def __init__(self, span: OpenTelemetrySpan) -> None:
        self._span = span
        context = span.get_span_context()
        self.trace = format_traceparent(TraceContext(context.trace_id, context.span_id, context.trace_flags))

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def set_attributes(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)

    def end(self, error: str | None = None) -> None:
        if error is not None:
            self._span.set_attribute("error.type", error)
            self._span.set_status(_ERROR)
        self._span.end()


def _parent_context(parent: str | None) -> Context:
    found = None if parent is None else parse_traceparent(parent)
    if found is None:
        return _NO_PARENT
    context = SpanContext(found.trace_id, found.span_id, is_remote=True, trace_flags=TraceFlags(found.flags))
    return set_span_in_context(NonRecordingSpan(context), _NO_PARENT)
