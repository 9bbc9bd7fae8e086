"""An application with data for everything that a page can show."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.registry import CreatedApplication, NewApplication, create_application
from shared.domain.intents.states import IntentStatus
from tests.dashboard.delivery_rows import CANCELED, Deliveries
from tests.dashboard.payment_rows import make_attempt, make_intent
from tests.dashboard.world import WEBHOOK_URL, DashboardWorld


@dataclass(frozen=True)
class BusyShop:
    created: CreatedApplication
    deliveries: Deliveries
    payment: UUID
    """Declined first, then paid, then paid again; its webhook arrived at the third try."""
    delivery: UUID

    @property
    def application_id(self) -> UUID:
        return self.created.id

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the secrets that no page may show again."""
        return self.created.api_key, self.created.access_token, self.created.webhook_secret

    def path(self, section: str = "") -> str:
        return f"/applications/{self.application_id}{section and '/'}{section}"

    def begin_to_fail(self) -> None:
        self.deliveries.make_many(4, "failed", 503, tries=9)


def open_busy_shop(world: DashboardWorld, merchant_id: UUID, name: str = "مكتبة بنغازي Books") -> BusyShop:
    with world.database.transaction() as connection:
        new = NewApplication(name, merchant_id, webhook_url=WEBHOOK_URL, mode=ApplicationMode.LIVE)
        created = create_application(connection, world.box, new)
    deliveries = Deliveries(world.database, created.id)
    payment = _paid_twice(world, created.id)
    deliveries.make("failed", None, failure="timeout", tries=9, event=CANCELED, ago=timedelta(days=2))
    deliveries.make("pending", 500, tries=3, ago=timedelta(hours=1))
    deliveries.make("pending", None, tries=0)
    deliveries.make(is_test=True)
    delivery = deliveries.make(intent=payment, tries=3)
    deliveries.add_try(delivery, 1, None, failure="tls", answer=b"")
    deliveries.add_try(delivery, 2, 500, answer=b"<h1>Internal Server Error</h1>\n" * 20)
    deliveries.add_try(delivery, 3, 200, answer=b"", is_resend=True)
    return BusyShop(created, deliveries, payment, delivery)


def _paid_twice(world: DashboardWorld, application_id: UUID) -> UUID:
    now = datetime.now(UTC)
    for number, status in enumerate(
        (IntentStatus.CANCELED, IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.SUCCEEDED)
    ):
        ago = now - timedelta(days=3 * number)
        other = make_intent(world, f"order-{number}", status, at=ago, application_id=application_id)
        if status is IntentStatus.SUCCEEDED:
            make_attempt(world, other, "paid", method="adfali")
    payment = make_intent(
        world,
        "طلب ORDER-77",
        IntentStatus.SUCCEEDED,
        application_id=application_id,
        description="قهوة عربية، كيلوغرامان",
        customer="customer-5",
        metadata='{"colour": "أحمر", "note": "leave it at the door"}',
    )
    make_attempt(world, payment, "declined", method="sadad", reason="insufficient_funds")
    make_attempt(world, payment, "paid", provider_reference="ch_123")
    make_attempt(world, payment, "duplicate", provider_reference="ch_456")
    return payment
