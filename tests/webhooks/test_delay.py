"""Delay topics: records are never early, hardly late, and waiting costs almost nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from time import process_time, sleep, time
from uuid import UUID, uuid4

from services.webhooks.outgoing import to_delay
from shared.domain.messages import DeliveryDue
from shared.domain.topics import WEBHOOKS_DELIVER
from shared.platform.kafka.consumer_loop import ConsumerLoop
from tests.clock import Clock
from tests.topics import TopicReader
from tests.waiting import eventually
from tests.webhooks.conftest import Webhooks

APPLICATIONS = [uuid4() for _ in range(10)]


def waiting(count: int, *, first_in_s: float, over_s: float, step: int = 2) -> list[DeliveryDue]:
    """Return records in the order in which they are due."""
    now = datetime.now(UTC)
    return [
        DeliveryDue(
            uuid4(), APPLICATIONS[n % 10], step, now + timedelta(seconds=first_in_s + over_s * n / count)
        )
        for n in range(count)
    ]


def is_holding_records(loops: Sequence[ConsumerLoop]) -> bool:
    return any(partition.backlog for loop in loops for partition in loop._assignment.all())


class MovedRecords(TopicReader):
    """Reads what was moved to webhooks.deliver, and when."""

    def __init__(self, webhooks: Webhooks) -> None:
        super().__init__(webhooks.settings.kafka, WEBHOOKS_DELIVER.name)
        self.at: dict[UUID, float] = {}

    def _consume(self, seconds: float) -> None:
        known = len(self.messages)
        super()._consume(seconds)
        for message in self.messages[known:]:
            assert isinstance(message, DeliveryDue)
            self.at[message.id] = time()


def test_thousands_of_records_are_moved_on_time(webhooks: Webhooks) -> None:
    """More than are held in memory at once: none early, each once, in order for each application."""
    records = waiting(10_000, first_in_s=2, over_s=1)
    webhooks.publish([to_delay(record) for record in records])
    moved = MovedRecords(webhooks)
    with webhooks.running("delay.1"):
        arrived = moved.read(len(records))
    moved.close()
    assert len(arrived) == len(records)
    for record in records:
        assert moved.at[record.id] >= record.due_at.timestamp()
    for application in APPLICATIONS:
        mine = [m.id for m in arrived if isinstance(m, DeliveryDue) and m.application_id == application]
        assert mine == [record.id for record in records if record.application_id == application]


def test_waiting_uses_little_cpu(webhooks: Webhooks) -> None:
    """Eight topics with thousands of records that wait for hours take a small share of a core."""
    webhooks.publish(
        [
            to_delay(record)
            for step in range(2, 10)
            for record in waiting(1000, first_in_s=3600, over_s=10, step=step)
        ]
    )
    moved = MovedRecords(webhooks)
    with webhooks.running("delay") as loops:
        eventually(
            lambda: all(
                sum(len(partition.backlog) for partition in loop._assignment.all()) == 1000 for loop in loops
            )
        )
        began, wall = process_time(), time()
        sleep(2)  # the test measures a period of time
        assert (process_time() - began) / (time() - wall) < 0.5
    assert moved.read_to_end() == []
    moved.close()


def test_database_clock_decides_when_records_are_due(webhooks: Webhooks, quick_clock: Clock) -> None:
    """Not the clock of this machine."""
    records = waiting(50, first_in_s=3600, over_s=1)
    webhooks.publish([to_delay(record) for record in records])
    moved = MovedRecords(webhooks)
    with webhooks.running("delay.1") as loops:
        eventually(
            lambda: (
                sum(len(partition.backlog) for loop in loops for partition in loop._assignment.all()) == 50
            )
        )
        assert moved.read_to_end() == []
        quick_clock.advance(timedelta(hours=2))
        assert len(moved.read(50)) == 50
    moved.close()


def test_records_are_not_early_if_the_database_clock_is_behind(webhooks: Webhooks, clock: Clock) -> None:
    clock.advance(timedelta(hours=-1))
    webhooks.publish([to_delay(record) for record in waiting(5, first_in_s=-1, over_s=0)])
    moved = MovedRecords(webhooks)
    with webhooks.running("delay.1") as loops:
        eventually(
            lambda: sum(len(partition.backlog) for loop in loops for partition in loop._assignment.all()) == 5
        )
        assert moved.read_to_end() == []
    moved.close()


def test_held_records_survive_a_rebalance(webhooks: Webhooks, quick_clock: Clock) -> None:
    """A partition that is assigned to the same process again is read again from its first uncommitted record."""
    records = waiting(400, first_in_s=3600, over_s=1)
    webhooks.publish([to_delay(record) for record in records])
    moved = MovedRecords(webhooks)
    with webhooks.running("delay.1"):
        for _ in range(2):
            with webhooks.running("delay.1") as others:
                eventually(partial(is_holding_records, others))
        assert moved.read_to_end() == []
        quick_clock.advance(timedelta(hours=2))
        arrived = moved.read(400)
    moved.close()
    assert {m.id for m in arrived if isinstance(m, DeliveryDue)} == {record.id for record in records}
