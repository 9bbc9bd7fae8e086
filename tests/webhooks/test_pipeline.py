"""What the delivery pipeline keeps when partitions are revoked and assigned again."""

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


class UnavailableLookup(DeliveryLookup):
    """A database that is unavailable, until it is back and every record can be dropped."""

    def __init__(self) -> None:
        self.is_unavailable = True
        self.calls = 0

    def prepare(
        self, tries: Sequence[TryInProgress]
    ) -> Callable[[], list[tuple[TryInProgress, NextAction | SecretError]]]:
        def look_up() -> list[tuple[TryInProgress, NextAction | SecretError]]:
            self.calls += 1
            if self.is_unavailable:
                raise DatabaseUnavailableError("unavailable")
            return [(one, Drop()) for one in tries]

        return look_up


class NoRecorder(Recorder):
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


def test_record_is_not_lost_if_its_partition_returns_while_the_database_is_down() -> None:
    """Regression: the record, read again, was forgotten with the look-up that was running for the first reading."""
    lookup, client = UnavailableLookup(), WebhookClient[TryInProgress](allow_private=True)
    handler = DeliveryPipeline(
        "test", lookup, NoRecorder(), client, WebhookSettings(), has_slow_pipeline=True
    )
    before, after, message = AssignedPartition("t", 0), AssignedPartition("t", 0), due()
    handler.handle([read(before, 7, message)])

    def has_looked_up() -> bool:
        handler.poll(0.01)
        return lookup.calls > 0

    eventually(has_looked_up)
    handler.discard([before])
    before.revoked = True
    again = read(after, 7, message)
    handler.handle([again])
    lookup.is_unavailable = False
    eventually(lambda: not handler.poll(0.01))
    assert again.finished
    handler.close()


def test_try_belongs_only_to_partitions_that_are_not_revoked() -> None:
    ended, going = AssignedPartition("t", 0), AssignedPartition("t", 0)
    message = due()
    one = TryInProgress(message, try_key(message), read(ended, 1, message))
    one.tasks.append(read(going, 1, message))
    ended.revoked = True
    assert one.belongs_only_to({going})
    assert not one.belongs_only_to(set())
