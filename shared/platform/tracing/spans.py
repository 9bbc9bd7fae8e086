"""Spans, if tracing is on. If it is off there are none, and OpenTelemetry is not even imported.

The caller names the parent of each span. A trace travels as text through PostgreSQL and Kafka.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Protocol

Attributes = Mapping[str, str | int]


class Kind(StrEnum):
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Span(Protocol):
    @property
    def trace(self) -> str:
        """Its traceparent, for the spans it causes."""

    def rename(self, name: str) -> None: ...

    def set_attributes(self, attributes: Attributes) -> None: ...

    def end(self, error: str | None = None) -> None:
        """End the span. `error` names the kind of failure in one word, never a text that may quote user input."""


class SpanRecorder(Protocol):
    def start_span(
        self, name: str, kind: Kind, parent: str | None, attributes: Attributes, started_ns: int | None
    ) -> Span: ...


class _Process:
    """The recorder of this process."""

    recorder: SpanRecorder | None = None


_current: ContextVar[Span | None] = ContextVar("span", default=None)


def set_recorder(recorder: SpanRecorder | None) -> None:
    """Turn tracing on; None turns it off."""
    _Process.recorder = recorder


def is_tracing() -> bool:
    return _Process.recorder is not None


def start_span(
    name: str, kind: Kind, parent: str | None, attributes: Attributes, started_ns: int | None = None
) -> Span | None:
    """Start a span; without a parent it is the first of a new trace. Returns None if tracing is off."""
    recorder = _Process.recorder
    return None if recorder is None else recorder.start_span(name, kind, parent, attributes, started_ns)


def start_child_span(name: str, kind: Kind, attributes: Attributes) -> Span | None:
    """Start a child of the current span; returns None if there is no current span."""
    parent = _current.get() if is_tracing() else None
    return None if parent is None else start_span(name, kind, parent.trace, attributes)


def current_trace() -> str | None:
    """Return the traceparent of the current span, to store it with what this thread causes."""
    span = _current.get() if is_tracing() else None
    return None if span is None else span.trace


def set_span_attributes(attributes: Attributes) -> None:
    """Set attributes of the current span, if there is one."""
    span = _current.get() if is_tracing() else None
    if span is not None:
        span.set_attributes(attributes)


def set_current_span(span: Span | None) -> None:
    _current.set(span)


@contextmanager
def use_span(span: Span | None) -> Iterator[None]:
    """Make it the current span inside the block. Leaving the block does not end the span."""
    before = _current.get()
    _current.set(span)
    try:
        yield
    finally:
        _current.set(before)
