"""Spans, where tracing is on. Where it is off there are none, and opentelemetry is not even imported.

Whoever makes one says whose child it is: a trace travels as text, through PostgreSQL and Kafka.
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
        """Its traceparent: what it causes is its child."""

    def rename(self, name: str) -> None: ...

    def note(self, attributes: Attributes) -> None: ...

    def end(self, error: str | None = None) -> None:
        """`error` names what went wrong, in one word; never a text that may quote somebody."""


class Recorder(Protocol):
    def begin(
        self, name: str, kind: Kind, parent: str | None, attributes: Attributes, began_ns: int | None
    ) -> Span: ...


class _Process:
    """Of this process."""

    recorder: Recorder | None = None


_current: ContextVar[Span | None] = ContextVar("span", default=None)


def record_with(recorder: Recorder | None) -> None:
    """None turns tracing off."""
    _Process.recorder = recorder


def is_on() -> bool:
    return _Process.recorder is not None


def begin(
    name: str, kind: Kind, parent: str | None, attributes: Attributes, began_ns: int | None = None
) -> Span | None:
    """A span that is under way until it is told to end; without a parent, the first of a new trace."""
    recorder = _Process.recorder
    return None if recorder is None else recorder.begin(name, kind, parent, attributes, began_ns)


def begin_within(name: str, kind: Kind, attributes: Attributes) -> Span | None:
    """Within the current one; none where there is none."""
    outer = _current.get() if is_on() else None
    return None if outer is None else begin(name, kind, outer.trace, attributes)


def current_trace() -> str | None:
    """Where this thread is, for what it causes to be found later."""
    span = _current.get() if is_on() else None
    return None if span is None else span.trace


def note(attributes: Attributes) -> None:
    """About the current one."""
    span = _current.get() if is_on() else None
    if span is not None:
        span.note(attributes)


def make_current(span: Span | None) -> None:
    _current.set(span)


@contextmanager
def current(span: Span | None) -> Iterator[None]:
    """Until the end of the block, which does not end the span."""
    before = _current.get()
    _current.set(span)
    try:
        yield
    finally:
        _current.set(before)
