"""Random sequences of actions on real PostgreSQL keep payments and events consistent (§3, DESIGN §3).

Hypothesis draws sequences of creates, attempts, codes, answers, timeouts, crashes, notifications, inquiries and
expiries, moves the database's clock, and checks all invariants after each step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from psycopg import Connection

from services.scheduler.jobs.expiry import IntentExpiry
from services.scheduler.jobs.verification_requests import claim_verifications
from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest, StatusInquiry
from shared.domain.attempts.settlement import (
    make_inquiry,
    settle_decision,
    settle_inquiry,
    settle_notification,
    settle_response,
)
from shared.domain.attempts.start import AttemptRefusedError, start_attempt, submit_code
from shared.domain.attempts.states import (
    ANSWER_TIMEOUT,
    FIRST_INQUIRY_AFTER,
    IN_FLIGHT_WINDOW,
    AttemptState,
    ProviderAnswer,
)
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.states import IntentStatus
from shared.domain.intents.store import create_or_find
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings
from tests.clock import Clock
from tests.shared.domain.attempts.fake_provider import FakeProvider, InFlightRequest
from tests.shared.domain.attempts.payment_records import PaymentRecords

T = TypeVar("T")
Move = Callable[[Connection[Any]], ProviderRequest]

picks = st.integers(min_value=0, max_value=63)
"""Index into the existing items. One range for all, so that examples shrink well."""

answers = st.sampled_from(
    [ProviderAnswer.NEEDS_CODE, ProviderAnswer.NEEDS_CODE, ProviderAnswer.DECLINED, ProviderAnswer.PAID]
)
"""How the provider answers a request that may charge. Paid is rarer because it ends the attempt."""

fates = st.sampled_from(
    ["answered", "told late", "no answer", "on its way", "crash in between", "crash before", "crash after"]
)
"""What happens to the request and to the process that sends it."""

moments = st.sampled_from(
    [timedelta(seconds=1), ANSWER_TIMEOUT, FIRST_INQUIRY_AFTER, IN_FLIGHT_WINDOW, timedelta(minutes=3)]
)
"""Time steps around the limits where behaviour changes."""


class CrashError(Exception):
    """The process crashed; uncommitted work is lost."""


@dataclass(frozen=True)
class PendingReport:
    """An answer of the provider that is not settled yet."""

    about: ProviderRequest | StatusInquiry
    """The answer to a request, or to an inquiry."""
    outcome: AttemptOutcome


class Payments(RuleBasedStateMachine):
    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__()
        self.database = database
        self.clock = clock
        self.expiry = IntentExpiry(database)
        self.records = PaymentRecords(database)
        self.provider = FakeProvider()
        self.left: set[UUID] = set()
        self.late_reports: list[PendingReport] = []
        self.cannot_be_asked: set[UUID] = set()
        self.succeeded: set[UUID] = set()
        self.application = uuid4()
        self.created = 0
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    @initialize()
    def start(self) -> None:
        # Not in teardown: rows of a failed example must be gone too, or the next example would not be repeatable.
        with self.database.transaction() as connection:
            connection.execute("truncate payment_intents, payment_attempts, intent_events, outbox")
        self.clock.stop_at(self.now)
        self.create(10)

    # Merchants and time.

    @precondition(lambda self: len(self.records.open_intents()) < 2)
    @rule(minutes=st.sampled_from([6, 15]))
    def create(self, minutes: int) -> None:
        self.created += 1
        expires_at = self.now + timedelta(minutes=minutes)
        new = NewIntent(self.application, str(self.created), 1_000, "LYD", expires_at=expires_at)
        with self.database.cursor() as cursor:
            create_or_find(cursor, new)

    @rule(by=moments)
    def time_passes(self, by: timedelta) -> None:
        self.now += by
        self.clock.stop_at(self.now)

    @rule()
    def expire(self) -> None:
        self.expiry.run_once()
        self.records.read()
        for intent in self.records.intents:
            assert intent.status != IntentStatus.REQUIRES_PAYMENT_METHOD or intent.expires_at > self.now

    # Customers.

    @rule(pick=picks, answer=answers, fate=fates)
    def pay(self, pick: int, answer: ProviderAnswer, fate: str) -> None:
        """Submit the requested code, or else pay by card."""
        intent = self._an_intent(pick)
        asked = self.records.in_state("awaiting_code", intent=intent)
        if asked:
            self._send(intent, lambda c: submit_code(c, asked[0].id), answer, fate)
        else:
            by_card = AttemptState.SENT
            self._send(intent, lambda c: start_attempt(c, intent, "card", "sandbox", by_card), answer, fate)

    @precondition(lambda self: self.records.attempts)
    @rule(pick=picks, answer=answers, fate=fates)
    def use_an_old_form(self, pick: int, answer: ProviderAnswer, fate: str) -> None:
        """Submit the form of another tab, whatever the state of its attempt."""
        attempt = _one_of(self.records.attempts, pick)
        self._send(attempt.intent_uuid, lambda c: submit_code(c, attempt.id), answer, fate)

    @rule(pick=picks, refused=st.booleans())
    def ask_for_a_code(self, pick: int, refused: bool) -> None:
        intent = self._an_intent(pick)
        by_wallet = AttemptState.AWAITING_CODE
        started = self._unless_refused(lambda c: start_attempt(c, intent, "sadad", "sandbox", by_wallet))
        if started:
            outcome = (
                AttemptOutcome(ProviderAnswer.DECLINED, "not_subscribed")
                if refused
                else AttemptOutcome(ProviderAnswer.NEEDS_CODE)
            )
            self._tell([PendingReport(started, outcome)])

    @rule(pick=picks, leave=st.booleans())
    def go_to_the_providers_page(self, pick: int, leave: bool) -> None:
        intent = self._an_intent(pick)
        if leave:
            self.left.update(
                attempt.id for attempt in self.records.in_state("awaiting_redirect", intent=intent)
            )
        there = AttemptState.AWAITING_REDIRECT
        self._unless_refused(lambda c: start_attempt(c, intent, "card", "plutu", there, leave_redirect=leave))

    @precondition(lambda self: self._on_the_providers_page())
    @rule(pick=picks, paid=st.booleans(), told=st.booleans())
    def act_on_the_providers_page(self, pick: int, paid: bool, told: bool) -> None:
        attempt = _one_of(self._on_the_providers_page(), pick)
        answer = ProviderAnswer.PAID if paid else ProviderAnswer.DECLINED
        outcome = self.provider.process(attempt, self.records.intent_of(attempt), answer)
        if told:
            self._notify(attempt, outcome)

    # Providers, verifiers and operators.

    @precondition(lambda self: self.provider.in_flight)
    @rule(pick=picks)
    def a_late_request_arrives(self, pick: int) -> None:
        self.provider.arrive(_one_of(self.provider.in_flight, pick), self.now)

    @precondition(lambda self: self._in_ledger(ProviderAnswer.DECLINED))
    @rule(pick=picks)
    def a_declined_payment_is_paid_after_all(self, pick: int) -> None:
        self.provider.pay_late(_one_of(self._in_ledger(ProviderAnswer.DECLINED), pick))

    @precondition(lambda self: self._in_ledger(ProviderAnswer.PAID, ProviderAnswer.DECLINED))
    @rule(pick=picks, times=st.integers(1, 2))
    def notify(self, pick: int, times: int) -> None:
        attempt = _one_of(self._in_ledger(ProviderAnswer.PAID, ProviderAnswer.DECLINED), pick)
        for _ in range(times):
            self._notify(attempt, self.provider.status(attempt))

    @precondition(lambda self: self.records.in_state("sent", "unknown"))
    @rule(wait=moments, then=st.sampled_from(["tell", "tell late", "crash"]))
    def verify(self, wait: timedelta, then: str) -> None:
        self.time_passes(wait)
        report = self._ask()
        if then == "tell":
            self._tell(report)
        elif then == "tell late":
            self.late_reports.extend(report)

    @precondition(lambda self: self.late_reports)
    @rule(pick=picks)
    def late_news_is_told(self, pick: int) -> None:
        report = _one_of(self.late_reports, pick)
        self.late_reports.remove(report)
        self._tell([report])

    @precondition(lambda self: self.records.in_state("unknown"))
    @rule(pick=picks)
    def a_provider_cannot_be_asked(self, pick: int) -> None:
        attempt = _one_of(self.records.in_state("unknown"), pick)
        self.cannot_be_asked.add(attempt.id)
        inquiry = StatusInquiry(attempt.id, attempt.provider_requests, past_in_flight_window=False)
        self._tell([PendingReport(inquiry, AttemptOutcome(ProviderAnswer.UNKNOWN, can_inquire=False))])

    # Invariants.

    @invariant()
    def the_books_add_up(self) -> None:
        self.records.read()
        self.records.check_events()
        self.records.check_attempts()

    @invariant()
    def succeeded_never_changes(self) -> None:
        succeeded = {
            intent.uuid for intent in self.records.intents if intent.status == IntentStatus.SUCCEEDED
        }
        assert succeeded >= self.succeeded
        self.succeeded = succeeded

    @invariant()
    def we_call_paid_only_what_the_provider_calls_paid(self) -> None:
        for attempt in self.records.in_state("paid", "duplicate"):
            assert self.provider.ledger[attempt.id].answer is ProviderAnswer.PAID

    @invariant()
    def somebody_will_ask_about_every_attempt_under_way(self) -> None:
        for attempt in self.records.in_state("sent", "unknown"):
            assert attempt.next_verify_at or attempt.id in self.cannot_be_asked

    def teardown(self) -> None:
        """Nothing stays in processing: time passes, inquiries are sent, operators decide, notifications arrive."""
        self._tell(self.late_reports)
        for _ in range(3):
            self.time_passes(timedelta(hours=1))
            self._tell(self._ask())
        self.records.read()
        for attempt in self.records.in_state("sent", "unknown"):
            assert attempt.id in self.cannot_be_asked
            paid = self.provider.status(attempt.id).answer is ProviderAnswer.PAID
            with self.database.transaction() as connection:
                settle_decision(
                    connection,
                    attempt.id,
                    AttemptOutcome(ProviderAnswer.PAID if paid else ProviderAnswer.DECLINED),
                )
        for paid_one in self._in_ledger(ProviderAnswer.PAID):
            self._notify(paid_one, self.provider.status(paid_one))
        self.expire()
        self.the_books_add_up()
        self.succeeded_never_changes()
        paid_intents = {
            self.provider.ledger[attempt].intent for attempt in self._in_ledger(ProviderAnswer.PAID)
        }
        for intent in self.records.intents:
            assert intent.status == (
                IntentStatus.SUCCEEDED if intent.uuid in paid_intents else IntentStatus.CANCELED
            )
        assert set(self._in_ledger(ProviderAnswer.PAID)) == {
            attempt.id for attempt in self.records.in_state("paid", "duplicate")
        }

    # Helpers.

    def _send(self, intent: UUID, move: Move, answer: ProviderAnswer, fate: str) -> None:
        """Commit the request, call the provider and settle, or crash in between."""
        request = self._unless_refused(move, crash=fate == "crash in between")
        if request is None:
            return
        others = self.provider.can_still_charge(intent, request.attempt, self.now)
        assert others <= self.left, "the customer could be charged twice"
        if fate == "crash before":
            return
        if fate == "on its way":
            self.provider.lose(InFlightRequest(request, intent, self.now, answer))
            outcome = AttemptOutcome(ProviderAnswer.UNKNOWN)
        else:
            outcome = self.provider.process(request.attempt, intent, answer)
        report = PendingReport(
            request, AttemptOutcome(ProviderAnswer.UNKNOWN) if fate == "no answer" else outcome
        )
        if fate == "told late":
            self.late_reports.append(report)
        elif fate != "crash after":
            self._tell([report])

    def _unless_refused(self, move: Move, *, crash: bool = False) -> ProviderRequest | None:
        try:
            with self.database.transaction() as connection:
                request = move(connection)
                _crash_if(crash)
                return request
        except (AttemptRefusedError, CrashError):
            return None

    def _ask(self) -> list[PendingReport]:
        with self.database.cursor() as cursor:
            inquiries = [make_inquiry(cursor, attempt) for attempt in claim_verifications(cursor, 100)]
        return [
            PendingReport(inquiry, self.provider.status(inquiry.attempt))
            for inquiry in inquiries
            if inquiry is not None
        ]

    def _tell(self, all_news: list[PendingReport]) -> None:
        for report in all_news:
            with self.database.transaction() as connection:
                if isinstance(report.about, ProviderRequest):
                    settle_response(connection, report.about, report.outcome)
                else:
                    settle_inquiry(connection, report.about, report.outcome)

    def _notify(self, attempt: UUID, outcome: AttemptOutcome) -> None:
        with self.database.transaction() as connection:
            settle_notification(connection, attempt, outcome)

    def _an_intent(self, pick: int) -> UUID:
        """Pick an intent, mostly one that can still be paid."""
        open_intents = self.records.open_intents() if pick % 8 else []
        return _one_of(open_intents or [intent.uuid for intent in self.records.intents], pick)

    def _in_ledger(self, *wanted: ProviderAnswer) -> list[UUID]:
        return [attempt for attempt, entry in self.provider.ledger.items() if entry.answer in wanted]

    def _on_the_providers_page(self) -> list[UUID]:
        """Return the attempts with a provider's page, abandoned ones included: the page stays open."""
        return [attempt.id for attempt in self.records.attempts if attempt.provider == "plutu"]


def _one_of(these: Sequence[T], pick: int) -> T:
    return these[pick % len(these)]


def _crash_if(crash: bool) -> None:
    if crash:
        raise CrashError


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "examples", [25, *(pytest.param(600, id=f"600, run {n}", marks=pytest.mark.long) for n in range(1, 6))]
)
def test_random_sequences_keep_all_invariants(database_settings: DatabaseSettings, examples: int) -> None:
    """Succeeded is final, every change has its event, no customer is charged twice, nothing stays in processing."""
    database = Database(database_settings, "test", **STABLE_PLANS)
    clock = Clock(database)
    run_machine(
        lambda: Payments(database, clock),  # type: ignore[arg-type]  # it accepts a factory too
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
    database.close()
