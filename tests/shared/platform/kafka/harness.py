"""A topic with events, a consumer loop in a thread, and helpers to inspect the results."""

import sys
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import UUID, uuid4

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import MemberDescription

from shared.domain.dead_letters.producer import KafkaDeadLetterProducer
from shared.domain.intents.states import EventType
from shared.domain.messages import DeadLetter, IntentEvent, decode, encode
from shared.domain.topics import DEAD_LETTERS
from shared.platform.kafka import clients
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.handlers import Handler
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after
from shared.platform.kafka.records import Task
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from tests.topics import TopicReader

WORK = Topic("work", 4, timedelta(days=1), key="intent uuid")
GROUP = "worker"


def event(seq: int, intent: UUID | None = None) -> IntentEvent:
    return IntentEvent(
        id=uuid4(),
        intent_uuid=intent or uuid4(),
        application_id=uuid4(),
        seq=seq,
        type=EventType.CREATED,
        at=datetime.now(UTC),
    )


def seq(task: Task) -> int:
    assert isinstance(task.message, IntentEvent)
    return task.message.seq


class Collector:
    """A handler function that remembers what it handled."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.by_partition: dict[int, list[int]] = defaultdict(list)

    def __call__(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.see(task)

    def see(self, task: Task) -> None:
        self.seen.append(seq(task))
        self.by_partition[task.record.partition].append(task.record.offset)


class Kafka:
    """A work topic, its consumer group and the dead-letter topic."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._producer = ConfirmingProducer(settings, "test")
        self._admin = clients.admin(settings, "test")
        self._onlooker = clients.consumer(settings, GROUP)

    def put(self, messages: Sequence[IntentEvent | bytes], key: str | None = None) -> None:
        outgoing = [
            OutgoingRecord(
                WORK.name,
                key if key is not None or isinstance(message, bytes) else str(message.intent_uuid),
                message if isinstance(message, bytes) else encode(message),
            )
            for message in messages
        ]
        self._producer.send(outgoing, on_wait=raise_after(30))

    def loop(self, handler: Handler) -> ConsumerLoop:
        return ConsumerLoop(
            self.settings, GROUP, [WORK.name], handler, KafkaDeadLetterProducer(self.settings), decode=decode
        )

    def committed(self) -> int:
        """Return how many records of the work topic are committed, over all partitions."""
        topic = clients.topic_name(self.settings, WORK.name)
        # AdminClient.list_consumer_group_offsets of librdkafka 2.16 crashes while the coordinator moves.
        places = [TopicPartition(topic, n) for n in range(WORK.partitions)]
        try:
            partitions = self._onlooker.committed(places, timeout=10)
        except KafkaException:  # a fresh broker is still looking for the group's coordinator
            return 0
        return sum(max(0, partition.offset) for partition in partitions)

    def members(self) -> int:
        """Return how many consumers have partitions in the group; 0 while the group is not stable."""
        return sum(bool(member.assignment.topic_partitions) for member in self._stable_members())

    def joined(self) -> int:
        """Return how many consumers are in the group, also those without partitions; 0 while it is not stable."""
        return len(self._stable_members())

    def _stable_members(self) -> list[MemberDescription]:
        (future,) = self._admin.describe_consumer_groups([clients.group_name(self.settings, GROUP)]).values()
        try:
            group = future.result(10)
        except KafkaException:  # a fresh broker is still looking for the group's coordinator
            return []
        return list(group.members) if group.state.name == "STABLE" else []

    def dead_letters(self) -> list[DeadLetter]:
        reader = TopicReader(self.settings, DEAD_LETTERS.name)
        letters = [message for message in reader.read_to_end() if isinstance(message, DeadLetter)]
        reader.close()
        return sorted(letters, key=lambda letter: (letter.partition, letter.offset))


@contextmanager
def running(*loops: ConsumerLoop) -> Iterator[None]:
    """Run each loop in its own thread; whatever one raises fails the test."""
    raised: list[BaseException] = []

    def run(loop: ConsumerLoop) -> None:
        try:
            loop.run()
        except BaseException as error:  # noqa: BLE001  handed to the test
            raised.append(error)

    threads = [Thread(target=run, args=(loop,), daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.stop()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), f"the loop did not stop; it is here:\n{_place_of(thread)}"
    assert not raised, raised


def _place_of(thread: Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame else "gone by now"
