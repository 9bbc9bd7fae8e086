"""Sends spans to an OTLP collector, in the background. Only where tracing is on is this imported.

A collector that is away, slow or wrong costs spans and nothing else: the queue is bounded, the process ends in time.
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
from shared.platform.tracing.traceparent import Place, read, write

_NAMESPACE = "mizan"
_STOP_PATIENCE_MS = 2000
_TELL_EVERY_S = 60.0


def exporting_provider(service: str, settings: TracingSettings) -> TracerProvider:
    """Make it in the process that uses it, after a fork. Its `shutdown` sends what is left, or gives up soon."""
    _tell_troubles_rarely()
    provider = TracerProvider(
        resource=Resource.create(
            {"service.name": f"{_NAMESPACE}-{service}", "service.namespace": _NAMESPACE}
        ),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint=settings.endpoint)
    provider.add_span_processor(_SoonOver(exporter, max_queue_size=settings.queue))
    return provider


class _SoonOver(BatchSpanProcessor):
    def shutdown(self) -> None:
        """The inherited one waits for half a minute, within which whoever stops us would kill us."""
        self._batch_processor.shutdown(timeout_millis=_STOP_PATIENCE_MS)


class NowAndThen(logging.Handler):
    """Hands a line on at most once a minute: a collector that is away is told of with every batch."""

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
            self.next_at = monotonic() + _TELL_EVERY_S
            record.held_back, self._held_back = self._held_back, 0
        logging.getLogger().handle(record)


def _tell_troubles_rarely() -> None:
    logger = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, NowAndThen) for handler in logger.handlers):
        logger.addHandler(NowAndThen())
        logger.propagate = False


_KINDS = {
    Kind.SERVER: SpanKind.SERVER,
    Kind.CLIENT: SpanKind.CLIENT,
    Kind.PRODUCER: SpanKind.PRODUCER,
    Kind.CONSUMER: SpanKind.CONSUMER,
}
_NOWHERE = Context()
_ERROR = Status(StatusCode.ERROR)


class OpenTelemetryRecorder:
    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("mizan")

    def begin(
        self, name: str, kind: Kind, parent: str | None, attributes: Attributes, began_ns: int | None
    ) -> "RecordedSpan":
        return RecordedSpan(
            self._tracer.start_span(
                name,
                context=_within(parent),
                kind=_KINDS[kind],
                attributes=attributes,
                start_time=began_ns,
                record_exception=False,
                set_status_on_exception=False,
            )
        )


class RecordedSpan:
    __slots__ = ("_span", "trace")

    def __init__(self, span: OpenTelemetrySpan) -> None:
        self._span = span
        made = span.get_span_context()
        self.trace = write(Place(made.trace_id, made.span_id, made.trace_flags))

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)

    def end(self, error: str | None = None) -> None:
        if error is not None:
            self._span.set_attribute("error.type", error)
            self._span.set_status(_ERROR)
        self._span.end()


def _within(parent: str | None) -> Context:
    place = None if parent is None else read(parent)
    if place is None:
        return _NOWHERE
    made = SpanContext(place.trace_id, place.span_id, is_remote=True, trace_flags=TraceFlags(place.flags))
    return set_span_in_context(NonRecordingSpan(made), _NOWHERE)
