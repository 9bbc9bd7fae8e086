"""An installation with webhooks to measure: a database, topics, applications with a webhook URL, and the services."""

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

_RECORD_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.005

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
        """Create an application whose webhooks go to this receiver. Returns its id."""
        with self.connection.transaction():
            created = create_application(self.connection, SecretBox((self._key,)), NewApplication("bench"))
            url = endpoint.hook(str(created.id), created.webhook_secret, is_silent=is_silent)
            set_webhook_url(self.connection, created.id, WebhookUrl(url))
        return created.id

    def scheduler(self) -> AbstractContextManager[RunningService]:
        return self._world.service("services.scheduler", self._database, self.kafka)

    def webhooks(self, *consumers: str) -> AbstractContextManager[RunningService]:
        """Run the webhook service, with all consumers or only these."""
        environment = {
            "MIZAN_SECRET_KEYS": self._key,
            "WEBHOOK_ALLOW_PRIVATE": "true",
            "KAFKA_CLIENT_GROUP_INSTANCE_ID": "webhooks",  # as in `make run`
        }
        return self._world.service(
            "services.webhooks", self._database, self.kafka, arguments=consumers, environment=environment
        )

    def wait_recorded(self) -> float:
        """Wait until no delivery is pending, and return when that was, as `time.time()`.

        Call it once all webhooks were received. Its queries are cheap, and start when the measurement is almost over.
        """
        deadline = monotonic() + _RECORD_TIMEOUT_S
        while self.connection.execute(_PENDING).rowcount:
            assert monotonic() < deadline, "not all received webhooks were recorded in time"
            sleep(_POLL_INTERVAL_S)
        return time()

    def check_recorded_once(self, applications: list[UUID], count: int) -> None:
        """Assert that these applications have so many deliveries, each succeeded, with one successful try."""
        recorded = self.row(_RECORDED, {"applications": applications})
        assert recorded == (count, count, count), f"{recorded} recorded, not {count}"

    def row(self, query: str, values: Any = None) -> Any:
        return self.connection.execute(query.encode(), values).fetchone()


@contextmanager
def webhook_installation(world: World) -> Iterator[WebhookInstallation]:
    """Set up an installation on an empty database, without statistics."""
    database = world.empty_database()
    with psycopg.connect(database.url, autocommit=True) as connection:
        # The planner would scan the whole table, which was empty when it planned. Only for the queries of this module.
        connection.execute("set enable_seqscan = off")
        yield WebhookInstallation(world, connection, database)
