"""An outbox, the topics it publishes to, and relays that run in threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest

from services.scheduler.job_runner import JobRunner
from services.scheduler.jobs.month_partitions import MonthPartitions
from services.scheduler.jobs.relay import OutboxRelay
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.states import IntentTrigger
from shared.domain.intents.store import apply_trigger, create_or_find, expire_due
from shared.domain.kafka_principals import SCHEDULER
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.settings import DatabaseSettings, KafkaSettings
from tests.database_roles import as_role, open_as
from tests.scheduler.due_intents import Intents
from tests.scheduler.history import KEPT, History
from tests.scheduler.running_jobs import running_jobs
from tests.servers import ServiceProcess
from tests.topics import TopicReader, as_principal


@pytest.fixture
def reader(all_topics: KafkaSettings) -> Iterator[TopicReader]:
    made = TopicReader(all_topics)
    yield made
    made.close()


class Outbox:
    """Writes intents and their changes, as the services do."""

    def __init__(self, database: Database, application_id: UUID) -> None:
        self._database = database
        self._application_id = application_id
        self._orders = 0

    def create(self) -> UUID:
        self._orders += 1
        new = NewIntent(self._application_id, f"order-{self._orders}", 1_000, "LYD")
        with self._database.cursor() as cursor:
            return create_or_find(cursor, new)[0].uuid

    def pay(self, uuid: UUID) -> None:
        with self._database.transaction() as connection:
            apply_trigger(connection, uuid, IntentTrigger.PAYMENT_CONFIRMED)

    def expire(self, uuid: UUID, *, in_a_batch: bool) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "update payment_intents set expires_at = mizan_now() - interval '1 second' where uuid = %s",
                (uuid,),
            )
            if in_a_batch:
                assert expire_due(connection.cursor()) == 1
            else:
                apply_trigger(connection, uuid, IntentTrigger.EXPIRE)

    def waiting(self) -> int:
        with self._database.transaction() as connection:
            row = connection.execute("select count(*) from outbox").fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def outbox(database: Database, application_id: UUID) -> Outbox:
    return Outbox(database, application_id)


class Relays:
    def __init__(self, database: DatabaseSettings, kafka: KafkaSettings) -> None:
        self._database = database
        self.kafka = kafka

    def make(self, stop: Event | None = None) -> OutboxRelay:
        return OutboxRelay(
            self._database, ConfirmingProducer(as_principal(self.kafka, SCHEDULER), "relay"), stop or Event()
        )

    @contextmanager
    def running(self) -> Iterator[JobRunner]:
        stop = Event()
        with running_jobs(self.make(stop), stop=stop) as (runner,):
            yield runner
        assert not runner.thread.is_alive()


@pytest.fixture
def relays(database_settings: DatabaseSettings, kafka_settings: KafkaSettings) -> Relays:
    return Relays(as_role("mizan_scheduler", database_settings), kafka_settings)


MakeScheduler = Callable[[], ServiceProcess]


@pytest.fixture
def make_scheduler(
    repository_root: Path, database_settings: DatabaseSettings, all_topics: KafkaSettings
) -> MakeScheduler:
    return lambda: ServiceProcess("services.scheduler", repository_root, database_settings, all_topics)


@pytest.fixture
def scheduler(make_scheduler: MakeScheduler) -> ServiceProcess:
    return make_scheduler()


@pytest.fixture
def steady(database_settings: DatabaseSettings) -> Iterator[Database]:
    """Return a database that connects as the scheduler does."""
    with open_as("mizan_scheduler", database_settings, "scheduler", **STABLE_PLANS) as made:
        yield made


@pytest.fixture
def intents(database: Database) -> Intents:
    return Intents(database)


@pytest.fixture
def history(database: Database) -> History:
    return History(database)


@pytest.fixture
def partitions_job(steady: Database) -> MonthPartitions:
    return MonthPartitions(steady, KEPT)
