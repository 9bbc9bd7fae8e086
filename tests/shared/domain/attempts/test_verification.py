"""An attempt without an answer: somebody asks, with growing pauses, and believes only what is certain (DESIGN §3)."""

from datetime import timedelta

import pytest

from shared.domain.attempts.provider_exchange import Question, Settled
from shared.domain.attempts.states import (
    ASK_AGAIN_AFTER_S,
    FIRST_ASKED_AFTER,
    SURELY_ARRIVED_AFTER,
    Answer,
    AttemptState,
)
from shared.domain.intents.states import State
from shared.platform.database.pool import Database
from tests.postgres_statistics import rows_read_sequentially
from tests.shared.domain.attempts.conftest import Checkout

INSTANT = timedelta(microseconds=1)


def test_an_attempt_whose_process_is_gone_is_asked_about(checkout: Checkout) -> None:
    """After a kill -9 between the commit and the provider's answer; never while the answer may still come."""
    sending = checkout.begin()
    checkout.later(FIRST_ASKED_AFTER - INSTANT)
    assert checkout.claim() == []
    checkout.later(INSTANT)
    (question,) = checkout.claim()
    assert question == Question(sending.attempt, 1, surely_arrived=False)
    checkout.answer_question(question, Answer.PAID)
    assert checkout.status() is State.SUCCEEDED


@pytest.mark.parametrize("told", [True, False], ids=["told that it is unknown", "whoever waited is gone"])
def test_an_unknown_outcome_is_asked_for_with_growing_pauses(checkout: Checkout, *, told: bool) -> None:
    """The last pause stays: an outage of the provider may be long, and one answer ends it."""
    sending = checkout.begin()
    if told:
        checkout.answer(sending, Answer.UNKNOWN)
    else:
        checkout.later(FIRST_ASKED_AFTER)
    for pause in (0, *ASK_AGAIN_AFTER_S, ASK_AGAIN_AFTER_S[-1]):
        if pause:
            checkout.later(timedelta(seconds=pause) - INSTANT)
            assert checkout.claim() == []
            checkout.later(INSTANT)
        (question,) = checkout.claim()
        checkout.answer_question(question, Answer.UNKNOWN)
    assert checkout.status() is State.PROCESSING


def test_each_sending_is_asked_about_from_the_start(checkout: Checkout) -> None:
    """The pauses of the first code's silence do not count for the second's."""
    code = checkout.begin(AttemptState.AWAITING_CODE)
    checkout.send(code.attempt)
    checkout.later(timedelta(minutes=5))
    (first,) = checkout.claim()
    checkout.answer_question(first, Answer.NEEDS_CODE)
    checkout.send(code.attempt)
    checkout.later(FIRST_ASKED_AFTER)
    assert [question.number for question in checkout.claim()] == [2]
    checkout.later(timedelta(seconds=ASK_AGAIN_AFTER_S[0]))
    assert [question.number for question in checkout.claim()] == [2]


def test_not_charged_counts_only_once_the_request_must_have_arrived(checkout: Checkout) -> None:
    """Twice the time limit; until then it may be on its way, and charge."""
    sending = checkout.begin()
    checkout.later(SURELY_ARRIVED_AFTER - INSTANT)
    (early,) = checkout.claim()
    checkout.later(INSTANT + timedelta(seconds=ASK_AGAIN_AFTER_S[0]))
    for answer in (Answer.NOT_FOUND, Answer.NEEDS_CODE, Answer.NEEDS_REDIRECT):
        unknown = Settled(AttemptState.UNKNOWN, State.PROCESSING)
        assert checkout.answer_question(early, answer) == unknown
    (late,) = checkout.claim()
    assert late == Question(sending.attempt, 1, surely_arrived=True)
    declined = Settled(AttemptState.DECLINED, State.REQUIRES_PAYMENT_METHOD)
    assert checkout.answer_question(late, Answer.NOT_FOUND) == declined


