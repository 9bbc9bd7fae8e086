"""What follows from a try is published, whatever fails between recording and publishing."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import time

import pytest

from services.webhooks.http.client import TryResult
from services.webhooks.outgoing import to_requeue
from services.webhooks.pipeline import recording
from services.webhooks.pipeline.batches import BatchStage, RecordQueue
from services.webhooks.pipeline.next_action import SetAside
from services.webhooks.pipeline.queries import ScheduledTry, record_tries
from services.webhooks.pipeline.recording import Completed, Recorder
from services.webhooks.pipeline.tries import TryInProgress
from shared.domain.messages import DeliveryDue, decode, encode
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.settings import WebhookSettings
from tests.waiting import eventually
from tests.webhooks.conftest import MakeMerchant
from tests.webhooks.merchants import Merchant, first_tries, webhook_events

DELAYS = WebhookSettings().retry_delays


class FakeProducer(ConfirmingProducer):
    """A producer that keeps the topics of its records, and may fail."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.errors: list[Exception] = []

    def send(self, records: Sequence[OutgoingRecord], *, on_wait: object) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.topics += [record.topic for record in records]


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def shop(make_merchant: MakeMerchant) -> Merchant:
    return make_merchant("http://127.0.0.1:1/")


def tries(database: Database, merchant: Merchant, count: int) -> list[TryInProgress]:
    """Create deliveries and return their first tries, in progress."""
    for _ in range(count):
        merchant.create_event()
    with database.cursor() as cursor:
        due = first_tries(cursor, webhook_events(database))
    return [TryInProgress(one, task(one)) for one in due]


def task(due: DeliveryDue) -> Task:
    return Task(
        AssignedPartition("webhooks.deliver", 0),
        Record("webhooks.deliver", 0, 1, b"k", encode(due), 0.0),
        decode,
    )


def failed() -> Completed:
    return Completed(TryResult(time(), 5, 500, None, b""))


def test_try_is_published_if_the_confirmation_of_its_commit_is_lost(
    database: Database, shop: Merchant, producer: FakeProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL has recorded the try, and the connection broke before it confirmed that."""
    (one,) = tries(database, shop, 1)
    record = Recorder(database, producer, DELAYS).prepare([(one, failed())])

    def lose_confirmation(cursor: object, made: Sequence[ScheduledTry]) -> None:
        record_tries(cursor, made)  # type: ignore[arg-type]
        raise DatabaseUnavailableError("connection lost")

    with monkeypatch.context() as broken:
        broken.setattr(recording, "record_tries", lose_confirmation)
        with pytest.raises(DatabaseUnavailableError):
            record()
    record()
    assert producer.topics == ["webhooks.delay.1"]
    assert len(shop.tries(one.message.id)) == 1


def test_try_is_published_once_if_a_later_statement_of_its_batch_fails(
    database: Database, shop: Merchant, producer: FakeProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tries(database, shop, 2)
    record = Recorder(database, producer, DELAYS).prepare([(first, failed()), (second, SetAside())])

    def fails(*_: object) -> int:
        raise DatabaseUnavailableError("connection lost")

    with monkeypatch.context() as broken:
        broken.setattr(recording, "set_aside", fails)
        with pytest.raises(DatabaseUnavailableError):
            record()
    record()
    assert producer.topics == ["webhooks.delay.1"]


def test_batch_refused_by_kafka_is_recorded_and_published_item_by_item(
    database: Database, shop: Merchant, producer: FakeProducer
) -> None:
    producer.errors = [NotConfirmedError({}, 2)]
    waiting = RecordQueue(2)
    finished: list[object] = []
    with ThreadPoolExecutor(1) as threads:
        stage = BatchStage(
            "recording",
            waiting,
            Recorder(database, producer, DELAYS).prepare,
            batch=500,
            threads=threads,
            wake=lambda: None,
        )
        for one in tries(database, shop, 2):
            waiting.add(one, failed())

        def both_are_finished() -> bool:
            stage.start()
            collected = stage.collect()
            if collected is not None:
                assert not isinstance(collected[1], Exception)
                finished.extend(collected[0])
            return len(finished) == 2

        eventually(both_are_finished)
    assert producer.topics == ["webhooks.delay.1"] * 2


def test_try_recorded_by_a_process_that_died_is_published_by_another(
    database: Database, shop: Merchant, producer: FakeProducer
) -> None:
    """Both had the same record, and sent the same try."""
    (one,) = tries(database, shop, 1)
    dying = FakeProducer()
    dying.errors = [RuntimeError("killed")]
    with pytest.raises(RuntimeError, match="killed"):
        Recorder(database, dying, DELAYS).prepare([(one, failed())])()
    Recorder(database, producer, DELAYS).prepare([(one, failed())])()
    assert producer.topics == ["webhooks.delay.1"]


def test_the_ninth_failure_is_published_by_the_second_process(
    database: Database, shop: Merchant, producer: FakeProducer
) -> None:
    (one,) = tries(database, shop, 1)
    shop.execute("update webhook_deliveries set step = 9")
    assert isinstance(one.message, DeliveryDue)
    last = DeliveryDue(one.message.id, one.message.application_id, 9, one.message.due_at)
    for process in (FakeProducer(), producer):
        Recorder(database, process, DELAYS).prepare([(TryInProgress(last, task(last)), failed())])()
    assert producer.topics == ["webhooks.dead"]


REQUEUED = [
    # due in seconds, and the topic
    (-5.0, "webhooks.deliver"),
    (0.0, "webhooks.deliver"),
    (0.5, "webhooks.delay.1"),
    (10.0, "webhooks.delay.1"),
    (10.1, "webhooks.delay.2"),
    (4 * 3600.0, "webhooks.delay.7"),
    (12 * 3600.0, "webhooks.delay.8"),
    (99 * 3600.0, "webhooks.delay.8"),
]


@pytest.mark.parametrize(("due_in_s", "topic"), REQUEUED)
def test_a_requeued_delivery_does_not_wait_behind_others_due_much_later(
    database: Database, shop: Merchant, due_in_s: float, topic: str
) -> None:
    (one,) = tries(database, shop, 1)
    assert isinstance(one.message, DeliveryDue)
    assert to_requeue(one.message, due_in_s, DELAYS).topic == topic
