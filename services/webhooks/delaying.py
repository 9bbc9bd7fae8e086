"""A delay topic: its records wait for their time, first in, first out, and then go back to webhooks.deliver.

The head of a partition that is not due is held inside this process while polling goes on: no sleep, no thread for each.
"""

from collections.abc import Sequence
from time import time

from services.webhooks.database_clock import ASK_AGAIN_S, DatabaseClock
from services.webhooks.metrics import LATENESS
from services.webhooks.records import send, to_deliver
from shared.domain.messages import DeliveryDue
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.records import Lane, Record, Task
from shared.platform.kafka.spans import processing


class NotDelayedError(Exception):
    """A record in a delay topic that waits for nothing."""


class Delaying:
    def __init__(self, clock: DatabaseClock, producer: ConfirmingProducer) -> None:
        self._clock = clock
        self._producer = producer

    def move_due(self, tasks: Sequence[Task]) -> None:
        now = self._clock.now()
        due: list[tuple[DeliveryDue, Record]] = []
        waiting: set[Lane] = set()
        for task in tasks:
            message = task.message
            if not isinstance(message, DeliveryDue):
                raise NotDelayedError(f"{type(message).__name__} waits for nothing")
            wait_s = message.due_at.timestamp() - now
            if wait_s > 0 or task.lane in waiting:
                # Looked at again soon, for the database's clock may be set.
                waiting.add(task.lane)
                task.hold_until(time() + min(max(0.0, wait_s), ASK_AGAIN_S))
            else:
                due.append((message, task.record))
        if due:
            with processing([record for _, record in due]) as traces:
                moved = zip(due, traces, strict=True)
                send(self._producer, [to_deliver(message, trace) for (message, _), trace in moved])
            for message, _ in due:
                LATENESS.labels(str(message.step)).observe(max(0.0, now - message.due_at.timestamp()))
