"""Status inquiries for attempts without an answer: growing intervals, and only certain answers count (DESIGN §3)."""

from datetime import timedelta

import pytest

from services.scheduler.jobs.verification_requests import INQUIRY_INTERVALS_S
from shared.domain.attempts.provider_exchange import SettlementResult, StatusInquiry
from shared.domain.attempts.states import FIRST_INQUIRY_AFTER, IN_FLIGHT_WINDOW, AttemptState, ProviderAnswer
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database
from tests.postgres_statistics import rows_read_sequentially
from tests.shared.domain.attempts.conftest import Checkout

INSTANT = timedelta(microseconds=1)


def test_attempt_of_a_killed_process_gets_a_status_inquiry(checkout: Checkout) -> None:
    """After a kill -9 between the commit and the provider's answer, but never while the answer may still come."""
    request = checkout.begin()
    checkout.later(FIRST_INQUIRY_AFTER - INSTANT)
    assert checkout.claim() == []
    checkout.later(INSTANT)
    (inquiry,) = checkout.claim()
    assert inquiry == StatusInquiry(request.attempt, 1, past_in_flight_window=False)
    checkout.answer_inquiry(inquiry, ProviderAnswer.PAID)
    assert checkout.status() is IntentStatus.SUCCEEDED


@pytest.mark.parametrize("told", [True, False], ids=["told that it is unknown", "whoever waited is gone"])
def test_unknown_outcome_is_inquired_at_growing_intervals(checkout: Checkout, *, told: bool) -> None:
    """The last interval repeats: an outage of the provider may be long, and any answer ends it."""
    request = checkout.begin()
    if told:
        checkout.answer(request, ProviderAnswer.UNKNOWN)
    else:
        checkout.later(FIRST_INQUIRY_AFTER)
    for pause in (0, *INQUIRY_INTERVALS_S, INQUIRY_INTERVALS_S[-1]):
        if pause:
            checkout.later(timedelta(seconds=pause) - INSTANT)
            assert checkout.claim() == []
            checkout.later(INSTANT)
        (inquiry,) = checkout.claim()
        checkout.answer_inquiry(inquiry, ProviderAnswer.UNKNOWN)
    assert checkout.status() is IntentStatus.PROCESSING


def test_each_request_has_its_own_inquiry_schedule(checkout: Checkout) -> None:
    """The intervals of the first code do not count for the second."""
    code = checkout.begin(AttemptState.AWAITING_CODE)
    checkout.send(code.attempt)
    checkout.later(timedelta(minutes=5))
    (first,) = checkout.claim()
    checkout.answer_inquiry(first, ProviderAnswer.NEEDS_CODE)
    checkout.send(code.attempt)
    checkout.later(FIRST_INQUIRY_AFTER)
    assert [inquiry.number for inquiry in checkout.claim()] == [2]
    checkout.later(timedelta(seconds=INQUIRY_INTERVALS_S[0]))
    assert [inquiry.number for inquiry in checkout.claim()] == [2]


def test_not_charged_is_trusted_only_past_the_in_flight_window(checkout: Checkout) -> None:
    """Until then the request may still arrive and charge."""
    request = checkout.begin()
    checkout.later(IN_FLIGHT_WINDOW - INSTANT)
    (early,) = checkout.claim()
    checkout.later(INSTANT + timedelta(seconds=INQUIRY_INTERVALS_S[0]))
    for answer in (ProviderAnswer.NOT_FOUND, ProviderAnswer.NEEDS_CODE, ProviderAnswer.NEEDS_REDIRECT):
        unknown = SettlementResult(AttemptState.UNKNOWN, IntentStatus.PROCESSING)
        assert checkout.answer_inquiry(early, answer) == unknown
    (late,) = checkout.claim()
    assert late == StatusInquiry(request.attempt, 1, past_in_flight_window=True)
    declined = SettlementResult(AttemptState.DECLINED, IntentStatus.REQUIRES_PAYMENT_METHOD)
    assert checkout.answer_inquiry(late, ProviderAnswer.NOT_FOUND) == declined


