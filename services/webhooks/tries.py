"""A try on its way through a lane: from the record that asks for it to the answer that is written down."""

from dataclasses import dataclass, field

from services.webhooks.deliveries import Delivery
from services.webhooks.sending import Post
from shared.kafka.tasks import Lane, Task
from shared.messages import DeliveryDue, ResendRequested

Wanted = DeliveryDue | ResendRequested
Key = tuple[str, int | str]


def key_of(wanted: Wanted) -> Key:
    """Names the try: the delivery, and the step or the resend."""
    if isinstance(wanted, DeliveryDue):
        return str(wanted.id), wanted.step
    return str(wanted.delivery_id), str(wanted.id)


@dataclass(slots=True, eq=False)
class Try:
    wanted: Wanted
    tasks: list[Task]
    """The record that asks for it, and its repeats: all are done when it is."""
    delivery: Delivery | None = None
    post: Post | None = None
    place: int = 0
    """Its request in flight; see Endpoints."""
    let_go: bool = False
    """Its partition goes away: whoever gets that makes this try."""
    key: Key = field(init=False)

    def __post_init__(self) -> None:
        self.key = key_of(self.wanted)

    @property
    def delivery_id(self) -> str:
        return self.key[0]

    @property
    def application_id(self) -> str:
        return str(self.wanted.application_id)

    def is_of(self, lanes: set[Lane]) -> bool:
        """Of these partitions alone."""
        return all(task.lane in lanes for task in self.tasks)

    def done(self) -> None:
        for task in self.tasks:
            task.done()
