"""Applications take turns in a queue: a burst of one does not hold up the others, and nothing is lost or reordered."""

from collections import Counter
from datetime import UTC, datetime
from itertools import chain
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from services.webhooks.pipeline.batches import LookupQueue
from services.webhooks.pipeline.fair_queue import FairQueue
from services.webhooks.pipeline.tries import TryInProgress
from shared.domain.messages import DeliveryDue, decode
from shared.platform.kafka.records import AssignedPartition, Record, Task

Item = tuple[str, int]


def _queue(*items: Item) -> FairQueue[Item]:
    queue: FairQueue[Item] = FairQueue(lambda item: item[0])
    for item in items:
        queue.add(item)
    return queue


_ITEMS = st.lists(st.sampled_from("abcd"), max_size=60).map(
    lambda names: [(name, number) for number, name in enumerate(names)]
)


@given(_ITEMS, st.lists(st.integers(1, 20), min_size=60, max_size=60))
def test_each_item_is_taken_once_and_an_applications_in_order(items: list[Item], limits: list[int]) -> None:
    """In each batch the applications that have items left have the same share."""
    queue = _queue(*items)
    batches = [queue.next_batch(limit) for limit in limits]
    taken = list(chain(*batches))
    assert sorted(taken, key=lambda item: item[1]) == items
    assert len(queue) == 0
    for application in "abcd":
        mine = [number for name, number in taken if name == application]
        assert mine == sorted(mine)
    for number, batch in enumerate(batches):
        shares = Counter(name for name, _ in batch)
        for application in {name for name, _ in chain(*batches[number + 1 :])}:
            assert shares[application] >= max(shares.values(), default=0) - 1


@given(_ITEMS, st.integers(1, 60))
def test_requeued_batch_comes_first_and_in_order(items: list[Item], limit: int) -> None:
    queue = _queue(*items)
    queue.requeue(queue.next_batch(limit))
    assert len(queue) == len(items)
    again = queue.next_batch(len(items))
    for application in "abcd":
        assert [item for item in again if item[0] == application] == [
            item for item in items if item[0] == application
        ]


@given(_ITEMS)
def test_unwanted_items_are_removed(items: list[Item]) -> None:
    queue = _queue(*items)
    removed = queue.remove(lambda item: item[1] % 2 == 0)
    left = queue.next_batch(len(items) + 1)
    assert sorted([*removed, *left], key=lambda item: item[1]) == items
    assert {number % 2 for _, number in removed} <= {0}
    assert {number % 2 for _, number in left} <= {1}
    assert len(queue) == 0


def test_applications_take_turns_from_batch_to_batch() -> None:
    """Also if a batch is smaller than the number of applications."""
    queue = _queue(*[(name, number) for number in range(3) for name in "abc"])
    assert "".join(name for _ in range(9) for name, _ in queue.next_batch(1)) == "abcabcabc"
    queue = _queue(*[(name, number) for number in range(2) for name in "abc"])
    assert "".join(name for _ in range(3) for name, _ in queue.next_batch(2)) == "abcabc"


def test_applications_of_a_requeued_batch_are_served_next() -> None:
    """So a batch that fails is tried again in smaller ones at once, however many others wait."""
    queue = _queue(*[(name, number) for number in range(2) for name in "abcd"])
    batch = queue.next_batch(2)
    queue.requeue(batch)
    assert queue.next_batch(2) == batch


def test_batches_are_small_while_several_applications_arrive() -> None:
    burst = [("noisy", number) for number in range(1_000)]
    assert len(_queue(*burst).next_batch(1_000)) == 1_000
    shared = _queue(*burst, ("quiet", 0))
    first = shared.next_batch(1_000)
    assert len(first) < 200
    assert ("quiet", 0) in first


def test_postponed_tries_are_removed_too() -> None:
    queue = LookupQueue()
    now, later = _try(1), _try(2)
    queue.add(now)
    queue.add_later(later, 60)
    assert queue.postponed == 1
    assert queue.next_batch(9) == [now]
    assert queue.remove(lambda one: one is later) == [later]
    assert queue.postponed == 0


def _try(number: int) -> TryInProgress:
    message = DeliveryDue(UUID(int=number), uuid4(), 1, datetime.now(UTC))
    task = Task(AssignedPartition("t", 0), Record("t", 0, number, None, None, 0), decode)
    return TryInProgress(message, task)