def test_what_counts_is_when_the_provider_was_asked_not_when_its_answer_is_told(checkout: Checkout) -> None:
    """A slow verifier: the request arrived, and was paid, between the question and the telling."""
    sending = checkout.begin()
    checkout.later(FIRST_ASKED_AFTER)
    (question,) = checkout.claim()
    checkout.later(timedelta(minutes=5))
    unknown = Settled(AttemptState.UNKNOWN, State.PROCESSING)
    assert checkout.answer_question(question, Answer.NOT_FOUND) == unknown
    (again,) = checkout.claim()
    assert checkout.answer_question(again, Answer.PAID).attempt is AttemptState.PAID
    assert sending.attempt == again.attempt


def test_an_early_refusal_may_be_the_last_codes(checkout: Checkout) -> None:
    """What the provider shows before the second request arrives is what it made of the first."""
    code = checkout.begin(AttemptState.AWAITING_CODE)
    checkout.answer(checkout.send(code.attempt), Answer.NEEDS_CODE)
    checkout.send(code.attempt)
    checkout.later(FIRST_ASKED_AFTER)
    (early,) = checkout.claim()
    assert checkout.answer_question(early, Answer.DECLINED).attempt is AttemptState.UNKNOWN
    checkout.later(SURELY_ARRIVED_AFTER)
    (late,) = checkout.claim()
    assert checkout.answer_question(late, Answer.DECLINED).attempt is AttemptState.DECLINED


def test_a_provider_that_cannot_be_asked_leaves_it_to_an_operator(checkout: Checkout) -> None:
    """It stays processing, nobody asks in vain, and the operator's word settles it."""
    sending = checkout.begin()
    checkout.answer(sending, Answer.UNKNOWN)
    (question,) = checkout.claim()
    checkout.answer_question(question, Answer.UNKNOWN, can_be_asked=False)
    checkout.later(timedelta(days=3))
    assert checkout.claim() == []
    assert checkout.status() is State.PROCESSING
    assert checkout.decide(sending.attempt, Answer.PAID) == Settled(AttemptState.PAID, State.SUCCEEDED)


def test_a_provider_that_can_be_asked_after_all_is_asked(checkout: Checkout) -> None:
    """Its status call was switched off for a while."""
    checkout.begin()
    checkout.later(FIRST_ASKED_AFTER)
    (question,) = checkout.claim()
    checkout.answer_question(question, Answer.UNKNOWN, can_be_asked=False)
    checkout.answer_question(question, Answer.UNKNOWN)
    assert checkout.claim() == [question]


def test_what_has_ended_is_asked_about_no_more(checkout: Checkout) -> None:
    """Whoever brought the news."""
    sending = checkout.begin()
    checkout.notify(sending.attempt, Answer.DECLINED)
    checkout.later(timedelta(days=1))
    assert checkout.claim() == []


def test_two_at_once_do_not_ask_twice(checkout: Checkout, database: Database) -> None:
    """One that is being claimed, or settled, by somebody else is left to them."""
    sending = checkout.begin()
    checkout.later(FIRST_ASKED_AFTER)
    with database.transaction() as connection:
        connection.execute("select from payment_attempts for update")
        assert checkout.claim() == []
    assert [question.attempt for question in checkout.claim()] == [sending.attempt]
    assert checkout.claim() == []


@pytest.mark.plans
def test_claiming_uses_the_index(checkout: Checkout, database: Database) -> None:
    """However many attempts there have been."""
    with database.transaction() as connection:
        connection.execute(
            """insert into payment_attempts (intent_uuid, method, provider, state)
               select %s, 'card', 'sandbox', 'declined' from generate_series(1, 20000)""",
            (checkout.intent,),
        )
    sending = checkout.begin()
    checkout.later(FIRST_ASKED_AFTER)
    with database.cursor() as cursor:
        before = rows_read_sequentially(cursor, "payment_attempts")
    assert [question.attempt for question in checkout.claim()] == [sending.attempt]
    with database.cursor() as cursor:
        assert rows_read_sequentially(cursor, "payment_attempts") == before
