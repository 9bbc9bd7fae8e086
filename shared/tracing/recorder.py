"""Records spans with opentelemetry. Only where tracing is on is this imported."""

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
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

from shared.tracing.spans import Attributes, Kind
from shared.tracing.traceparent import Place, read, write

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
