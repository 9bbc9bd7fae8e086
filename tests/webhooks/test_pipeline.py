"""What the delivery pipeline keeps when a record is read again, by the next owner or because it was published again."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import inf
from threading import Event
from uuid import UUID, uuid4

import pytest

from services.webhooks.http.client import WebhookClient, WebhookRequest
from services.webhooks.pipeline import application_queues
from services.webhooks.pipeline.handler import DeliveryPipeline
from services.webhooks.pipeline.lookup import DeliveryLookup, SecretError
from services.webhooks.pipeline.next_action import Drop, NextAction, Send
from services.webhooks.pipeline.queries import DeliveryTarget
from services.webhooks.pipeline.recording import MoveToSlow, RecordAction, Recorder
from services.webhooks.pipeline.tries import TryInProgress
from shared.domain.messages import DeliveryDue, decode, encode
from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.settings import ProxySettings, WebhookSettings
from tests.waiting import eventually

Queues = application_queues.ApplicationQueues[TryInProgress]


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


class SendingLookup(DeliveryLookup):
    """Every try may be sent."""

    def __init__(self, request: WebhookRequest | None = None) -> None:
        self.to_send = request

    def prepare(
        self, tries: Sequence[TryInProgress]
    ) -> Callable[[], list[tuple[TryInProgress, NextAction | SecretError]]]:
        for one in tries:
            one.request = self.to_send
        return lambda: [(one, Send(DeliveryTarget("http://example.com", 1))) for one in tries]


class WaitingRecorder(Recorder):
    """Kafka has confirmed what was published, but the recording takes until it may go on."""

    def __init__(self) -> None:
        self.published: list[RecordAction] = []
        self.go_on = Event()

    def prepare(self, actions: Sequence[tuple[TryInProgress, RecordAction]]) -> Callable[[], None]:
        def record() -> None:
            self.published.extend(action for _, action in actions)
            assert self.go_on.wait(40)

        return record


def due(application: UUID | None = None) -> DeliveryDue:
    return DeliveryDue(uuid4(), application or uuid4(), 1, datetime.now(UTC))


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
    eventually(lambda: handler.poll(0.01) == inf)
    assert again.finished
    handler.close()


def test_record_that_the_slow_pipeline_publishes_to_itself_is_not_taken_for_a_duplicate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: read before its recording had ended, it was finished together with the record it replaces.

    Its delivery stayed pending, with nothing left in Kafka, until the scheduler requeued it.
    """
    monkeypatch.setattr(application_queues, "MAX_QUEUED_IN_SLOW", 2)
    recorder, client = WaitingRecorder(), WebhookClient[TryInProgress](allow_private=True)
    handler = DeliveryPipeline(
        "test", SendingLookup(), recorder, client, WebhookSettings(in_flight=0), has_slow_pipeline=False
    )
    partition, application = AssignedPartition("t", 0), uuid4()
    kept, surplus = due(application), due(application)
    moved = read(partition, 1, surplus)
    handler.handle([read(partition, 0, kept), moved])
    eventually(lambda: handler.poll(0.01) < inf and recorder.published)
    assert recorder.published == [MoveToSlow()]
    published = read(partition, 2, surplus)
    handler.handle([published])
    recorder.go_on.set()
    eventually(lambda: handler.poll(0.01) < inf and moved.finished)
    assert not published.finished
    assert partition.requeued == [(published, None)]
    handler.close()


def test_time_that_the_proxy_took_is_not_taken_for_the_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging proxy would make every endpoint one that hangs, which is only probed."""
    durations: list[float | None] = []
    release = application_queues.ApplicationQueues.release

    def note_release(self: Queues, application: str, slot: int, duration_s: float | None) -> None:
        durations.append(duration_s)
        release(self, application, slot, duration_s)

    monkeypatch.setattr(application_queues.ApplicationQueues, "release", note_release)
    client = WebhookClient[TryInProgress](
        allow_private=True,
        proxy=ProxySettings("127.0.0.1", 1),
        resolve_host=lambda _host, _port: ["93.184.216.34"],
    )
    lookup = SendingLookup(WebhookRequest("http://example.com", b"{}", "0" * 64))
    handler = DeliveryPipeline(
        "test", lookup, NoRecorder(), client, WebhookSettings(), has_slow_pipeline=True
    )
    handler.handle([read(AssignedPartition("t", 0), 1, due())])
    eventually(lambda: handler.poll(0.01) == inf)
    handler.close()
    assert durations == [None]


def test_try_belongs_only_to_partitions_that_are_not_revoked() -> None:
    ended, going = AssignedPartition("t", 0), AssignedPartition("t", 0)
    message = due()
    one = TryInProgress(message, read(ended, 1, message))
    one.tasks.append(read(going, 1, message))
    ended.revoked = True
    assert one.belongs_only_to({going})
    assert not one.belongs_only_to(set())
