"""A merchant, a customer and a webhook receiver, with all services in this process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from werkzeug.test import TestResponse

from services.api.app import make_app
from services.scheduler.jobs.expiry import IntentExpiry
from shared.domain.applications.registry import NewApplication, set_webhook_url
from shared.domain.intents import store
from shared.domain.intents.intent import Intent
from shared.domain.messages import DeliveryDue
from shared.platform.database.pool import Database
from shared.platform.outbound_url import check_webhook_url
from shared.platform.uuids import parse_uuid
from tests.api.conftest import PATH, credentials_of
from tests.checkout.customer import Customer
from tests.checkout.world import CheckoutWorld
from tests.webhooks.conftest import ONE_RETRY, Webhooks
from tests.webhooks.merchants import first_tries, webhook_events
from tests.webhooks.receivers import Receiver


class TracedServices:
    def __init__(self, checkout: CheckoutWorld, api_database: Database, receiver: Receiver) -> None:
        self.checkout = checkout
        self.receiver = receiver
        self.database = checkout.database
        url = check_webhook_url(receiver.url, allow_private=True)
        checkout.application = checkout.make_application(
            NewApplication("shop", "Tripoli Coffee", webhook_url=url)
        )
        self.client = make_app(checkout.settings, api_database).test_client()

    def call(self, headers: Mapping[str, str] | None = None, **fields: Any) -> TestResponse:
        """Call the API to create an intent."""
        body = {"merchant_reference": uuid4().hex, "amount": 25_000, "currency": "LYD", **fields}
        credentials = credentials_of(self.checkout.application)
        return self.client.post(PATH, json=body, headers={**credentials, **(headers or {})})

    def create(self, headers: Mapping[str, str] | None = None, **fields: Any) -> Intent:
        answer = self.call(headers, **fields)
        assert answer.status_code == 201, answer.text
        uuid = parse_uuid(answer.get_json()["data"]["uuid"])
        assert uuid is not None
        with self.database.cursor() as cursor:
            intent = store.find_intent(cursor, uuid)
        assert intent is not None
        return intent

    def retrieve(self, intent: Intent) -> TestResponse:
        return self.client.get(f"{PATH}/{intent.uuid}", headers=credentials_of(self.checkout.application))

    def expire(self, intent: Intent) -> None:
        """Make this intent due for expiry."""
        with self.database.transaction() as connection:
            connection.execute(
                "update payment_intents set expires_at = mizan_now() where uuid = %s", (intent.uuid,)
            )

    def traces_of(self, intent: Intent) -> tuple[str | None, list[str | None]]:
        """Return the trace of the intent, and the traces of its rows in the outbox."""
        ((own,),) = self.checkout.rows("select trace from payment_intents where uuid = %s", intent.uuid)
        rows = self.checkout.rows("select trace from outbox where key = %s order by id", str(intent.uuid))
        return own, [trace for (trace,) in rows]

    def customer(self, intent: Intent) -> Customer:
        return self.checkout.customer(intent)

    def receive_at(self, path: str) -> None:
        url = check_webhook_url(f"http://127.0.0.1:{self.receiver.port}{path}", allow_private=True)
        with self.database.transaction() as connection:
            set_webhook_url(connection, self.checkout.application.id, url)

    def create_expired_deliveries(self) -> list[DeliveryDue]:
        """Expire all due intents and create their deliveries, without publishing to Kafka."""
        IntentExpiry(self.checkout.scheduler_database).run_once()
        with self.database.cursor() as cursor:
            return first_tries(cursor, webhook_events(self.database))

    @contextmanager
    def webhooks(self) -> Iterator[None]:
        """Run the relay and the webhook consumers for a try, a retry and a resend."""
        with Webhooks(self.checkout.settings).running_with_relay(*ONE_RETRY, "resend"):
            yield

    @contextmanager
    def running(self, *consumers: str) -> Iterator[None]:
        """Run only these consumers of the webhook service."""
        with Webhooks(self.checkout.settings).running(*consumers):
            yield
