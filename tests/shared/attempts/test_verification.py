"""An attempt without an answer: somebody asks, with growing pauses, and believes only what is certain (DESIGN §3)."""

from datetime import timedelta

from shared.attempts.outcome import Settled
from shared.attempts.states import Answer, AttemptState
from shared.attempts.verification import (
    ASK_AGAIN_AFTER_S,
    FIRST_ASKED_AFTER,
    SURELY_ARRIVED_AFTER,
)
from shared.db.pool import Database
from shared.intents.states import State
from tests.shared.attempts.conftest import Checkout

INSTANT = timedelta(microseconds=1)


def test_an_attempt_whose_process_is_gone_is_asked_about(checkout: Checkout) -> None:
    """After a kill -9 between the commit and the provider's answer; never while the answer may still come."""
    sending = checkout.begin()
    checkout.later(FIRST_ASKED_AFTER - INSTANT)
    assert checkout.claim() == []
    checkout.later(INSTANT)
    assert checkout.claim() == [sending]
    checkout.settle_asked(sending, Answer.PAID)
    assert checkout.status() is State.SUCCEEDED


def test_an_unknown_outcome_is_asked_for_at_once_and_then_with_growing_pauses(checkout: Checkout) -> None:
    """The last pause stays: an outage of the provider may be long, and one answer ends it."""
    sending = checkout.begin()
    checkout.settle(sending, Answer.UNKNOWN)
    for pause in (0, *ASK_AGAIN_AFTER_S, ASK_AGAIN_AFTER_S[-1]):
        if pause:
            checkout.later(timedelta(seconds=pause) - INSTANT)
            assert checkout.claim() == []
            checkout.later(INSTANT)
        assert checkout.claim() == [sending]
        checkout.settle_asked(sending, Answer.UNKNOWN)
    assert checkout.status() is State.PROCESSING


def test_each_sending_is_asked_about_from_the_start(checkout: Checkout) -> None:
    """The pauses of the first code's silence do not count for the second's."""
    code = checkout.begin(AttemptState.AWAITING_CODE)
    first = checkout.send(code.attempt)
    checkout.later(timedelta(minutes=5))
    assert checkout.claim() == [first]
    checkout.settle_asked(first, Answer.NEEDS_CODE)
    second = checkout.send(code.attempt)
    checkout.later(FIRST_ASKED_AFTER)
    assert checkout.claim() == [second]
    checkout.later(timedelta(seconds=ASK_AGAIN_AFTER_S[0]))
    assert checkout.claim() == [second]


def test_never_heard_of_it_means_declined_only_once_it_must_have_arrived(checkout: Checkout) -> None:
    """Twice the request's time limit; until then it may be on its way, and charge."""
    sending = checkout.begin()
    checkout.later(SURELY_ARRIVED_AFTER - INSTANT)
    for answer in (Answer.NOT_FOUND, Answer.NEEDS_CODE, Answer.NEEDS_REDIRECT):
        unknown = Settled(AttemptState.UNKNOWN, State.PROCESSING)
        assert checkout.settle_asked(sending, answer) == unknown
    checkout.later(INSTANT)
    declined = Settled(AttemptState.DECLINED, State.REQUIRES_PAYMENT_METHOD)
    assert checkout.settle_asked(sending, Answer.NOT_FOUND) == declined


def test_a_provider_that_cannot_be_asked_leaves_it_to_an_operator(checkout: Checkout) -> None:
    """It stays processing, nobody asks in vain, and the operator's word settles it."""
    sending = checkout.begin()
    checkout.settle(sending, Answer.UNKNOWN)
    checkout.settle_asked(sending, Answer.UNKNOWN, can_be_asked=False)
    checkout.later(timedelta(days=3))
    assert checkout.claim() == []
    assert checkout.status() is State.PROCESSING
    assert checkout.settle_told(sending.attempt, Answer.PAID) == Settled(AttemptState.PAID, State.SUCCEEDED)


def test_what_has_ended_is_asked_about_no_more(checkout: Checkout) -> None:
    """Whoever brought the news."""
    sending = checkout.begin()
    checkout.settle_told(sending.attempt, Answer.DECLINED)
    checkout.later(timedelta(days=1))
    assert checkout.claim() == []


def test_two_at_once_do_not_ask_twice(checkout: Checkout, database: Database) -> None:
    """One that is being claimed, or settled, by somebody else is left to them."""
    sending = checkout.begin()
    checkout.later(FIRST_ASKED_AFTER)
    with database.transaction() as connection:
        connection.execute("select from payment_attempts for update")
        assert checkout.claim() == []
    assert checkout.claim() == [sending]
    assert checkout.claim() == []


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
    before = _rows_scanned(database)
    assert checkout.claim() == [sending]
    assert _rows_scanned(database) == before


def _rows_scanned(database: Database) -> int:
    with database.cursor() as cursor:
        cursor.execute("select pg_stat_force_next_flush()")
        query = "select seq_tup_read from pg_stat_user_tables where relname = 'payment_attempts'"
        row = cursor.execute(query).fetchone()
    assert row is not None
    return int(row[0])
