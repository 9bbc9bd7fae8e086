"""Owners of records take turns: a burst of one does not keep the others waiting, and nothing is lost or reordered."""

from collections.abc import Sequence
from time import time
from uuid import UUID, uuid4

import msgspec
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.messages import IntentEvent, decode, encode
from shared.platform.kafka.assignment import Assignment
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import Record, Task
from tests.shared.platform.kafka.harness import Kafka, event, running
from tests.waiting import eventually

BURST = 2_500


def _owner(task: Task) -> UUID:
    assert isinstance(task.message, IntentEvent)
    return task.message.application_id


def _assigned(owners: Sequence[tuple[int, UUID]]) -> Assignment:
    """Return an assignment whose partitions have a record of each of these owners."""
    assignment = Assignment(_owner)
    assignment.add([TopicPartition("t", number) for number in range(3)])
    for offset, (number, owner) in enumerate(owners):
        partition = assignment.get("t", number)
        assert partition is not None
        value = encode(_event_of(owner, offset))
        partition.add(Task(partition, Record("t", number, offset, None, value, 0.0), decode))
    return assignment


def _event_of(owner: UUID, seq: int) -> IntentEvent:
    return msgspec.structs.replace(event(seq), application_id=owner)


_OWNERS = [uuid4() for _ in range(4)]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(_OWNERS)), max_size=60),
    st.lists(st.integers(1, 20), min_size=60, max_size=60),
)
def test_each_record_is_handed_out_once_and_an_owners_in_order(
    owners: list[tuple[int, UUID]], limits: list[int]
) -> None:
    """In order within a partition. In each batch the owners who have records have as many, as far as they have."""
    assignment = _assigned(owners)
    batches = [assignment.next_batch(limit) for limit in limits]
    handed_out = [task for batch in batches for task in batch]
    assert sorted(task.record.offset for task in handed_out) == list(range(len(owners)))
    for owner in _OWNERS:
        for number in range(3):
            mine = [
                t.record.offset for t in handed_out if _owner(t) == owner and t.record.partition == number
            ]
            assert mine == sorted(mine)
    for number, batch in enumerate(batches):
        waiting = [task for later in batches[number + 1 :] for task in later]
        shares = {owner: sum(_owner(task) == owner for task in batch) for owner in _OWNERS}
        for owner in {_owner(task) for task in waiting}:
            assert shares[owner] >= max(shares.values()) - 1


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(_OWNERS)), max_size=40), st.integers(1, 40))
def test_records_of_a_failed_batch_return_to_their_places(owners: list[tuple[int, UUID]], limit: int) -> None:
    assignment = _assigned(owners)
    assignment.requeue(assignment.next_batch(limit))
    waiting = [[task.record.offset for task in partition.backlog] for partition in assignment.all()]
    assert sum(map(len, waiting)) == len(owners)
    assert all(offsets == sorted(offsets) for offsets in waiting)


def test_held_record_keeps_its_partition_waiting() -> None:
    first, second = _OWNERS[:2]
    assignment = _assigned([(0, first), (0, second), (1, first), (1, second), (1, second)])
    partition = assignment.get("t", 0)
    assert partition is not None
    partition.backlog[0].hold_until(time() + 60)
    batch = assignment.next_batch(2)
    assert [(task.record.partition, _owner(task)) for task in batch] == [(1, first), (1, second)]
    assert [task.record.partition for task in assignment.next_batch(9)] == [1]
    assert len(partition.backlog) == 2


def test_record_behind_a_burst_of_another_owner_is_in_the_first_batches(kafka: Kafka) -> None:
    noisy, quiet = uuid4(), uuid4()
    kafka.put([_event_of(noisy, n) for n in range(BURST)])
    kafka.put([_event_of(quiet, BURST + n) for n in range(5)])
    handled: list[UUID] = []
    handler = BatchHandler(lambda tasks: handled.extend(map(_owner, tasks)), 100)
    with running(kafka.loop(handler, owner_of=_owner)):
        eventually(lambda: kafka.committed() == BURST + 5)
    assert len(handled) == BURST + 5
    assert handled.index(quiet) < BURST // 2
