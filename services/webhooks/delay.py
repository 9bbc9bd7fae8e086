"""Delay topics: a record waits until it is due, first in, first out, and is then published to webhooks.deliver.

While the first record of a partition is not due, this process holds it and keeps polling. It needs no sleep and no
thread per record.
"""

from collections.abc import Sequence
from time import monotonic, time

from services.webhooks.metrics import RETRY_LATENESS
from services.webhooks.outgoing import publish, to_deliver
from shared.domain.messages import DeliveryDue
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.kafka.spans import trace_processing

CLOCK_REFRESH_S = 2.0


class UnexpectedDelayMessageError(Exception):
    """A record on a delay topic has a message without a due time."""


class DatabaseClock:
    """The database's clock, queried every CLOCK_REFRESH_S only. It decides what is due, not this machine's clock.

    It is never ahead of the database: it lags by the time that the query's response took. Threads may share it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._offset = 0.0
        """What to add to the monotonic clock."""
        self._refreshed_at = float("-inf")

    def now(self) -> float:
        """Return the seconds since 1970."""
        if monotonic() - self._refreshed_at > CLOCK_REFRESH_S:
            with self._database.cursor() as cursor:
                now = float(fetch_scalar(cursor, "select extract(epoch from mizan_now())::float8"))
            self._offset, self._refreshed_at = now - monotonic(), monotonic()
        return monotonic() + self._offset


class DelayHandler:
    """Handles batches of one delay topic."""

    def __init__(self, clock: DatabaseClock, producer: ConfirmingProducer) -> None:
        self._clock = clock
        self._producer = producer

    def move_due(self, tasks: Sequence[Task]) -> None:
        """Publish the records that are due, and hold each partition at its first record that is not.

        Raises UnexpectedDelayMessageError for a message without a due time.
        """
        now = self._clock.now()
        due: list[tuple[DeliveryDue, Record]] = []
        waiting: set[AssignedPartition] = set()
        for task in tasks:
            message = task.message
            if not isinstance(message, DeliveryDue):
                raise UnexpectedDelayMessageError(f"{type(message).__name__} has no due time")
            wait_s = message.due_at.timestamp() - now
            if wait_s > 0 or task.partition in waiting:
                # Checked again soon, because somebody may set the database's clock.
                waiting.add(task.partition)
                task.hold_until(time() + min(max(0.0, wait_s), CLOCK_REFRESH_S))
            else:
                due.append((message, task.record))
        if due:
            with trace_processing([record for _, record in due]) as traces:
                moved = zip(due, traces, strict=True)
                publish(self._producer, [to_deliver(message, trace) for (message, _), trace in moved])
            for message, _ in due:
                RETRY_LATENESS.labels(str(message.step)).observe(max(0.0, now - message.due_at.timestamp()))
