"""Records spans in memory, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler

from shared.platform.tracing.opentelemetry_recorder import OpenTelemetryRecorder
from shared.platform.tracing.spans import set_recorder
from tests.waiting import eventually


class RecordedSpans:
    """All spans of this process that have ended."""

    def __init__(self, exporter: InMemorySpanExporter, recorder: OpenTelemetryRecorder) -> None:
        self._exporter = exporter
        self._recorder = recorder

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Turn tracing off within this context."""
        set_recorder(None)
        yield
        set_recorder(self._recorder)

    def all(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans with this name, by start time."""
        return [span for span in self.all() if span.name == name]

    def wait_for(self, name: str, count: int = 1) -> list[ReadableSpan]:
        eventually(lambda: len(self.named(name)) >= count)
        return self.named(name)

    def chain(self, span: ReadableSpan, since: ReadableSpan | None = None) -> list[str]:
        """Return the names from `since`, or from the root of the trace, down to this span."""
        names = [span.name]
        while span.parent is not None and span is not since:
            span = self._find(span.parent.span_id)
            names.insert(0, span.name)
        return names

    def trace_ids(self) -> set[str]:
        return {trace_id_of(span) for span in self.all()}

    def _find(self, span_id: int) -> ReadableSpan:
        (found,) = [span for span in self.all() if span.context and span.context.span_id == span_id]
        return found


@contextmanager
def recording(sampler: Sampler | None = None) -> Iterator[RecordedSpans]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=sampler or ParentBased(ALWAYS_ON), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    recorder = OpenTelemetryRecorder(provider)
    set_recorder(recorder)
    try:
        yield RecordedSpans(exporter, recorder)
    finally:
        set_recorder(None)
        provider.shutdown()


def trace_id_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def traceparent_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})
