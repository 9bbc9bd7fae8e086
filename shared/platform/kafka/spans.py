"""Trace spans of records: while they are sent, and while they are processed.

If tracing is off, records keep the trace they came with.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord
from shared.platform.kafka.records import Record
from shared.platform.tracing.spans import Attributes, Kind, Span, is_tracing, start_span, use_span


@contextmanager
def trace_publishing(
    producer: ConfirmingProducer, records: Sequence[OutgoingRecord]
) -> Iterator[Sequence[OutgoingRecord]]:
    """Yield the records to send inside the block: those with a trace continue it from a span of their own."""
    if not is_tracing():
        yield records
        return
    spans = [
        _begin("send", Kind.PRODUCER, producer.topic_name(record.topic), record.trace, {})
        for record in records
    ]
    with _ended(spans):
        yield [
            record if span is None else replace(record, trace=span.trace)
            for record, span in zip(records, spans, strict=True)
        ]


@contextmanager
def trace_processing(records: Sequence[Record]) -> Iterator[Sequence[str | None]]:
    """Yield, for each record, the trace to pass on to what follows from it; None for a record without a trace."""
    if not is_tracing():
        yield [record.trace for record in records]
        return
    spans = [_begin_processing(record) for record in records]
    with _ended(spans):
        yield [None if span is None else span.trace for span in spans]


@contextmanager
def trace_current_record(record: Record) -> Iterator[None]:
    """Make the record's span the current one, so that calls inside the block become part of it."""
    span = _begin_processing(record)
    with use_span(span), _ended([span]):
        yield


def _begin_processing(record: Record) -> Span | None:
    position: Attributes = {
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }
    return _begin("process", Kind.CONSUMER, record.topic, record.trace, position)


def _begin(operation: str, kind: Kind, topic: str, trace: str | None, more: Attributes) -> Span | None:
    if trace is None:
        return None
    attributes: Attributes = {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        **more,
    }
    return start_span(f"{operation} {topic}", kind, trace, attributes)


@contextmanager
def _ended(spans: Sequence[Span | None]) -> Iterator[None]:
    """End the spans after the block, with its error if it raised one."""
    try:
        yield
    except NotConfirmedError as error:
        _end((span for index, span in enumerate(spans) if index in error.refused), "not_confirmed")
        _end((span for index, span in enumerate(spans) if index not in error.refused), None)
        raise
    except BaseException as error:
        _end(spans, type(error).__name__)
        raise
    else:
        _end(spans, None)


def _end(spans: Iterable[Span | None], error: str | None) -> None:
    for span in spans:
        if span is not None:
            span.end(error)
