"""Operators have the provider asked before they decide, and its recorded answer must not contradict them."""

from datetime import timedelta
from uuid import UUID

import pytest

from shared.domain.attempts.decision_rules import (
    ANSWER_VALID_FOR,
    ContradictsProviderError,
    OutcomeKnownError,
)
from shared.domain.attempts.operator_decision import NotAskedError
from shared.domain.attempts.states import IN_FLIGHT_WINDOW, ProviderAnswer
from shared.domain.attempts.status_inquiries import CannotBeAskedError, find_open_inquiries
from shared.domain.messages import VerificationDue, encode
from shared.platform.database.pool import Database
from tests.clock import Clock
from tests.shared.domain.attempts.deciding import LIMIT, Deciding

LARGE = LIMIT + 1


@pytest.fixture
def deciding(database: Database, application_id: UUID) -> Deciding:
    return Deciding(database, application_id)


def test_operator_has_the_provider_asked_by_the_verifier(deciding: Deciding) -> None:
    """The record says nothing but the attempt. Who asked is in the row and in the audit log."""
    attempt, somebody = deciding.attempt(), deciding.operator()
    deciding.run("delete from outbox")
    deciding.ask(attempt, somebody)
    ((topic, payload),) = deciding.rows("select topic, payload from outbox")
    assert (topic, payload) == ("checkout.verify", encode(VerificationDue(attempt)).decode())
    asked = deciding.rows("select asked_by, operator_id, answer from operator_inquiries")
    assert asked == [(somebody.name, somebody.operator_id, None)]
    assert deciding.rows("select actor from audit_log where action = 'provider_asked'") == [(somebody.name,)]


def test_second_click_asks_once(deciding: Deciding, clock: Clock) -> None:
    """After half a minute without an answer, the provider is asked again."""
    attempt = deciding.attempt()
    assert deciding.ask(attempt) == deciding.ask(attempt)
    clock.advance(timedelta(seconds=31))
    deciding.ask(attempt)
    assert deciding.rows("select count(*) from operator_inquiries") == [(2,)]
    deciding.answer(attempt, ProviderAnswer.UNKNOWN)
    assert deciding.rows("select count(answer) from operator_inquiries") == [(2,)]


def test_nobody_asks_about_a_charged_attempt_or_a_provider_without_a_status_call(deciding: Deciding) -> None:
    paid = deciding.attempt()
    deciding.notify_paid(paid)
    with pytest.raises(OutcomeKnownError):
        deciding.ask(paid)
    with pytest.raises(CannotBeAskedError):
        deciding.ask(deciding.attempt(provider="plutu"))


def test_decision_needs_an_answer_if_the_provider_can_be_asked(deciding: Deciding) -> None:
    attempt = deciding.attempt()
    with pytest.raises(NotAskedError):
        deciding.decide(attempt)
    deciding.ask(attempt)
    with pytest.raises(NotAskedError):
        deciding.decide(attempt)
    deciding.answer(attempt, ProviderAnswer.UNKNOWN)
    deciding.decide(attempt)
    assert deciding.state(attempt) == "paid"
    ((details,),) = deciding.rows("select details from audit_log where action = 'attempt_decided'")
    assert (details["provider_answer"], details["reference"]) == ("unknown", "T-9")


def test_provider_without_a_status_call_needs_no_answer(deciding: Deciding) -> None:
    attempt = deciding.attempt(provider="plutu")
    deciding.decide(attempt)
    assert deciding.state(attempt) == "paid"


def test_answer_counts_for_ten_minutes(deciding: Deciding, clock: Clock) -> None:
    attempt = deciding.attempt()
    deciding.ask_and_answer(attempt)
    clock.advance(ANSWER_VALID_FOR + timedelta(seconds=1))
    with pytest.raises(NotAskedError):
        deciding.decide(attempt)


def test_answer_about_an_earlier_request_does_not_count(deciding: Deciding) -> None:
    """The customer has sent another code since, which may have charged."""
    attempt = deciding.attempt()
    deciding.ask_and_answer(attempt, ProviderAnswer.DECLINED)
    deciding.run("update payment_attempts set provider_requests = 2 where id = %s", attempt)
    with pytest.raises(NotAskedError):
        deciding.decide(attempt, is_paid=False)


