"""The checkout in the process of the test, on the real database, with the sandbox as a real process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread
from typing import Any
from uuid import UUID, uuid4

from services.checkout.app import make_app
from services.checkout.dependencies import Dependencies, build_dependencies
from services.checkout.verification.verifier import MAX_CONCURRENT_INQUIRIES, Verifier, verifier_loop
from services.scheduler.jobs.relay import OutboxRelay
from services.scheduler.jobs.verification_requests import VerificationRequests
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.registry import CreatedApplication, NewApplication, create_application
from shared.domain.intents import store
from shared.domain.intents.intent import Intent, NewIntent
from shared.domain.kafka_principals import CHECKOUT_VERIFIER, SCHEDULER
from shared.domain.topics import CHECKOUT_VERIFY, DEAD_LETTERS, PAYMENT_INTENT_EVENTS
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.kafka.handlers import ThreadPoolHandler
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import PublicUrls, SandboxSettings, Settings
from stack.ports import find_free_ports
from tests.checkout.customer import Customer
from tests.database_roles import as_role
from tests.sandbox.running_sandbox import SECRET, RunningSandbox
from tests.scheduler.running_jobs import running_jobs
from tests.servers import serve
from tests.topics import as_principal

PROVIDER_TIMEOUT_S = 2.0
SILENCE_S = 4.0
"""Longer than the checkout waits."""
RETURN_URL = "https://shop.example.ly/back?order=7&x=%D9%82"


class CheckoutWorld:
    """An application of a merchant, its intents, and the checkout pages."""

    def __init__(
        self, settings: Settings, database: Database, service_database: Database, bank: RunningSandbox
    ) -> None:
        self.port = find_free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = database
        """The owner's: for setting up, and for looking."""
        self.service_database = service_database
        self.scheduler_database = Database(as_role("mizan_scheduler", settings.database), "scheduler")
        self.bank = bank
        self.settings = replace(
            settings,
            public_urls=PublicUrls(api="http://127.0.0.1:1", checkout=self.url),
            checkout=replace(settings.checkout, provider_timeout_s=PROVIDER_TIMEOUT_S),
            sandbox=SandboxSettings(bank.url, SECRET, bank.ledger),
        )
        self.box = SecretBox(settings.secret_keys)
        self.application = self.make_application(NewApplication("shop", "Tripoli Coffee"))

    def close(self) -> None:
        self.scheduler_database.close()

    @property
    def dependencies(self) -> Dependencies:
        return build_dependencies(self.settings, self.service_database)

    def wait_briefly_for_providers(self) -> None:
        """Shorten the timeout for payments that no provider responds to. Call it before the pages are served."""
        checkout = replace(self.settings.checkout, provider_timeout_s=0.5)
        self.settings = replace(self.settings, checkout=checkout)

    def use_live_application(self) -> None:
        """Let intents be made for an application that takes real payments, at first without any provider account."""
        new = NewApplication("shop", "Tripoli Coffee", mode=ApplicationMode.LIVE)
        self.application = self.make_application(new)

    def make_application(self, new: NewApplication) -> CreatedApplication:
        with self.database.transaction() as connection:
            return create_application(connection, self.box, new)

    def make_intent(self, **changes: Any) -> Intent:
        new = NewIntent(
            application_id=self.application.id,
            merchant_reference=uuid4().hex,
            amount=25_500,
            currency="LYD",
            description="قهوة عربية وكعك",
            return_url=RETURN_URL,
        )
        with self.database.cursor() as cursor:
            return store.create_or_find(cursor, replace(new, **changes))[0]

    def page(self, intent: Intent, lang: str | None = None) -> str:
        return f"{self.url}/pay/{intent.uuid}" + (f"?lang={lang}" if lang else "")

    def customer(self, intent: Intent, lang: str = "en") -> Customer:
        return Customer(self.page(intent, lang))

    def status(self, intent: Intent) -> str:
        with self.database.cursor() as cursor:
            found = store.find_intent(cursor, intent.uuid)
        assert found is not None
        return found.status

    def attempts(self, intent: Intent) -> list[tuple[str, str | None]]:
        """Return the state and reason of each attempt, oldest first."""
        return self.rows(
            "select state, reason from payment_attempts where intent_uuid = %s order by id", intent.uuid
        )

    def attempt_ids(self, intent: Intent) -> list[UUID]:
        return [
            row[0]
            for row in self.rows(
                "select id from payment_attempts where intent_uuid = %s order by id", intent.uuid
            )
        ]

    def events(self, intent: Intent) -> list[str]:
        rows = self.rows("select type from intent_events where intent_uuid = %s order by seq", intent.uuid)
        return [row[0].removeprefix("payment_intent.") for row in rows]

    def charges(self, intent: Intent) -> list[dict[str, Any]]:
        """Return the charges of this intent at the sandbox."""
        return self.bank.find(intent=str(intent.uuid))

    def rows(self, statement: str, *values: object) -> list[Any]:
        with self.database.cursor() as cursor:
            return cursor.execute(statement.encode(), values).fetchall()

    @contextmanager
    def serve(self) -> Iterator[None]:
        with serve(make_app(self.settings, self.service_database), self.port):
            yield

    @contextmanager
    def verifying(self) -> Iterator[None]:
        """Run the scheduler's job, the relay and the verifier within this context."""
        kafka = self.settings.kafka
        ensure_topics(kafka, [CHECKOUT_VERIFY, DEAD_LETTERS, PAYMENT_INTENT_EVENTS])
        database = Database(as_role("mizan_checkout", self.settings.database), "verifier")
        dependencies = build_dependencies(self.settings, database)
        verifier = Verifier(database, dependencies.providers, dependencies.side_effects)
        handler = ThreadPoolHandler(verifier.handle, MAX_CONCURRENT_INQUIRIES)
        own = replace(self.settings, kafka=as_principal(kafka, CHECKOUT_VERIFIER))
        loop = verifier_loop(own, handler)
        thread = Thread(target=loop.run, daemon=True)
        thread.start()
        stop = Event()
        relay = OutboxRelay(
            as_role("mizan_scheduler", self.settings.database),
            ConfirmingProducer(as_principal(kafka, SCHEDULER), "relay"),
            stop,
        )
        try:
            with running_jobs(VerificationRequests(self.scheduler_database), relay, stop=stop):
                yield
        finally:
            loop.stop()
            thread.join(30)
            handler.close()
            database.close()
