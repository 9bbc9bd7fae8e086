"""Sends spans to an OTLP collector, in the background. Only where tracing is on is this imported.

A collector that is away, slow or wrong costs spans and nothing else: the queue is bounded, the process ends in time.
"""

import logging
from threading import Lock
from time import monotonic

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from shared.settings import TracingSettings

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
