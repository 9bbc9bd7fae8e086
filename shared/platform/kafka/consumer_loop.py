"""The loop that every consumer runs in: poll → handle → commit.

It loses nothing: offsets are committed last and without gaps, records that are held or wait for a retry stay in
this process while polling goes on, and what nobody can process goes to the dead letters. One thread only.
"""

import logging
from collections.abc import Sequence
from threading import Event, Thread
from time import monotonic, sleep, time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from shared.platform.backoff import growing_pause
from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.kafka import clients
from shared.platform.kafka.admin import LastingAdmin
from shared.platform.kafka.assignment import Lanes, partitions_of
from shared.platform.kafka.commits import Commits
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.handlers import DeadLetterBox, Handler
from shared.platform.kafka.progress import Progress
from shared.platform.kafka.records import Decode, Lane, Record, Task
from shared.platform.kafka.recreated_topics import MadeAgain
from shared.platform.logs import log_context
from shared.platform.settings import KafkaSettings

TRANSIENT = (DatabaseUnavailableError, KafkaUnavailableError)
FAILURES_BEFORE_DEAD = 3
_TOPIC_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001

_log = logging.getLogger(__name__)
_WAIT_S = 0.25
_TURN_S = 0.005
_ENOUGH_WAITING = 1000
_COMMIT_PATIENCE_S = 8.0
_REVOKE_PATIENCE_S = 3.0


