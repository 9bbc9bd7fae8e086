"""A partition's handler by itself: what it keeps when partitions go away and come back."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import uuid4

from services.webhooks.http.client import WebhookClient
from services.webhooks.pipeline.handler import DeliveryPipeline
from services.webhooks.pipeline.lookup import DeliveryLookup, SecretError
from services.webhooks.pipeline.next_action import Drop, NextAction
from services.webhooks.pipeline.recording import RecordAction, Recorder
from services.webhooks.pipeline.tries import TryInProgress, try_key
from shared.domain.messages import DeliveryDue, decode, encode
from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.settings import WebhookSettings
from tests.waiting import eventually


class LooksAway(DeliveryLookup):
    """A database that is away, until it is back and knows of nothing to do."""

    def __init__(self) -> None:
        self.is_away = True
        self.asked = 0

    def prepare(
        self, tries: Sequence[TryInProgress]
    ) -> Callable[[], list[tuple[TryInProgress, NextAction | SecretError]]]:
        def look() -> list[tuple[TryInProgress, NextAction | SecretError]]:
            self.asked += 1
            if self.is_away:
                raise DatabaseUnavailableError("away")
            return [(one, Drop()) for one in tries]

        return look


class RecordsNothing(Recorder):
    def __init__(self) -> None:
        pass

    def prepare(self, results: Sequence[tuple[TryInProgress, RecordAction]]) -> Callable[[], None]:
        return lambda: None


def due() -> DeliveryDue:
    return DeliveryDue(uuid4(), uuid4(), 1, datetime.now(UTC))


def read(partition: AssignedPartition, offset: int, message: DeliveryDue) -> Task:
    task = Task(
        partition, Record(partition.topic, partition.partition, offset, b"k", encode(message), 0.0), decode
    )
    partition.add(task)
    partition.backlog.popleft()
    return task


def test_a_partition_that_comes_back_while_the_database_is_away() -> None:
    """Its record, read again, was forgotten with the look that was under way for the first reading."""
    looking, sender = LooksAway(), WebhookClient[TryInProgress](allow_private=True)
    handler = DeliveryPipeline(
        "test", looking, RecordsNothing(), sender, WebhookSettings(), has_slow_pipeline=True
    )
    before, after, message = AssignedPartition("t", 0), AssignedPartition("t", 0), due()
    handler.handle([read(before, 7, message)])

    def looks() -> bool:
        handler.poll(0.01)
        return looking.asked > 0

    eventually(looks)
    handler.discard([before])
    before.revoked = True
    again = read(after, 7, message)
    handler.handle([again])
    looking.is_away = False
    eventually(lambda: not handler.poll(0.01))
    assert again.finished
    handler.close()


def test_a_try_of_a_lane_that_has_ended_belongs_to_those_that_have_not() -> None:
    ended, going = AssignedPartition("t", 0), AssignedPartition("t", 0)
    message = due()
    one = TryInProgress(message, try_key(message), read(ended, 1, message))
    one.tasks.append(read(going, 1, message))
    ended.revoked = True
    assert one.belongs_only_to({going})
    assert not one.belongs_only_to(set())
