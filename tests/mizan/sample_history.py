"""A small, consistent history of intents, written by our own code, which tests of `mizan audit` then damage."""

from typing import Any
from uuid import UUID, uuid4

from services.webhooks.http.client import TryResult as Reply
from services.webhooks.pipeline.intake import create_deliveries
from services.webhooks.pipeline.queries import ResendTry, ScheduledTry, record_resends, record_tries
from services.webhooks.retry_schedule import LAST_STEP, decide_after_try
from shared.domain.applications.registry import NewApplication, create_application
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.settlement import settle_notification, settle_response
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.deliveries.try_results import EVENTS
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find, expire_due
from shared.domain.messages import IntentEvent, decode
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl, check_webhook_url
from shared.platform.settings import WebhookSettings
from tests.mizan.conftest import KEY

URL = check_webhook_url("https://shop.example.ly/hook", allow_private=True)
_DELAYS = WebhookSettings().retry_delays


class SampleApplication:
    """One application with its intents, attempts, events and deliveries."""

    def __init__(self, database: Database, url: WebhookUrl | None = URL) -> None:
        self.database = database
        with database.transaction() as connection:
            new = NewApplication("shop", webhook_url=url)
            self.application = create_application(connection, SecretBox((KEY,)), new).id

    def create(self) -> UUID:
        with self.database.cursor() as cursor:
            new = NewIntent(self.application, uuid4().hex, 25_000, "LYD")
            return create_or_find(cursor, new)[0].uuid

    def attempt(self, intent: UUID, *said: ProviderAnswer, can_be_asked: bool = True) -> UUID:
        """Start an attempt, with these responses of the provider, if any."""
        with self.database.transaction() as connection:
            request = start_attempt(connection, intent, "card", "sandbox", AttemptState.SENT)
        for answer in said:
            with self.database.transaction() as connection:
                settle_response(connection, request, AttemptOutcome(answer, can_inquire=can_be_asked))
        return request.attempt

    def notify(self, attempt: UUID, answer: ProviderAnswer) -> None:
        """Send a notification of the provider."""
        with self.database.transaction() as connection:
            settle_notification(connection, attempt, AttemptOutcome(answer))

    def pay(self) -> UUID:
        intent = self.create()
        self.attempt(intent, ProviderAnswer.PAID)
        return intent

    def expire(self, intent: UUID) -> None:
        self.run("update payment_intents set expires_at = mizan_now() where uuid = %s", intent)
        with self.database.cursor() as cursor:
            expire_due(cursor)

    def publish(self) -> None:
        """Do the work of the relay, Kafka and the intake."""
        rows = self.run("delete from outbox returning payload")
        messages = [decode(payload.encode()) for (payload,) in rows]
        told = [m for m in messages if isinstance(m, IntentEvent) and m.type in EVENTS]
        with self.database.cursor() as cursor:
            create_deliveries(cursor, sorted(told, key=lambda event: event.id))

    def delivery(self, intent: UUID) -> UUID:
        ((found,),) = self.run("select id from webhook_deliveries where intent_uuid = %s", intent)
        return UUID(str(found))

    def try_to_deliver(self, delivery: UUID, *codes: int, first: int = 1) -> None:
        """Try step by step, each with this status code."""
        for step, code in enumerate(codes, first):
            decision = decide_after_try(step, is_success=code < 300, retry_delays=_DELAYS)
            with self.database.cursor() as cursor:
                record_tries(cursor, [ScheduledTry(str(delivery), step, _reply(code), 0, decision)])

    def resend(self, delivery: UUID, code: int) -> None:
        with self.database.cursor() as cursor:
            record_resends(cursor, [ResendTry(str(delivery), str(uuid4()), _reply(code), 0, str(URL))])

    def run(self, statement: str, *values: object) -> list[Any]:
        with self.database.cursor() as cursor:
            cursor.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []


class SampleHistory(SampleApplication):
    """Intents, attempts and deliveries in every state."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.open, self.declined, self.paid = self.create(), self.create(), self.pay()
        self.attempt(self.declined, ProviderAnswer.DECLINED)
        self.asked_about = self.create()
        self.attempt(self.asked_about, ProviderAnswer.UNKNOWN)
        self.undecided = self.create()
        self.attempt(self.undecided, ProviderAnswer.UNKNOWN, can_be_asked=False)
        self.failed, self.resent, self.pending = self.pay(), self.pay(), self.create()
        self.expire(self.pending)
        self.paid_late = self.create()
        late = self.attempt(self.paid_late, ProviderAnswer.DECLINED)
        self.expire(self.paid_late)
        self.notify(late, ProviderAnswer.PAID)
        self.paid_twice = self.create()
        first = self.attempt(self.paid_twice, ProviderAnswer.DECLINED)
        self.attempt(self.paid_twice, ProviderAnswer.PAID)
        self.notify(first, ProviderAnswer.PAID)
        self.publish()
        self.try_to_deliver(self.delivery(self.paid), 500, 200)
        self.try_to_deliver(self.delivery(self.failed), *[503] * LAST_STEP)
        self.resend(self.delivery(self.failed), 500)
        self.try_to_deliver(self.delivery(self.resent), 404)
        self.resend(self.delivery(self.resent), 500)
        self.resend(self.delivery(self.resent), 204)


def _reply(code: int) -> Reply:
    return Reply(0.0, 5, code, None, b"")
