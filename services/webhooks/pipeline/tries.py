"""One try of a delivery in the pipeline, and the tracing span of its request."""

from urllib.parse import urlsplit

from services.webhooks.http.client import TryResult, WebhookRequest
from services.webhooks.pipeline.queries import DeliveryState
from services.webhooks.retry_schedule import FIRST_STEP
from shared.domain.messages import DeliveryDue, IntentEvent, ResendRequested
from shared.platform.kafka.records import AssignedPartition, Task
from shared.platform.tracing.spans import Attributes, Kind, Span, is_tracing, start_span

TryMessage = DeliveryDue | ResendRequested
TryKey = tuple[str, int | str, str]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ABANDONED = "abandoned"


def _key(message: TryMessage | IntentEvent, application_id: str) -> TryKey:
    """Return what identifies the try: the delivery id, with the step or the resend id, and the application.

    The application, and all that a record says of an event, are part of it so that a record with something wrong is not
    taken for a duplicate of the true record.
    """
    if isinstance(message, IntentEvent):
        claims = f"{application_id} {message.intent_uuid} {message.seq} {message.type}"
        return str(message.id), FIRST_STEP, claims
    if isinstance(message, DeliveryDue):
        return str(message.id), message.step, application_id
    return str(message.delivery_id), str(message.id), application_id


class TryInProgress:
    """A try from the moment its record is read until its result is recorded."""

    __slots__ = (
        "_recorded_tasks",
        "application_id",
        "delivery",
        "event",
        "is_revoked",
        "key",
        "looked_up_at",
        "message",
        "request",
        "slot",
        "span",
        "tasks",
        "trace",
    )

    def __init__(self, message: TryMessage | IntentEvent, task: Task) -> None:
        self.event = message if isinstance(message, IntentEvent) else None
        """What requests the first try of a delivery that may not exist yet."""
        self.message: TryMessage = (
            DeliveryDue(message.id, message.application_id, FIRST_STEP, message.at)
            if isinstance(message, IntentEvent)
            else message
        )
        self.application_id = str(message.application_id)
        self.key = _key(message, self.application_id)
        self.tasks = [task]
        """The record that requests this try, and its duplicates. All are done when the try is."""
        self.delivery: DeliveryState | None = None
        self.request: WebhookRequest | None = None
        self.trace = task.record.trace
        """The trace that the request and everything that follows from it belong to."""
        self.span: Span | None = None
        """The span of the request in flight."""
        self.looked_up_at = 0.0
        """When its delivery was last looked up (monotonic clock), 0 before that."""
        self.slot = 0
        """The slot number that ApplicationQueues gave to its request, 0 while it holds no slot."""
        self.is_revoked = False
        """Its partition was revoked: the next owner of the partition makes this try."""
        self._recorded_tasks = 0
        """How many of its tasks had been read when the recording of its result began."""

    @property
    def delivery_id(self) -> str:
        return self.key[0]

    def belongs_only_to(self, partitions: set[AssignedPartition]) -> bool:
        """Return whether no partition that this process keeps has a record of this try."""
        return all(task.partition in partitions or task.partition.revoked for task in self.tasks)

    def done(self) -> None:
        for task in self.tasks:
            task.done()

    def start_recording(self) -> None:
        self._recorded_tasks = len(self.tasks)

    def finish_recording(self) -> list[Task]:
        """Mark the tasks that were read before the recording began as done. Return the later ones.

        A later one is not known to be a duplicate: it may be the record that this recording published, because the
        slow pipeline publishes to the topic that it reads from.
        """
        for task in self.tasks[: self._recorded_tasks]:
            task.done()
        return self.tasks[self._recorded_tasks :]


def start_try_span(delivery_try: TryInProgress) -> Span | None:
    """Start the span of a request. It names the host of the URL, never the path or query.

    Returns None if the try has no trace or tracing is off.
    """
    if delivery_try.trace is None or not is_tracing():
        return None
    assert delivery_try.request is not None
    message = delivery_try.message
    host, port = _host_and_port(delivery_try.request.url)
    attributes: Attributes = {
        "http.request.method": "POST",
        "server.address": host,
        "server.port": port,
        "mizan.delivery": delivery_try.delivery_id,
        "mizan.step": message.step if isinstance(message, DeliveryDue) else "resend",
    }
    return start_span("POST webhook", Kind.CLIENT, delivery_try.trace, attributes)


def end_try_span(delivery_try: TryInProgress, result: TryResult | None) -> None:
    """End the span of a request. Without a result the request was abandoned, and another process may repeat it."""
    span, delivery_try.span = delivery_try.span, None
    assert span is not None
    if result is None:
        span.end(_ABANDONED)
        return
    if result.status_code is not None:
        span.set_attributes({"http.response.status_code": result.status_code})
    span.end(None if result.is_success else result.failure or str(result.status_code))


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:  # nothing is sent to such a URL; the result of the try says so
        return "", 0
