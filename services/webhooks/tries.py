"""A try on its way through a lane: from the record that asks for it to the answer that is written down."""

from services.webhooks.deliveries import Delivery
from services.webhooks.sending import Post
from shared.domain.messages import DeliveryDue, ResendRequested
from shared.platform.kafka.records import Lane, Task
from shared.platform.tracing.spans import Span

Wanted = DeliveryDue | ResendRequested
Key = tuple[str, int | str]


def key_of(wanted: Wanted) -> Key:
    """Names the try: the delivery, and the step or the resend."""
    if isinstance(wanted, DeliveryDue):
        return str(wanted.id), wanted.step
    return str(wanted.delivery_id), str(wanted.id)


class Try:
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

    def __init__(self, wanted: Wanted, key: Key, task: Task) -> None:
        self.wanted = wanted
        self.key = key
        self.application_id = str(wanted.application_id)
        self.tasks = [task]
        """The record that asks for it, and its repeats: all are done when it is."""
        self.delivery: Delivery | None = None
        self.post: Post | None = None
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

    def is_of(self, lanes: set[Lane]) -> bool:
        """Of no other partition that this process still has."""
        return all(task.lane in lanes or task.lane.ended for task in self.tasks)

    def done(self) -> None:
        for task in self.tasks:
            task.done()
