"""The monitor in the process of the test, on the real PostgreSQL and Kafka, with operators."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from services.monitor.app import make_app
from services.monitor.inspection.inspector import SystemInspector
from services.monitor.inspection.snapshots import SystemState
from shared.domain.accounts.operators import add_operator
from shared.domain.applications.merchants import create_merchant
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.registry import CreatedApplication, NewApplication, create_application
from shared.domain.kafka_principals import MONITOR
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl
from shared.platform.settings import Settings, WebhookSettings
from stack.ports import find_free_ports
from tests.page_client import PageClient
from tests.servers import serve
from tests.topics import as_principal
from tests.waiting import eventually

PASSWORD = "correct horse battery staple"
WEBHOOK_URL = WebhookUrl("https://shop.example.ly/hooks")


def poll_all(inspector: SystemInspector) -> SystemState:
    """Poll every source until each has answered. A busy Kafka may miss a poll's time limit; the next poll finds it."""

    def state_without_errors() -> SystemState | None:
        state = inspector.poll_once()
        return None if state.kafka.error or state.database.error or state.services.error else state

    return eventually(state_without_errors)


class MonitorWorld:
    def __init__(self, settings: Settings, database: Database, service_database: Database) -> None:
        self.port = find_free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = database
        """The owner's: for setting up, and for looking."""
        self.service_database = service_database
        self.settings = replace(
            settings,
            public_urls=replace(settings.public_urls, monitor=self.url),
            webhooks=WebhookSettings(allow_private=True),
        )
        self.inspector = SystemInspector(self._own, service_database)
        """Not started: the test polls explicitly."""
        self.merchant_id, self.application = self.make_application("Tripoli Coffee")

    @property
    def _own(self) -> Settings:
        """The settings of the monitor. The test itself uses `settings`, which are those of Kafka's admin."""
        return replace(self.settings, kafka=as_principal(self.settings.kafka, MONITOR))

    def make_application(
        self, name: str, mode: ApplicationMode = ApplicationMode.TEST
    ) -> tuple[UUID, CreatedApplication]:
        """Create an application with a webhook URL, and a merchant for it."""
        with self.database.transaction() as connection:
            merchant_id = create_merchant(connection, name)
            new = NewApplication(f"{name} shop", merchant_id, webhook_url=WEBHOOK_URL, mode=mode)
            box = SecretBox(self.settings.secret_keys)
            return merchant_id, create_application(connection, box, new)

    def make_operator(self, email: str | None = None) -> str:
        """Create an operator with the password PASSWORD, and return the email."""
        email = email or f"operator-{uuid4().hex[:8]}@example.ly"
        with self.database.transaction() as connection:
            add_operator(connection, email, PASSWORD)
        return email

    def person(self, lang: str = "en", *, is_operator: bool = True) -> PageClient:
        """Return a client without a browser, signed in if `is_operator`."""
        made = PageClient(self.url, lang)
        if is_operator:
            made.sign_in(self.make_operator(), PASSWORD)
        return made

    def person_at(self, forwarded_for: str) -> PageClient:
        """Return a client that is not signed in and sends this X-Forwarded-For, as a proxy would."""
        made = self.person(is_operator=False)
        made.session.headers["X-Forwarded-For"] = forwarded_for
        return made

    def rows(self, statement: str, *values: object) -> list[Any]:
        with self.database.cursor() as cursor:
            return cursor.execute(statement.encode(), values).fetchall()

    def run(self, statement: str, *values: object) -> None:
        with self.database.cursor() as cursor:
            cursor.execute(statement.encode(), values)

    def audit(self) -> list[str]:
        """Return the actions in the audit log, oldest first."""
        return [row[0] for row in self.rows("select action from audit_log order by id")]

    @contextmanager
    def serve(self) -> Iterator[None]:
        with serve(make_app(self._own, self.service_database, self.inspector), self.port):
            yield
