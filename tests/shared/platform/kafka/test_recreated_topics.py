"""A topic is deleted and recreated under a running consumer, which reads it from the first record on."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from shared.domain.messages import decode, encode
from shared.platform.kafka import recreated_topics
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.kafka.topic_definition import Topic
from tests.shared.platform.kafka.harness import WORK, Collector, Kafka, event, running
from tests.topics import delete_topic
from tests.waiting import eventually

MakeTopics = Callable[[Sequence[Topic]], None]
BEFORE = 6
KEY = "same-partition"


@pytest.fixture
def patient(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """Consumers that find the topic missing retry only after the new one is filled."""
    monkeypatch.setattr(recreated_topics, "_CHECK_EVERY_S", 0.5)
    client = {**kafka.settings.client, "fetch.error.backoff.ms": "1500"}
    kafka.settings = replace(kafka.settings, client=client)
    return kafka


def replace_topic(kafka: Kafka, make_topics: MakeTopics, count: int) -> list[int]:
    delete_topic(kafka.settings, WORK)
    make_topics([WORK])
    numbers = list(range(100, 100 + count))
    kafka.put([event(n) for n in numbers], key=KEY)
    return numbers


@pytest.mark.parametrize("count", [BEFORE - 2, BEFORE, BEFORE + 2])
def test_recreated_topic_is_read_from_its_first_record(
    patient: Kafka, make_topics: MakeTopics, count: int
) -> None:
    """At its old offset the client would find nothing, the end, or all but the first records."""
    patient.put([event(n) for n in range(BEFORE)], key=KEY)
    collector = Collector()
    with running(patient.loop(BatchHandler(collector))):
        eventually(lambda: patient.committed() == BEFORE)
        new = replace_topic(patient, make_topics, count)
        eventually(lambda: set(new) <= set(collector.seen))
        eventually(lambda: patient.committed() == count)


def test_topic_recreated_before_anything_was_read_is_read_completely(
    patient: Kafka, make_topics: MakeTopics
) -> None:
    """A consumer that has just started knows its offsets only from the group, and some not at all."""
    patient.put([event(n) for n in range(BEFORE)], key=KEY)
    with running(patient.loop(BatchHandler(Collector()))):
        eventually(lambda: patient.committed() == BEFORE)
    collector = Collector()
    loop = patient.loop(BatchHandler(collector))
    with running(loop):
        eventually(lambda: patient.members() == 1)
        new = replace_topic(patient, make_topics, BEFORE)
        others = range(200, 240)
        patient.put([event(n) for n in others])
        eventually(lambda: {*new, *others} <= set(collector.seen))
        eventually(lambda: patient.committed() == BEFORE + len(others))
        loop.progress.check()


def test_tasks_of_the_deleted_topic_move_no_offset() -> None:
    """Finishing a task of the old topic does not finish the record with the same offset in the new one."""
    partition = AssignedPartition("work", 0)
    old = _read(partition)
    partition.restart("another")
    new = _read(partition)
    old.done()
    assert partition.position == 0
    new.done()
    assert partition.position == 1


def _read(partition: AssignedPartition) -> Task:
    task = Task(
        partition, Record(partition.topic, partition.partition, 0, None, encode(event(1)), 0.0), decode
    )
    partition.add(task)
    return task