class ConsumerLoop:
    """Make it after fork, in the process that runs it."""

    def __init__(
        self,
        settings: KafkaSettings,
        role: str,
        topics: Sequence[str],
        handler: Handler,
        dead_letters: DeadLetterBox,
        *,
        decode: Decode,
    ) -> None:
        self._group = clients.group_name(settings, role)
        self._topics = [clients.topic_name(settings, topic) for topic in topics]
        self._handler = handler
        self._dead_letters = dead_letters
        self._decode = decode
        self._lanes = Lanes()
        self._commits = Commits(self._lanes)
        self._consumer = clients.consumer(settings, role, on_commit=self._commits.reported)
        admin = LastingAdmin(settings, role)
        self._made_again = MadeAgain(admin, self._topics)
        self.progress = Progress(self._group, admin)
        self._stop = Event()
        self._transient_failures = 0
        self._not_before = 0.0
        self._turn_not_before = 0.0
        self._burials_failed = 0
        self._singly = 0  # after a batch failed, this many records go one by one, to find the one that fails

    def run(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        try:
            while not self._stop.is_set():
                self._turn()
            self._leave()
        finally:
            self._consumer.close()

    def stop(self) -> None:
        """From any thread or signal handler: finish what is in flight, commit, leave the group."""
        self._stop.set()

    def _turn(self) -> None:
        wait_s = self._wait_s()
        busy = self._let_handler_work(min(wait_s, _TURN_S))
        self._read(0 if busy else wait_s)
        self._hand_over()
        self._lanes.set_pauses(self._consumer)
        if self._made_again.look_when_due(self._consumer, self._lanes.all()):
            self.progress.troubled(None)
        self._commits.commit_when_due(self._consumer)
        self.progress.observe(self._consumer, self._lanes.all())

    def _wait_s(self) -> float:
        # Asked once: a time that has become negative meanwhile means "for ever" to the client.
        pause = self._not_before - monotonic()
        if pause > 0:
            return min(_WAIT_S, pause)
        if self._handler.room() == 0:
            return _WAIT_S
        return max(0.0, min(_WAIT_S, self._lanes.next_ready_at() - time()))

    def _let_handler_work(self, wait_s: float) -> bool:
        """Also while new records have to wait: what it keeps must go on."""
        busy = False
        if monotonic() >= self._turn_not_before:
            try:
                busy = self._handler.turn(wait_s)
            except TRANSIENT as error:
                self._transient_trouble(error)
                self._turn_not_before = self._not_before
        passing: Exception | None = None
        for task, failure in self._lanes.take_given_back():
            if isinstance(failure, TRANSIENT):
                passing = failure
            elif failure is not None:
                self._record_failed(task, failure)
            self._lanes.put_back([task])
        if passing is not None:
            self._transient_trouble(passing)
        return busy

    def _read(self, wait_s: float) -> None:
        first = self._consumer.poll(wait_s)
        self.progress.polled()
        if first is None:
            return
        self._accept(first)
        # No more than can be handled soon: what stays inside the client needs no pause, and a pause is dear.
        more = _ENOUGH_WAITING - self._lanes.ready_count()
        for message in self._consumer.consume(more, 0) if more > 0 else ():
            self._accept(message)

    def _accept(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.fatal():
                raise KafkaException(error)
            _log.warning("kafka says: %s", error.str())
            if error.code() in _TOPIC_MISSING:
                self.progress.troubled(error.str())
            return
        record = Record.of(message)
        lane = self._lanes.of(record.topic, record.partition)
        if lane is not None:
            lane.add(Task(lane, record, self._decode))

    def _hand_over(self) -> None:
        if monotonic() < self._not_before:
            return
        batch = self._lanes.next_batch(1 if self._singly else self._handler.room())
        if not batch:
            return
        for task in batch:
            task.held_until = 0.0
        self._bury([task for task in batch if task.hopeless is not None])
        batch = [task for task in batch if task.hopeless is None]
        if not batch:
            return
        try:
            self._handler.take(batch)
        except TRANSIENT as error:
            self._transient_trouble(error)
            self._lanes.put_back(task for task in batch if not task.finished)
        except Exception as error:  # noqa: BLE001  the loop's edge: whatever a handler raises is dealt with here
            self._batch_failed(batch, error)
            self._lanes.put_back(task for task in batch if not task.finished)
        else:
            self._transient_failures = 0
            self._singly = max(0, self._singly - 1)
            self._lanes.put_back(task for task in batch if task.held_until)

    def _bury(self, hopeless: Sequence[Task]) -> None:
        """While they cannot be put into the dead letters their partitions wait, and the others do not."""
        if not hopeless:
            return
        try:
            self._dead_letters.put([(task.record, str(task.hopeless)) for task in hopeless], self._group)
        except Exception as error:  # noqa: BLE001  whatever it is, they must not be lost
            self._burials_failed += 1
            pause = growing_pause(self._burials_failed)
            _log.error(
                "%s: the dead letters take nothing: %s; trying again in %.1f s", self._group, error, pause
            )
            for task in hopeless:
                task.hold_until(time() + pause)
            self._lanes.put_back(hopeless)
            return
        self._burials_failed = 0
        for task in hopeless:
            with log_context(message_id=str(task.record)):
                _log.error("put into the dead letters: %s", task.hopeless)
            task.done()
        self.progress.buried(len(hopeless))

    def _batch_failed(self, batch: Sequence[Task], error: Exception) -> None:
        if len(batch) > 1:
            self._singly = len(batch)
            self.progress.retried("batch")
            _log.warning("%s: a batch failed, its records go one by one", self._group, exc_info=error)
        else:
            self._record_failed(batch[0], error)

    def _record_failed(self, task: Task, error: Exception) -> None:
        """Its own partition waits for it, the others do not; after the third time it is hopeless."""
        task.failures += 1
        self.progress.retried("record")
        with log_context(message_id=str(task.record)):
            _log.warning("failed for the %d. time", task.failures, exc_info=error)
        if task.failures >= FAILURES_BEFORE_DEAD:
            task.hopeless = f"failed {task.failures} times: {error!r}"
        else:
            task.hold_until(time() + growing_pause(task.failures))

    def _transient_trouble(self, error: Exception) -> None:
        """The same trouble awaits every record, so all of them wait."""
        self._transient_failures += 1
        pause = growing_pause(self._transient_failures)
        self._not_before = monotonic() + pause
        self.progress.retried("transient")
        _log.warning("%s: %s; trying again in %.1f s", self._group, error, pause)

    def _leave(self) -> None:
        """A commit can fail while the group is rebalancing: keep polling and try again, for a while."""
        self._settle(self._lanes.all())
        deadline = monotonic() + _COMMIT_PATIENCE_S
        while lanes := self._lanes.all():
            if self._commits.commit_now(self._consumer, lanes) or monotonic() > deadline:
                break
            self._consumer.pause(partitions_of(lanes))
            self._consumer.poll(0.1)
        self.progress.forget(self._lanes.close(partitions_of(self._lanes.all())))

    def _settle(self, lanes: Sequence[Lane]) -> None:
        try:
            self._handler.settle(lanes)
        except Exception as error:  # noqa: BLE001  what was not finished is done again by the next owner
            _log.warning("%s: could not finish what was in flight", self._group, exc_info=error)

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._lanes.open(partitions)
        if partitions:
            self.progress.troubled(None)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        held = (self._lanes.of(partition.topic, partition.partition) for partition in partitions)
        going = [lane for lane in held if lane is not None]
        self._settle(going)
        deadline = monotonic() + _REVOKE_PATIENCE_S
        while not self._commits.commit_now(consumer, going) and monotonic() < deadline:
            sleep(0.1)  # in this callback nobody can poll
        self.progress.forget(self._lanes.close(partitions))

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = self._lanes.close(partitions)
        self._handler.drop(gone)
        self.progress.forget(gone)


class RoleThread(Thread):
    """When one ends that nobody asked to end, the whole process does, and is started again."""

    def __init__(self, name: str, loop: ConsumerLoop, stop: Event) -> None:
        super().__init__(name=name, daemon=True)
        self.loop = loop
        self.failed = False
        self._stop_all = stop

    def run(self) -> None:
        try:
            self.loop.run()
        except Exception:  # noqa: BLE001  the thread's edge
            self.failed = True
            _log.exception("%s has ended", self.name)
        finally:
            self._stop_all.set()
