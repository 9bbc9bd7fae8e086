"""The loop that every consumer runs in: poll → handle → commit.

It loses nothing: offsets are committed last and without gaps, records that are held or wait for a retry stay in
this process while polling goes on, and what nobody can process goes to the dead letters. One thread only.
"""

import logging
from collections.abc import Sequence
from threading import Event
from time import monotonic, time

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from shared.backoff import growing_pause
from shared.db.pool import DatabaseUnavailableError
from shared.kafka.clients import KafkaUnavailableError
from shared.kafka.commits import Commits
from shared.kafka.dead_letters import DeadLetterBox
from shared.kafka.handlers import Handler
from shared.kafka.lanes import Lanes
from shared.kafka.progress import Progress
from shared.kafka.tasks import Record, Task
from shared.logs import log_context

TRANSIENT = (DatabaseUnavailableError, KafkaUnavailableError)
FAILURES_BEFORE_DEAD = 3

_log = logging.getLogger(__name__)
_WAIT_S = 0.25
_READ_AT_ONCE = 1000


class ConsumerLoop:
    def __init__(
        self,
        consumer: Consumer,
        group: str,
        topics: Sequence[str],
        handler: Handler,
        dead_letters: DeadLetterBox,
    ) -> None:
        self._consumer = consumer
        self._group = group
        self._topics = list(topics)
        self._handler = handler
        self._dead_letters = dead_letters
        self._lanes = Lanes(consumer)
        self._commits = Commits(consumer)
        self.progress = Progress(group)
        self._stop = Event()
        self._transient_failures = 0
        self._not_before = 0.0
        self._singly = 0  # after a batch failed, this many records go one by one, to find the one that fails

    def run(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        try:
            while not self._stop.is_set():
                self._turn()
            self._handler.settle(self._lanes.all())
            self._commits.commit_now(self._lanes.all())
        finally:
            self._consumer.close()

    def stop(self) -> None:
        """From any thread or signal handler: finish what is in flight, commit, leave the group."""
        self._stop.set()

    def _turn(self) -> None:
        busy = self._handler.turn()
        self._read(0 if busy else self._wait_s())
        self._hand_over()
        self._lanes.set_pauses()
        self._commits.commit_when_due(self._lanes.all())
        self.progress.observe(self._consumer, self._lanes.all())

    def _wait_s(self) -> float:
        if monotonic() < self._not_before:
            return min(_WAIT_S, self._not_before - monotonic())
        if self._handler.room() == 0:
            return _WAIT_S
        return max(0.0, min(_WAIT_S, self._lanes.next_ready_at() - time()))

    def _read(self, wait_s: float) -> None:
        first = self._consumer.poll(wait_s)
        self.progress.polled()
        if first is None:
            return
        for message in (first, *self._consumer.consume(_READ_AT_ONCE, 0)):
            self._accept(message)

    def _accept(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.fatal():
                raise KafkaException(error)
            _log.warning("kafka says: %s", error.str())
            return
        record = Record.of(message)
        lane = self._lanes.of(record.topic, record.partition)
        if lane is not None:
            lane.add(Task(lane, record))

    def _hand_over(self) -> None:
        if monotonic() < self._not_before:
            return
        batch = self._lanes.next_batch(1 if self._singly else self._handler.room())
        if not batch:
            return
        try:
            self._handle(batch)
        except TRANSIENT as error:
            self._transient_failures += 1
            self._try_again_in(growing_pause(self._transient_failures), "transient", error)
            self._lanes.put_back(task for task in batch if not task.finished)
        except Exception as error:  # noqa: BLE001  the loop's edge: whatever a handler raises is dealt with here
            self._failed(batch, error)
            self._lanes.put_back(task for task in batch if not task.finished)
        else:
            self._transient_failures = 0
            self._singly = max(0, self._singly - 1)
            self._lanes.put_back(task for task in batch if task.held_until is not None)

    def _handle(self, batch: Sequence[Task]) -> None:
        for task in batch:
            if task.hopeless is not None:
                self._bury(task, task.hopeless)
        hopeful = [task for task in batch if task.hopeless is None]
        if hopeful:
            self._handler.take(hopeful)
            self.progress.handled(len(hopeful))

    def _failed(self, batch: Sequence[Task], error: Exception) -> None:
        if len(batch) > 1:
            self._singly = len(batch)
            self._try_again_in(0, "batch", error)
            return
        task = batch[0]
        task.failures += 1
        self._try_again_in(growing_pause(task.failures), "record", error)
        if task.failures >= FAILURES_BEFORE_DEAD:
            task.hopeless = f"failed {task.failures} times: {error!r}"

    def _try_again_in(self, seconds: float, kind: str, error: Exception) -> None:
        self._not_before = monotonic() + seconds
        self.progress.retried(kind)
        _log.warning("%s: %s failure, trying again in %.1f s", self._group, kind, seconds, exc_info=error)

    def _bury(self, task: Task, reason: str) -> None:
        record = task.record
        self._dead_letters.put(record, self._group, reason)
        task.done()
        self.progress.buried()
        with log_context(message_id=f"{record.topic}/{record.partition}/{record.offset}"):
            _log.error("put into the dead letters: %s", reason)

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._lanes.open(partitions)

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        going = self._lanes.close(partitions)
        self._handler.settle(going)
        self._commits.commit_now(going)
        self.progress.forget(going)

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.progress.forget(self._lanes.close(partitions))
