"""The dashboard in the process of the test, on the real database, with merchants, members and applications."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from services.dashboard.app import make_app
from shared.domain.accounts.joining import add_member
from shared.domain.accounts.roles import Role
from shared.domain.applications.merchants import create_merchant
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.registry import CreatedApplication, NewApplication, create_application
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl
from shared.platform.settings import Settings, WebhookSettings
from stack.ports import find_free_ports
from tests.page_client import PageClient
from tests.servers import serve

PASSWORD = "correct horse battery staple"
ROLE = "mizan_dashboard"
WEBHOOK_URL = WebhookUrl("https://shop.example.ly/hooks")


@dataclass(frozen=True)
class Merchant:
    id: UUID
    name: str
    application: CreatedApplication


class DashboardWorld:
    def __init__(self, settings: Settings, database: Database, service_database: Database) -> None:
        self.port = find_free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = database
        """The owner's: for setting up, and for looking."""
        self.service_database = service_database
        self.settings = replace(
            settings,
            public_urls=replace(settings.public_urls, dashboard=self.url),
            webhooks=WebhookSettings(allow_private=True),
        )
        self.box = SecretBox(settings.secret_keys)
        self.merchant = self.make_merchant("Tripoli Coffee")
        self.application = self.merchant.application

    def make_merchant(self, name: str, mode: ApplicationMode = ApplicationMode.LIVE) -> Merchant:
        """Create a merchant with one application that has a webhook URL."""
        with self.database.transaction() as connection:
            merchant_id = create_merchant(connection, name)
            new = NewApplication(f"{name} shop", merchant_id, webhook_url=WEBHOOK_URL, mode=mode)
            return Merchant(merchant_id, name, create_application(connection, self.box, new))

    def make_member(self, role: Role, merchant: Merchant | None = None, email: str | None = None) -> str:
        """Create a member with the password PASSWORD, and return the email."""
        email = email or f"{role}-{uuid4().hex[:8]}@example.ly"
        with self.database.transaction() as connection:
            add_member(connection, (merchant or self.merchant).id, email, role, PASSWORD)
        return email

    def person(
        self, role: Role | None = None, merchant: Merchant | None = None, lang: str = "en"
    ) -> PageClient:
        """Return a client without a browser, signed in if a role is given."""
        made = PageClient(self.url, lang)
        if role is not None:
            made.sign_in(self.make_member(role, merchant), PASSWORD)
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
        """Serve the pages with the role of the dashboard: row-level security holds, unlike for the test itself."""
        with serve(make_app(self.settings, self.service_database), self.port):
            yield
