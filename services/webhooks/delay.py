"""The database's clock, read without asking it each time: what is due is decided by it, not by this machine's."""

from collections.abc import Sequence
from time import monotonic, time

from services.webhooks.metrics import LATENESS
from services.webhooks.outgoing import publish, to_deliver
from shared.domain.messages import DeliveryDue
from shared.platform.database.first_value import first_value
from shared.platform.database.pool import Database
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.kafka.spans import trace_processing

CLOCK_REFRESH_S = 2.0


class DatabaseClock:
    """Never ahead of the database: the way of the answer makes it a moment late. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ahead = 0.0
        """Of the monotonic clock."""
        self._asked_at = float("-inf")

    def now(self) -> float:
        """Seconds since 1970."""
        if monotonic() - self._asked_at > CLOCK_REFRESH_S:
            with self._database.cursor() as cursor:
                told = float(first_value(cursor.execute("select extract(epoch from mizan_now())::float8")))
            self._ahead, self._asked_at = told - monotonic(), monotonic()
        return monotonic() + self._ahead


class UnexpectedDelayMessageError(Exception):
    """A record in a delay topic that waits for nothing."""


class DelayHandler:
    def __init__(self, clock: DatabaseClock, producer: ConfirmingProducer) -> None:
        self._clock = clock
        self._producer = producer

    def move_due(self, tasks: Sequence[Task]) -> None:
        now = self._clock.now()
        due: list[tuple[DeliveryDue, Record]] = []
        waiting: set[AssignedPartition] = set()
        for task in tasks:
            message = task.message
            if not isinstance(message, DeliveryDue):
                raise UnexpectedDelayMessageError(f"{type(message).__name__} waits for nothing")
            wait_s = message.due_at.timestamp() - now
            if wait_s > 0 or task.partition in waiting:
                # Looked at again soon, for the database's clock may be set.
                waiting.add(task.partition)
                task.hold_until(time() + min(max(0.0, wait_s), CLOCK_REFRESH_S))
            else:
                due.append((message, task.record))
        if due:
            with trace_processing([record for _, record in due]) as traces:
                moved = zip(due, traces, strict=True)
                publish(self._producer, [to_deliver(message, trace) for (message, _), trace in moved])
            for message, _ in due:
                LATENESS.labels(str(message.step)).observe(max(0.0, now - message.due_at.timestamp()))
