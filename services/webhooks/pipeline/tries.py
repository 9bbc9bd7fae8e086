"""The span of a try: from when its request leaves until its answer is there. Of its URL, only the host."""

from urllib.parse import urlsplit

from services.webhooks.http.client import TryResult, WebhookRequest
from services.webhooks.pipeline.queries import DeliveryState
from shared.domain.messages import DeliveryDue, ResendRequested
from shared.platform.kafka.records import AssignedPartition, Task
from shared.platform.tracing.spans import Attributes, Kind, Span, begin, is_on

TryMessage = DeliveryDue | ResendRequested
TryKey = tuple[str, int | str]


def try_key(wanted: TryMessage) -> TryKey:
    """Names the try: the delivery, and the step or the resend."""
    if isinstance(wanted, DeliveryDue):
        return str(wanted.id), wanted.step
    return str(wanted.delivery_id), str(wanted.id)


class TryInProgress:
    __slots__ = (
        "application_id",
        "delivery",
        "key",
        "let_go",
        "looked_at",
        "place",
        "post",
        "span",
        "tasks",
        "trace",
        "wanted",
    )

    def __init__(self, wanted: TryMessage, key: TryKey, task: Task) -> None:
        self.wanted = wanted
        self.key = key
        self.application_id = str(wanted.application_id)
        self.tasks = [task]
        """The record that asks for it, and its repeats: all are done when it is."""
        self.delivery: DeliveryState | None = None
        self.post: WebhookRequest | None = None
        self.trace = task.record.trace
        """What its requests and all that follows from them belong to."""
        self.span: Span | None = None
        """Of its request in flight."""
        self.looked_at = 0.0
        """When the database was asked about it; zero until then."""
        self.place = 0
        """Its request in flight; see Endpoints."""
        self.let_go = False
        """Its partition goes away: whoever gets that makes this try."""

    @property
    def delivery_id(self) -> str:
        return self.key[0]

    def is_of(self, partitions: set[AssignedPartition]) -> bool:
        """Of no other partition that this process still has."""
        return all(task.partition in partitions or task.partition.revoked for task in self.tasks)

    def done(self) -> None:
        for task in self.tasks:
            task.done()


_PORTS = {"http": 80, "https": 443}
_ABANDONED = "abandoned"


def start_try_span(one: TryInProgress) -> Span | None:
    """None where it has no trace."""
    if one.trace is None or not is_on():
        return None
    assert one.post is not None
    host, port = _host_and_port(one.post.url)
    attributes: Attributes = {
        "http.request.method": "POST",
        "server.address": host,
        "server.port": port,
        "mizan.delivery": one.delivery_id,
        "mizan.step": one.wanted.step if isinstance(one.wanted, DeliveryDue) else "resend",
    }
    return begin("POST webhook", Kind.CLIENT, one.trace, attributes)


def end_try_span(one: TryInProgress, answer: TryResult | None) -> None:
    """Without an answer, somebody else may make it again."""
    span, one.span = one.span, None
    assert span is not None
    if answer is None:
        span.end(_ABANDONED)
        return
    if answer.status_code is not None:
        span.note({"http.response.status_code": answer.status_code})
    span.end(None if answer.is_success else answer.failure or str(answer.status_code))


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:  # nothing is sent there, and the answer says why
        return "", 0
