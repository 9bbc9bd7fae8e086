"""The queue in front of the look-up: applications take turns, and the tries of each stay in order."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from services.webhooks.pipeline.batches import LookupQueue
from services.webhooks.pipeline.tries import TryInProgress, try_key
from shared.domain.messages import DeliveryDue, decode
from shared.platform.kafka.records import AssignedPartition, Record, Task

NOISY, QUIET, THIRD = uuid4(), uuid4(), uuid4()


def _try(application: UUID, number: int) -> TryInProgress:
    message = DeliveryDue(UUID(int=number), application, 1, datetime.now(UTC))
    partition = AssignedPartition("t", 0)
    return TryInProgress(
        message, try_key(message), Task(partition, Record("t", 0, number, None, None, 0), decode)
    )


def _queue(*tries: TryInProgress) -> LookupQueue:
    queue = LookupQueue()
    for one in tries:
        queue.add(one)
    return queue


def test_tries_of_others_do_not_wait_behind_a_burst() -> None:
    burst = [_try(NOISY, number) for number in range(1_000)]
    others = [_try(QUIET, 2_000), _try(THIRD, 3_000), _try(THIRD, 3_001)]
    queue = _queue(*burst, *others)
    first = queue.next_batch(10)
    assert len(first) == 10
    assert set(others) <= set(first)
    rest = queue.next_batch(10_000)
    assert [one for one in (*first, *rest) if one in set(burst)] == burst
    assert not queue.next_batch(1)


def test_requeued_batch_comes_first_and_in_order() -> None:
    tries = [_try(NOISY, 1), _try(NOISY, 2), _try(QUIET, 3), _try(NOISY, 4)]
    queue = _queue(*tries)
    batch = queue.next_batch(3)
    queue.requeue(batch)
    again = queue.next_batch(4)
    assert set(again) == set(tries)
    assert [one for one in again if one.application_id == str(NOISY)] == [tries[0], tries[1], tries[3]]


def test_unwanted_tries_are_removed() -> None:
    tries = [_try(NOISY, 1), _try(QUIET, 2), _try(NOISY, 3)]
    queue = _queue(*tries)
    later = _try(QUIET, 4)
    queue.add_later(later, 60)
    assert queue.remove(lambda one: one.application_id == str(QUIET)) == [tries[1], later]
    assert queue.next_batch(9) == [tries[0], tries[2]]
    assert queue.postponed == 0