def test_in_flight_window_is_measured_at_the_inquiry_not_at_its_answer(checkout: Checkout) -> None:
    """A slow verifier: the request arrived and was paid between the inquiry and its settlement."""
    request = checkout.begin()
    checkout.later(FIRST_INQUIRY_AFTER)
    (inquiry,) = checkout.claim()
    checkout.later(timedelta(minutes=5))
    unknown = SettlementResult(AttemptState.UNKNOWN, IntentStatus.PROCESSING)
    assert checkout.answer_inquiry(inquiry, ProviderAnswer.NOT_FOUND) == unknown
    (again,) = checkout.claim()
    assert checkout.answer_inquiry(again, ProviderAnswer.PAID).attempt is AttemptState.PAID
    assert request.attempt == again.attempt


def test_early_decline_may_belong_to_the_previous_code(checkout: Checkout) -> None:
    """Before the second request arrives, the provider reports the outcome of the first."""
    code = checkout.begin(AttemptState.AWAITING_CODE)
    checkout.answer(checkout.send(code.attempt), ProviderAnswer.NEEDS_CODE)
    checkout.send(code.attempt)
    checkout.later(FIRST_INQUIRY_AFTER)
    (early,) = checkout.claim()
    assert checkout.answer_inquiry(early, ProviderAnswer.DECLINED).attempt is AttemptState.UNKNOWN
    checkout.later(IN_FLIGHT_WINDOW)
    (late,) = checkout.claim()
    assert checkout.answer_inquiry(late, ProviderAnswer.DECLINED).attempt is AttemptState.DECLINED


def test_provider_without_status_inquiries_leaves_the_decision_to_an_operator(checkout: Checkout) -> None:
    """The intent stays in processing without further inquiries, until the operator settles it."""
    request = checkout.begin()
    checkout.answer(request, ProviderAnswer.UNKNOWN)
    (inquiry,) = checkout.claim()
    checkout.answer_inquiry(inquiry, ProviderAnswer.UNKNOWN, can_inquire=False)
    checkout.later(timedelta(days=3))
    assert checkout.claim() == []
    assert checkout.status() is IntentStatus.PROCESSING
    assert checkout.decide(request.attempt, ProviderAnswer.PAID) == SettlementResult(
        AttemptState.PAID, IntentStatus.SUCCEEDED
    )


def test_inquiries_resume_when_the_provider_supports_them_again(checkout: Checkout) -> None:
    """Its status call was switched off for a while."""
    checkout.begin()
    checkout.later(FIRST_INQUIRY_AFTER)
    (inquiry,) = checkout.claim()
    checkout.answer_inquiry(inquiry, ProviderAnswer.UNKNOWN, can_inquire=False)
    checkout.answer_inquiry(inquiry, ProviderAnswer.UNKNOWN)
    assert checkout.claim() == [inquiry]


def test_ended_attempts_have_no_inquiries(checkout: Checkout) -> None:
    """Whatever ended them, here a notification."""
    request = checkout.begin()
    checkout.notify(request.attempt, ProviderAnswer.DECLINED)
    checkout.later(timedelta(days=1))
    assert checkout.claim() == []


def test_two_concurrent_runs_do_not_inquire_twice(checkout: Checkout, database: Database) -> None:
    """Attempts that are locked by another transaction are skipped."""
    request = checkout.begin()
    checkout.later(FIRST_INQUIRY_AFTER)
    with database.transaction() as connection:
        connection.execute("select from payment_attempts for update")
        assert checkout.claim() == []
    assert [inquiry.attempt for inquiry in checkout.claim()] == [request.attempt]
    assert checkout.claim() == []


@pytest.mark.plans
def test_claiming_inquiries_uses_the_index(checkout: Checkout, database: Database) -> None:
    """It never scans the table, however many attempts there are."""
    with database.transaction() as connection:
        connection.execute(
            """insert into payment_attempts (intent_uuid, method, provider, state)
               select %s, 'card', 'sandbox', 'declined' from generate_series(1, 20000)""",
            (checkout.intent,),
        )
    request = checkout.begin()
    checkout.later(FIRST_INQUIRY_AFTER)
    with database.cursor() as cursor:
        before = rows_read_sequentially(cursor, "payment_attempts")
    assert [inquiry.attempt for inquiry in checkout.claim()] == [request.attempt]
    with database.cursor() as cursor:
        assert rows_read_sequentially(cursor, "payment_attempts") == before
