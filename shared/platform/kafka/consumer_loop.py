"""The loop that every consumer runs in: poll → handle → commit.

It loses no record. Offsets are committed last and without gaps. Records that are held or wait for a retry stay in this
process while polling goes on. Poison messages, which no handler can process, go to the dead letters.
"""

import logging
from collections.abc import Sequence
from functools import partial
from math import inf
from threading import Event
from time import monotonic, sleep, time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from shared.platform.backoff import backoff_delay
from shared.platform.batch_size import BatchSize
from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.kafka import clients
from shared.platform.kafka.admin import ReconnectingAdmin
from shared.platform.kafka.assignment import Assignment, OffsetCommitter, topic_partitions
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.handlers import DeadLetterProducer, Handler, is_transient
from shared.platform.kafka.progress import ConsumerProgress
from shared.platform.kafka.records import AssignedPartition, Decode, Record, Task
from shared.platform.kafka.recreated_topics import RecreatedTopicDetector
from shared.platform.kafka.refusals import AUTHORIZATION_ERRORS, is_fatal
from shared.platform.kafka.stall_recovery import FatalErrors, GroupMembership, StallRecovery
from shared.platform.logs import log_context
from shared.platform.settings import KafkaSettings

FAILURES_BEFORE_DEAD = 3
_TOPIC_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001
_REFUSED_RETRY_S = 30.0
_POLL_S = 0.5
_STATISTICS_EVERY_MS = 10_000
_HANDLER_POLL_S = 0.005
"""A record that arrives while the handler is waited for has to wait, too."""
_MAX_READY = 1000
_LEAVE_COMMIT_LIMIT_S = 8.0
_REVOKE_COMMIT_LIMIT_S = 3.0

_log = logging.getLogger(__name__)


