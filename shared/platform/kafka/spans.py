"""Spans of records: from when they are given to Kafka until it has them, and while somebody works on them.

Where tracing is off, records carry on whatever trace they came with.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, Outgoing
from shared.platform.kafka.records import Record
from shared.platform.tracing.spans import Attributes, Kind, Span, begin, current, is_on


@contextmanager
def publishing(producer: ConfirmingProducer, records: Sequence[Outgoing]) -> Iterator[Sequence[Outgoing]]:
    """What is to be sent inside: each record that has a trace is followed from its own span on."""
    if not is_on():
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
def processing(records: Sequence[Record]) -> Iterator[Sequence[str | None]]:
    """The traces of what follows from these records, one for each; None where one has none."""
    if not is_on():
        yield [record.trace for record in records]
        return
    spans = [_begin_processing(record) for record in records]
    with _ended(spans):
        yield [None if span is None else span.trace for span in spans]


@contextmanager
def processing_currently(record: Record) -> Iterator[None]:
    """What is called inside is part of it."""
    span = _begin_processing(record)
    with current(span), _ended([span]):
        yield


def _begin_processing(record: Record) -> Span | None:
    place: Attributes = {
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }
    return _begin("process", Kind.CONSUMER, record.topic, record.trace, place)


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
    return begin(f"{operation} {topic}", kind, trace, attributes)


@contextmanager
def _ended(spans: Sequence[Span | None]) -> Iterator[None]:
    """Well, or with the error that the block ended with."""
    try:
        yield
    except NotConfirmedError as error:
        _end((span for place, span in enumerate(spans) if place in error.refused), "not_confirmed")
        _end((span for place, span in enumerate(spans) if place not in error.refused), None)
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
