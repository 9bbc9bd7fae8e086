"""Payments that need an operator: with an unknown outcome, left on a provider's page, or paid twice."""

from uuid import UUID, uuid4

from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest
from shared.domain.attempts.settlement import settle_notification, settle_response
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find
from tests.monitor.world import MonitorWorld


class OperatorPayments:
    def __init__(self, world: MonitorWorld) -> None:
        self._world = world
        self._database = world.database

    def intent(self, amount: int = 25_500, reference: str | None = None) -> UUID:
        new = NewIntent(self._world.application.id, reference or f"order-{uuid4().hex}", amount, "LYD")
        with self._database.cursor() as cursor:
            return create_or_find(cursor, new)[0].uuid

    def begin(
        self, intent: UUID, state: AttemptState = AttemptState.SENT, provider: str = "plutu"
    ) -> ProviderRequest:
        with self._database.transaction() as connection:
            return start_attempt(connection, intent, "adfali", provider, state)

    def unknown(self, intent: UUID | None = None, *, can_be_asked: bool = False) -> UUID:
        """Create an attempt with an unknown outcome, sent too long ago to be still in flight."""
        request = self.begin(intent or self.intent())
        with self._database.transaction() as connection:
            settle_response(
                connection, request, AttemptOutcome(ProviderAnswer.UNKNOWN, can_inquire=can_be_asked)
            )
        self._world.run(
            "update payment_attempts set sent_at = sent_at - interval '1 minute' where id = %s",
            request.attempt,
        )
        return request.attempt

    def notify_paid(self, attempt: UUID, reference: str = "T-1") -> None:
        """Settle the attempt with a provider notification."""
        with self._database.transaction() as connection:
            settle_notification(
                connection, attempt, AttemptOutcome(ProviderAnswer.PAID, provider_reference=reference)
            )

    def declined_then_paid(self, reference: str | None = None) -> UUID:
        """Return a declined attempt. Another attempt has paid the intent since."""
        intent = self.intent(reference=reference)
        first = self.begin(intent)
        with self._database.transaction() as connection:
            settle_response(connection, first, AttemptOutcome(ProviderAnswer.DECLINED))
        self.notify_paid(self.begin(intent).attempt, "T-first")
        return first.attempt

    def duplicate(self, reference: str | None = None) -> UUID:
        """Return an attempt that was declined, and then paid after another attempt had already paid."""
        attempt = self.declined_then_paid(reference)
        self.notify_paid(attempt, "T-second")
        return attempt

    def state(self, attempt: UUID) -> str:
        return str(self._world.rows("select state from payment_attempts where id = %s", attempt)[0][0])

    def status(self, attempt: UUID) -> str:
        """Return the status of the attempt's intent."""
        (row,) = self._world.rows(
            """select status from payment_intents
               where uuid = (select intent_uuid from payment_attempts where id = %s)""",
            attempt,
        )
        return str(row[0])
