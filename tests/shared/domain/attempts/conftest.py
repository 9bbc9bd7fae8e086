"""A checkout with one intent, a provider and a scheduler. The clock is stopped unless a test moves it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from psycopg import Connection

from services.scheduler.jobs.expiry import IntentExpiry
from services.scheduler.jobs.verification_requests import claim_verifications
from shared.domain.attempts.provider_exchange import (
    AttemptOutcome,
    ProviderRequest,
    SettlementResult,
    StatusInquiry,
)
from shared.domain.attempts.settlement import (
    make_inquiry,
    settle_decision,
    settle_inquiry,
    settle_notification,
    settle_response,
)
from shared.domain.attempts.start import start_attempt, submit_code
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.states import IntentStatus
from shared.domain.intents.store import create_or_find
from shared.platform.database.pool import Database
from tests.clock import Clock
from tests.shared.domain.attempts.payment_records import PaymentRecords

T = TypeVar("T")


class Checkout:
    """One intent that expires after ten minutes. Each action is a transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.records = PaymentRecords(database)
        self.now = datetime(2027, 1, 1, tzinfo=UTC)
        clock.stop_at(self.now)
        self.expires_at = self.now + timedelta(minutes=10)
        with database.cursor() as cursor:
            new = NewIntent(uuid4(), "order-1", 1_000, "LYD", expires_at=self.expires_at)
            self.intent = create_or_find(cursor, new)[0].uuid

    def at(self, moment: datetime) -> None:
        self.now = moment
        self._clock.stop_at(moment)

    def later(self, by: timedelta) -> None:
        self.at(self.now + by)

    def begin(
        self, state: AttemptState = AttemptState.SENT, *, leave_redirect: bool = False
    ) -> ProviderRequest:
        return self.commit(
            lambda c: start_attempt(c, self.intent, "card", "sandbox", state, leave_redirect=leave_redirect)
        )

    def send(self, attempt: UUID) -> ProviderRequest:
        return self.commit(lambda c: submit_code(c, attempt))

    def answer(
        self,
        request: ProviderRequest,
        answer: ProviderAnswer,
        *,
        reason: str | None = None,
        reference: str | None = None,
    ) -> SettlementResult:
        return self.commit(lambda c: settle_response(c, request, AttemptOutcome(answer, reason, reference)))

    def claim(self) -> list[StatusInquiry]:
        with self._database.cursor() as cursor:
            inquiries = [make_inquiry(cursor, attempt) for attempt in claim_verifications(cursor, 100)]
        return [inquiry for inquiry in inquiries if inquiry is not None]

    def answer_inquiry(
        self, inquiry: StatusInquiry, answer: ProviderAnswer, *, can_inquire: bool = True
    ) -> SettlementResult:
        return self.commit(
            lambda c: settle_inquiry(c, inquiry, AttemptOutcome(answer, can_inquire=can_inquire))
        )

    def notify(
        self, attempt: UUID, answer: ProviderAnswer, *, reference: str | None = None
    ) -> SettlementResult:
        outcome = AttemptOutcome(answer, provider_reference=reference)
        return self.commit(lambda c: settle_notification(c, attempt, outcome))

    def decide(
        self, attempt: UUID, answer: ProviderAnswer, *, reference: str | None = None
    ) -> SettlementResult:
        outcome = AttemptOutcome(answer, "an operator's decision", reference, is_from_operator=True)
        return self.commit(lambda c: settle_decision(c, attempt, outcome))

    def expire(self) -> None:
        IntentExpiry(self._database).run_once()

    def commit(self, move: Callable[[Connection[Any]], T]) -> T:
        with self._database.transaction() as connection:
            return move(connection)

    def status(self) -> IntentStatus:
        self.records.read()
        return IntentStatus(self.records.intents[0].status)

    def references(self) -> list[tuple[str, str | None]]:
        """Return the state and the provider's reference of each attempt."""
        with self._database.cursor() as cursor:
            return cursor.execute(
                "select state, provider_reference from payment_attempts order by id"
            ).fetchall()

    def reason(self) -> str | None:
        """Return the reason of the first attempt."""
        with self._database.cursor() as cursor:
            row = cursor.execute("select reason from payment_attempts order by id").fetchone()
        assert row is not None
        return None if row[0] is None else str(row[0])

    def states(self) -> list[str]:
        """Return the states of all attempts, oldest first."""
        self.records.read()
        return [attempt.state for attempt in self.records.attempts]

    def events(self) -> list[str]:
        """Check all records and return the events after the creation."""
        self.records.read()
        self.records.check_events()
        self.records.check_attempts()
        with self._database.cursor() as cursor:
            rows = cursor.execute("select type from intent_events order by seq").fetchall()
        return [str(type_).removeprefix("payment_intent.") for (type_,) in rows[1:]]


@pytest.fixture
def checkout(database: Database, clock: Clock) -> Checkout:
    return Checkout(database, clock)
