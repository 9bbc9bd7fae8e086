"""Intake as the handler of a consumer: turns, batches that fail, and what happens to revoked partitions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import psycopg
import pytest

from services.webhooks.intake import Intake
from shared.domain.messages import IntentEvent, decode, encode
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.settings import DatabaseSettings
from tests.database_roles import as_role
from tests.webhooks.conftest import MakeMerchant
from tests.webhooks.merchants import webhook_events

URL = "https://shop.example/hooks"


class Published(ConfirmingProducer):
    """Keeps what is published: where it goes is tested with Kafka elsewhere."""

    def __init__(self) -> None:
        self.applications: list[str] = []
        self.failures: list[Exception] = []

    def send(self, records: Sequence[OutgoingRecord], **_: Any) -> None:
        if self.failures:
            raise self.failures.pop()
        self.applications += [str(record.key) for record in records]


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
def intake(database_settings: DatabaseSettings, published: Published) -> Iterator[Intake]:
    settings = as_role("mizan_webhooks", replace(database_settings, statement_timeout_s=110))
    database = Database(settings, "webhooks", **STABLE_PLANS)
    yield Intake(database, published)
    database.close()


def _tasks(events: Sequence[IntentEvent]) -> list[Task]:
    """Return a task for each event, in one partition."""
    partition = AssignedPartition("payment_intents.events", 0)
    tasks = [
        Task(partition, Record(partition.topic, 0, offset, None, encode(event), 0.0), decode)
        for offset, event in enumerate(events)
    ]
    for task in tasks:
        partition.add(task)
    return tasks


def test_events_of_others_do_not_wait_behind_a_burst(
    make_merchant: MakeMerchant, database: Database, intake: Intake, published: Published
) -> None:
    noisy, quiet = make_merchant(URL), make_merchant(URL)
    for _ in range(300):
        noisy.create_event()
    quiet.create_event()
    events = sorted(webhook_events(database), key=lambda event: event.application_id == quiet.id)
    tasks = _tasks(events)
    intake.handle(tasks)
    assert intake.poll(0) == 0
    assert str(quiet.id) in published.applications
    assert len(published.applications) < 200
    while intake.poll(0) == 0:
        pass
    assert len(published.applications) == 301
    assert all(task.finished for task in tasks)


def test_nothing_is_lost_while_the_database_is_away(
    make_merchant: MakeMerchant, database: Database, intake: Intake, published: Published
) -> None:
    """The loop pauses and calls again."""
    shop = make_merchant(URL)
    shop.create_event()
    (task,) = _tasks(webhook_events(database))
    intake.handle([task])
    published.failures = [DatabaseUnavailableError("away"), DatabaseUnavailableError("away")]
    for _ in range(2):
        with pytest.raises(DatabaseUnavailableError):
            intake.poll(0)
        assert not task.finished
        assert intake.capacity() == 0
    assert intake.poll(0) == inf
    assert intake.capacity() > 0
    assert published.applications == [str(shop.id)]
    assert task.finished


def test_event_that_always_fails_is_handed_back_alone(
    make_merchant: MakeMerchant, database: Database, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer loop counts its failures, and sends it to the dead letters. The others are taken in.

    It is found soon, although another application has many events.
    """
    shop, noisy = make_merchant(URL), make_merchant(URL)
    for merchant, count in ((shop, 5), (noisy, 300)):
        for _ in range(count):
            merchant.create_event()
    events = sorted(webhook_events(database), key=lambda event: event.application_id == noisy.id)
    tasks = _tasks(events)
    culprit = tasks[3]
    take_in = intake._take_in

    def fail(batch: Sequence[Task]) -> None:
        if culprit in batch:
            raise psycopg.DataError("not this one")
        take_in(batch)

    monkeypatch.setattr(intake, "_take_in", fail)
    intake.handle(tasks)
    while not culprit.partition.requeued:
        assert intake.poll(0) == 0
    assert sum(task.finished for task in tasks) < 50
    while intake.poll(0) == 0:
        pass
    ((returned, error),) = culprit.partition.requeued
    assert returned is culprit
    assert isinstance(error, psycopg.DataError)
    assert [task for task in tasks if not task.finished] == [culprit]


def test_events_of_a_revoked_partition_are_left_to_its_next_owner(
    make_merchant: MakeMerchant, database: Database, intake: Intake, published: Published
) -> None:
    going, staying = make_merchant(URL), make_merchant(URL)
    for shop in (going, staying):
        shop.create_event()
    events = sorted(webhook_events(database), key=lambda event: event.application_id == staying.id)
    gone, kept = _tasks(events[:1]), _tasks(events[1:])
    intake.handle([*gone, *kept])
    intake.drain([gone[0].partition])
    assert intake.poll(0) == inf
    assert published.applications == [str(staying.id)]
    assert (gone[0].finished, kept[0].finished) == (False, True)