class ConsumerLoop:
    """A member of a consumer group. Create it after fork, and use it in one thread."""

    def __init__(
        self,
        settings: KafkaSettings,
        group: str,
        topics: Sequence[str],
        handler: Handler,
        dead_letters: DeadLetterProducer,
        *,
        decode: Decode,
    ) -> None:
        self._group = clients.group_name(settings, group)
        self._topics = [clients.topic_name(settings, topic) for topic in topics]
        self._handler = handler
        self._dead_letters = dead_letters
        self._decode = decode
        self._assignment = Assignment()
        self._committer = OffsetCommitter(self._assignment)
        self._admin = ReconnectingAdmin(settings, group)
        self._membership = GroupMembership(self._group, self._admin)
        self._new_client = partial(
            clients.consumer,
            settings,
            group,
            {"on_commit": self._committer.on_commit, "stats_cb": self._membership.read_statistics},
            statistics_interval_ms=_STATISTICS_EVERY_MS,
        )
        self._consumer = self._new_client()
        self._recreated_topics = RecreatedTopicDetector(self._admin, self._topics)
        self.progress = ConsumerProgress(self._group, self._admin)
        self._stall_recovery = StallRecovery(self._group)
        self._fatal_errors = FatalErrors(self._group)
        self._stop = Event()
        self._refused_until: float | None = None
        self._transient_failures = 0
        self._not_before = 0.0
        self._handler_poll_not_before = 0.0
        self._failed_dead_letters = 0
        self._batch_size = BatchSize(_MAX_READY)

    def run(self) -> None:
        """Consume until `stop` is called; raises KafkaException on repeated fatal errors of the client."""
        self._subscribe()
        try:
            while not self._stop.is_set():
                try:
                    self._run_once()
                except KafkaException as error:
                    if not self._fatal_errors.can_be_repaired(error):
                        raise
                    self._lost(self._consumer, topic_partitions(self._assignment.all()))
                    self._replace_client()
            self._leave()
        finally:
            self._consumer.close()
            # An answer that comes while the interpreter ends would crash the process.
            self._admin.close()

    def stop(self) -> None:
        """Finish what is in flight, commit, leave the group. May be called from any thread or signal handler."""
        self._stop.set()

    def _run_once(self) -> None:
        wait_s = self._wait_s()
        left_alone_s = self._poll_handler(min(wait_s, _HANDLER_POLL_S))
        self._read(min(wait_s, left_alone_s))
        self._handle_batch()
        self._assignment.set_pauses(self._consumer)
        if self._recreated_topics.check_when_due(self._consumer, self._assignment.all()):
            self.progress.set_problem(None)
        self._committer.commit_when_due(self._consumer)
        observed = self.progress.observe(self._consumer, self._assignment.all())
        # The client reports a missing ACL once, and does not always notice that it was added.
        is_to_ask_again = self._refused_until is not None and monotonic() > self._refused_until
        is_stalled = self._stall_recovery.recover(self._consumer, observed) or self._membership.is_lost()
        if is_stalled or is_to_ask_again:
            self._replace_client()

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def _replace_client(self) -> None:
        """Leave the group, and join it again with a new client."""
        self._refused_until = None
        self._leave()
        self._consumer.close()
        self._consumer = self._new_client()
        self._subscribe()

    def _wait_s(self) -> float:
        # Computed once: the client takes a negative time for "wait for ever".
        pause = self._not_before - monotonic()
        if pause > 0:
            return min(_POLL_S, pause)
        if self._handler.capacity() == 0:
            return _POLL_S
        return max(0.0, min(_POLL_S, self._assignment.next_ready_at() - time()))

    def _poll_handler(self, wait_s: float) -> float:
        """Let the handler continue its kept tasks, also while new records have to wait.

        Returns how many seconds it can be left alone.
        """
        left_alone_s = inf
        if monotonic() >= self._handler_poll_not_before:
            try:
                left_alone_s = self._handler.poll(wait_s)
            except (DatabaseUnavailableError, KafkaUnavailableError) as error:
                self._pause_after(error)
                self._handler_poll_not_before = self._not_before
        transient: Exception | None = None
        for task, failure in self._assignment.take_requeued():
            if failure is not None and is_transient(failure):
                transient = failure
            elif failure is not None:
                self._record_failed(task, failure)
            self._assignment.requeue([task])
        if transient is not None:
            self._pause_after(transient)
        return left_alone_s

    def _read(self, wait_s: float) -> None:
        first = self._consumer.poll(wait_s)
        self.progress.record_poll(found_record=first is not None)
        if first is None:
            return
        self._accept(first)
        # No more than can be handled soon: what stays inside the client needs no pause, and a pause is expensive.
        more = _MAX_READY - self._assignment.ready_count()
        for message in self._consumer.consume(more, 0) if more > 0 else ():
            self._accept(message)

    def _accept(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if is_fatal(error):
                raise KafkaException(error)
            _log.warning("the Kafka client reports: %s", error.str())
            if error.code() in (*_TOPIC_MISSING, *AUTHORIZATION_ERRORS):
                self.progress.set_problem(error.str())
            if error.code() in AUTHORIZATION_ERRORS:
                self._refused_until = monotonic() + _REFUSED_RETRY_S
            return
        record = Record.of(message)
        partition = self._assignment.get(record.topic, record.partition)
        if partition is not None:
            partition.add(Task(partition, record, self._decode))

    def _handle_batch(self) -> None:
        if monotonic() < self._not_before:
            return
        batch = self._assignment.next_batch(min(self._batch_size.current, self._handler.capacity()))
        if not batch:
            return
        for task in batch:
            task.held_until = 0.0
        self._dead_letter([task for task in batch if task.poison_reason is not None])
        batch = [task for task in batch if task.poison_reason is None]
        if not batch:
            return
        try:
            self._handler.handle(batch)
        except Exception as error:  # noqa: BLE001  the loop's edge: every error of a handler is handled here
            if is_transient(error):
                self._pause_after(error)
            else:
                self._batch_failed(batch, error)
            self._assignment.requeue(task for task in batch if not task.finished)
        else:
            self._transient_failures = 0
            self._batch_size.count_success()
            self._assignment.requeue(
                task for task in batch if task.held_until or task.poison_reason is not None
            )

    def _dead_letter(self, poison: Sequence[Task]) -> None:
        """Send poison messages to the dead letters. While that fails, their partitions wait and the others do not."""
        if not poison:
            return
        try:
            self._dead_letters.send([(task.record, str(task.poison_reason)) for task in poison], self._group)
        except Exception as error:  # noqa: BLE001  whatever it is, the records must not be lost
            self._failed_dead_letters += 1
            pause = backoff_delay(self._failed_dead_letters)
            _log.error(
                "%s: cannot send to the dead letters: %s; retrying in %.1f s", self._group, error, pause
            )
            for task in poison:
                task.hold_until(time() + pause)
            self._assignment.requeue(poison)
            return
        self._failed_dead_letters = 0
        for task in poison:
            with log_context(message_id=str(task.record)):
                _log.error("sent to the dead letters: %s", task.poison_reason)
            task.done()
        self.progress.count_dead_letters(len(poison))

    def _batch_failed(self, batch: Sequence[Task], error: Exception) -> None:
        if len(batch) > 1:
            self._batch_size.shrink(len(batch))
            self.progress.count_retry("batch")
            _log.warning(
                "%s: a batch of %d records failed, continuing with batches of %d",
                self._group,
                len(batch),
                self._batch_size.current,
                exc_info=error,
            )
        else:
            self._record_failed(batch[0], error)

    def _record_failed(self, task: Task, error: Exception) -> None:
        """Hold the record for a retry; only its own partition waits. After three failures it is poison."""
        task.failures += 1
        self.progress.count_retry("record")
        with log_context(message_id=str(task.record)):
            _log.warning(
                "processing failed, attempt %d of %d", task.failures, FAILURES_BEFORE_DEAD, exc_info=error
            )
        if task.failures >= FAILURES_BEFORE_DEAD:
            task.poison_reason = f"failed {task.failures} times: {error!r}"
        else:
            task.hold_until(time() + backoff_delay(task.failures))

    def _pause_after(self, error: Exception) -> None:
        """Pause all records after a transient error, because each of them would fail the same way."""
        self._transient_failures += 1
        pause = backoff_delay(self._transient_failures)
        self._not_before = monotonic() + pause
        self.progress.count_retry("transient")
        _log.warning("%s: %s; retrying in %.1f s", self._group, error, pause)

    def _leave(self) -> None:
        """Commit and leave. A commit can fail during a rebalance: then keep polling and retry for a while."""
        self._drain(self._assignment.all())
        deadline = monotonic() + _LEAVE_COMMIT_LIMIT_S
        while partitions := self._assignment.all():
            if self._committer.commit_now(self._consumer, partitions) or monotonic() > deadline:
                break
            self._consumer.pause(topic_partitions(partitions))
            self._consumer.poll(0.1)
        self.progress.forget(self._assignment.remove(topic_partitions(self._assignment.all())))

    def _drain(self, partitions: Sequence[AssignedPartition]) -> None:
        try:
            self._handler.drain(partitions)
        except Exception as error:  # noqa: BLE001  the next owner processes what was not finished
            _log.warning("%s: could not finish what was in flight", self._group, exc_info=error)

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._assignment.add(partitions)
        if partitions:
            self.progress.set_problem(None)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        found = (self._assignment.get(each.topic, each.partition) for each in partitions)
        going = [partition for partition in found if partition is not None]
        self._drain(going)
        deadline = monotonic() + _REVOKE_COMMIT_LIMIT_S
        while not self._committer.commit_now(consumer, going) and monotonic() < deadline:
            sleep(0.1)  # polling is not possible inside this callback
        self.progress.forget(self._assignment.remove(partitions))

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        lost = self._assignment.remove(partitions)
        self._handler.discard(lost)
        self.progress.forget(lost)