def test_answer_about_another_state_does_not_count(deciding: Deciding) -> None:
    """A new inquiry that has no answer yet does not change that."""
    attempt = deciding.attempt()
    deciding.ask_and_answer(attempt)
    deciding.run("update payment_attempts set state = 'awaiting_code' where id = %s", attempt)
    deciding.ask(attempt)
    with pytest.raises(NotAskedError):
        deciding.decide(attempt)


def test_answer_to_a_question_about_an_earlier_state_does_not_count(deciding: Deciding) -> None:
    """The attempt changed while the provider was being asked."""
    attempt = deciding.attempt()
    deciding.ask(attempt)
    with deciding.database.cursor() as cursor:
        asked = find_open_inquiries(cursor, attempt)
    deciding.run("update payment_attempts set provider_requests = 2 where id = %s", attempt)
    deciding.answer_late(attempt, asked, ProviderAnswer.UNKNOWN)
    assert deciding.rows("select answer from operator_inquiries") == [("unknown",)]
    with pytest.raises(NotAskedError):
        deciding.decide(attempt)


@pytest.mark.parametrize(
    "answer", [ProviderAnswer.DECLINED, ProviderAnswer.NOT_FOUND, ProviderAnswer.NEEDS_CODE]
)
def test_paid_is_refused_if_the_provider_says_otherwise(deciding: Deciding, answer: ProviderAnswer) -> None:
    attempt = deciding.attempt()
    deciding.ask_and_answer(attempt, answer)
    with pytest.raises(ContradictsProviderError):
        deciding.decide(attempt)
    assert deciding.state(attempt) == "unknown"


@pytest.mark.parametrize(
    "answer", [ProviderAnswer.DECLINED, ProviderAnswer.NOT_FOUND, ProviderAnswer.NEEDS_CODE]
)
def test_not_paid_does_not_count_while_the_request_could_still_arrive(
    deciding: Deciding, clock: Clock, answer: ProviderAnswer
) -> None:
    """Found by the exhaustive model: the request charged after the provider had said that there is no charge."""
    attempt = deciding.attempt()
    deciding.run("update payment_attempts set sent_at = mizan_now() where id = %s", attempt)
    deciding.ask_and_answer(attempt, answer)
    clock.advance(IN_FLIGHT_WINDOW)
    for is_paid in (False, True):
        with pytest.raises(NotAskedError):
            deciding.decide(attempt, is_paid=is_paid)
    deciding.ask_and_answer(attempt, answer)
    deciding.decide(attempt, is_paid=False)
    assert deciding.state(attempt) == "declined"


def test_paid_counts_while_the_request_could_still_arrive(deciding: Deciding) -> None:
    attempt = deciding.attempt()
    deciding.run("update payment_attempts set sent_at = mizan_now() where id = %s", attempt)
    deciding.ask_and_answer(attempt, ProviderAnswer.PAID)
    deciding.decide(attempt)
    assert deciding.state(attempt) == "paid"


def test_asking_again_until_the_provider_is_away_does_not_help(deciding: Deciding) -> None:
    attempt = deciding.attempt()
    for answer in (ProviderAnswer.DECLINED, ProviderAnswer.UNKNOWN):
        deciding.ask_and_answer(attempt, answer)
    with pytest.raises(ContradictsProviderError):
        deciding.decide(attempt)


def test_answer_cannot_be_replaced(deciding: Deciding) -> None:
    """A verifier that was slow finds the inquiry answered."""
    attempt = deciding.attempt()
    deciding.ask(attempt)
    with deciding.database.cursor() as cursor:
        asked = find_open_inquiries(cursor, attempt)
    deciding.answer(attempt, ProviderAnswer.DECLINED)
    deciding.answer_late(attempt, asked, ProviderAnswer.UNKNOWN)
    assert deciding.rows("select answer from operator_inquiries") == [("declined",)]
