"""Mizan with webhooks, for measurements: a database, topics, applications with an address, and their services."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic, sleep, time
from typing import Any
from uuid import UUID

import psycopg
from cryptography.fernet import Fernet

from bench.receiver import Receiver
from bench.world import RunningService, World
from shared.domain.applications.registry import NewApplication, create_application, set_webhook_url
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl
from shared.platform.settings import DatabaseSettings, KafkaSettings

_RECORDED_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.005

_PENDING = "select from webhook_deliveries where next_due_at is not null limit 1"
_RECORDED = """
select (select count(*) from webhook_deliveries where application_id = any(%(applications)s)),
       (select count(*) from webhook_deliveries
        where application_id = any(%(applications)s) and status = 'succeeded' and last_status_code = 200),
       (select count(*) from webhook_tries as t join webhook_deliveries as d on d.id = t.delivery_id
        where d.application_id = any(%(applications)s) and t.status_code = 200)
"""


class WebhookInstallation:
    def __init__(self, world: World, connection: psycopg.Connection, database: DatabaseSettings) -> None:
        self._world = world
        self._database = database
        self.connection = connection
        self.kafka: KafkaSettings = world.empty_topics()
        self._key = Fernet.generate_key().decode()

    def application(self, endpoint: Receiver, *, is_silent: bool = False) -> UUID:
        """One whose webhooks go there."""
        with self.connection.transaction():
            created = create_application(self.connection, SecretBox((self._key,)), NewApplication("bench"))
            url = endpoint.hook(str(created.id), created.webhook_secret, is_silent=is_silent)
            set_webhook_url(self.connection, created.id, WebhookUrl(url))
        return created.id

    def scheduler(self) -> AbstractContextManager[RunningService]:
        return self._world.service("services.scheduler", self._database, self.kafka)

    def webhooks(self, *parts: str) -> AbstractContextManager[RunningService]:
        """The service, or a process that plays these parts of it."""
        environment = {"MIZAN_SECRET_KEYS": self._key, "WEBHOOK_ALLOW_PRIVATE": "true"}
        return self._world.service(
            "services.webhooks", self._database, self.kafka, arguments=parts, environment=environment
        )

    def wait_recorded(self) -> float:
        """When nothing is pending any more, as `time.time()`; to be called once all was received.

        Looking is cheap, and begins when the measurement is all but over.
        """
        deadline = monotonic() + _RECORDED_WITHIN_S
        while self.connection.execute(_PENDING).rowcount:
            assert monotonic() < deadline, "not all that was received is recorded"
            sleep(_LOOK_EVERY_S)
        return time()

    def check_recorded_once(self, applications: list[UUID], count: int) -> None:
        """These applications have so many deliveries; each succeeded, with one try that did."""
        recorded = self.row(_RECORDED, {"applications": applications})
        assert recorded == (count, count, count), f"{recorded} recorded, not {count}"

    def row(self, query: str, values: Any = None) -> Any:
        return self.connection.execute(query.encode(), values).fetchone()


@contextmanager
def webhook_installation(world: World) -> Iterator[WebhookInstallation]:
    """On an empty database, without statistics."""
    database = world.empty_database()
    with psycopg.connect(database.url, autocommit=True) as connection:
        # An empty table tempts the planner to read it all, also when it is no longer empty; for our looks only.
        connection.execute("set enable_seqscan = off")
        yield WebhookInstallation(world, connection, database)
