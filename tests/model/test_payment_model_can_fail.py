"""The model of a payment can fail: each rule of the product is broken once, and the model finds what that costs."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from services.checkout.payments import one_time_codes
from shared.domain.attempts import decision_rules, settlement_rules, start, status_inquiries
from shared.domain.attempts import states as attempt_states
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents import states as intent_states
from shared.domain.intents.states import IntentStatus, IntentTrigger
from tests.model.exploration import CounterexampleError, explore
from tests.model.payment_model import PaymentModel
from tests.model.payment_state import TICK, Bounds, Method

Patch = pytest.MonkeyPatch

TWO_CARDS = Bounds(2, 1, 2, (Method.CARD,), has_operators=False)
TWO_CARDS_WITH_CODES = Bounds(2, 2, 3, (Method.CARD,), has_operators=False)
CARD_OR_PAGE = Bounds(2, 1, 2, (Method.CARD, Method.PAGE), has_operators=False)
WALLET_WITHOUT_STATUS = Bounds(1, 2, 3, (Method.WALLET_WITHOUT_STATUS,), has_operators=False)
CLOCK_IS_SET = Bounds(1, 1, 3, (Method.CARD,), has_operators=False, clock_is_set=True)
TWO_CARDS_AND_OPERATOR = Bounds(2, 1, 3, (Method.CARD,))


@dataclass(frozen=True)
class Breakage:
    name: str
    bounds: Bounds
    found: str
    """Part of the problem that the model reports."""
    make: Callable[[Patch], None]


def _believe_not_found_too_early(patch: Patch) -> None:
    patch.setattr(settlement_rules, "trusted_answer", lambda answer, **_: answer)


def _shorten_the_in_flight_window(patch: Patch) -> None:
    patch.setattr(settlement_rules, "IN_FLIGHT_WINDOW", TICK)


def _forget_the_request_number(patch: Patch) -> None:
    patch.setattr(settlement_rules, "is_superseded", lambda *_: False)


def _trust_every_notification(patch: Patch) -> None:
    patch.setattr(settlement_rules, "answer_in_notification", lambda _, answer: answer)


def _expire_while_processing(patch: Patch) -> None:
    patch.setitem(
        intent_states.TRANSITIONS, (IntentStatus.PROCESSING, IntentTrigger.EXPIRE), IntentStatus.CANCELED
    )


def _never_expire(patch: Patch) -> None:
    patch.setattr(intent_states, "may_expire", lambda _: False)


def _start_while_in_flight(patch: Patch) -> None:
    original = start.check_payable

    def check(intent: IntentStatus, is_expired: Callable[[], bool]) -> None:
        if intent is not IntentStatus.PROCESSING:
            original(intent, is_expired)

    patch.setattr(start, "check_payable", check)
    patch.setitem(
        intent_states.TRANSITIONS,
        (IntentStatus.PROCESSING, IntentTrigger.ATTEMPT_SENT),
        IntentStatus.PROCESSING,
    )


def _take_payments_after_expiry(patch: Patch) -> None:
    original = start.check_payable
    patch.setattr(start, "check_payable", lambda intent, _: original(intent, lambda: False))


def _leave_a_page_without_asking(patch: Patch) -> None:
    patch.setattr(start, "check_replaceable", lambda *_, **__: None)


def _accept_a_decline_after_paid(patch: Patch) -> None:
    patch.setitem(
        attempt_states.TRANSITIONS, (AttemptState.PAID, ProviderAnswer.DECLINED), AttemptState.DECLINED
    )


def _ignore_a_payment_after_a_decline(patch: Patch) -> None:
    patch.setitem(
        attempt_states.TRANSITIONS, (AttemptState.DECLINED, ProviderAnswer.PAID), AttemptState.DECLINED
    )


def _count_a_second_payment_as_the_first(patch: Patch) -> None:
    patch.setattr(
        settlement_rules, "state_after", lambda state, answer, _: attempt_states.TRANSITIONS[state, answer]
    )


def _ignore_a_payment_after_expiry(patch: Patch) -> None:
    key = (IntentStatus.CANCELED, IntentTrigger.PAYMENT_CONFIRMED)
    patch.setitem(intent_states.TRANSITIONS, key, IntentStatus.CANCELED)


def _forget_to_plan_the_inquiry(patch: Patch) -> None:
    patch.setattr(settlement_rules, "needs_inquiry", lambda *_, **__: False)


def _end_inquiries_with_an_answer(patch: Patch) -> None:
    patch.setattr(settlement_rules, "keeps_inquiries", lambda *_, **__: False)


def _stay_processing_after_a_decline(patch: Patch) -> None:
    original = attempt_states.intent_trigger

    def trigger(before: AttemptState, after: AttemptState) -> IntentTrigger | None:
        return None if after is AttemptState.DECLINED else original(before, after)

    patch.setattr(settlement_rules, "intent_trigger", trigger)


def _record_a_wrong_event(patch: Patch) -> None:
    original = intent_states.event_type_for

    def event_type(before: IntentStatus | None, after: IntentStatus) -> intent_states.EventType | None:
        event = original(before, after)
        is_paid = event is intent_states.EventType.SUCCEEDED
        return intent_states.EventType.PROCESSING if is_paid else event

    patch.setattr(intent_states, "event_type_for", event_type)


def _decline_what_may_still_arrive(patch: Patch) -> None:
    original = decision_rules.check_decision
    patch.setattr(
        decision_rules,
        "check_decision",
        lambda current, seen, _, **decision: original(current, seen, lambda: False, **decision),
    )
    _decide_with_an_early_answer(patch)


def _decide_with_an_early_answer(patch: Patch) -> None:
    patch.setattr(status_inquiries, "is_past_in_flight_window", lambda *_: True)


TWICE = "two charges"
FORGOTTEN = "a charge is forgotten"
BREAKAGES = [
    Breakage("not found is believed too early", TWO_CARDS, TWICE, _believe_not_found_too_early),
    Breakage("the in-flight window is too short", TWO_CARDS, TWICE, _shorten_the_in_flight_window),
    Breakage("the request number is not checked", TWO_CARDS_WITH_CODES, TWICE, _forget_the_request_number),
    Breakage(
        "notifications are always believed", WALLET_WITHOUT_STATUS, FORGOTTEN, _trust_every_notification
    ),
    Breakage("a processing intent expires", TWO_CARDS, "canceled", _expire_while_processing),
    Breakage("nothing expires", TWO_CARDS, "requires_payment_method", _never_expire),
    Breakage(
        "a second attempt starts while one is in flight", TWO_CARDS, "open at once", _start_while_in_flight
    ),
    Breakage("payments start after expiry", TWO_CARDS, "after expires_at", _take_payments_after_expiry),
    Breakage("a page is left without asking", CARD_OR_PAGE, TWICE, _leave_a_page_without_asking),
    Breakage("a decline counts after paid", TWO_CARDS, "became declined", _accept_a_decline_after_paid),
    Breakage("a late payment is ignored", TWO_CARDS, FORGOTTEN, _ignore_a_payment_after_a_decline),
    Breakage(
        "a second payment is no duplicate",
        TWO_CARDS,
        "one attempt is paid",
        _count_a_second_payment_as_the_first,
    ),
    Breakage(
        "a payment after expiry is ignored", TWO_CARDS, "must be succeeded", _ignore_a_payment_after_expiry
    ),
    Breakage("no inquiry is planned", TWO_CARDS, "nobody will ask", _forget_to_plan_the_inquiry),
    Breakage("inquiries end too early", CLOCK_IS_SET, FORGOTTEN, _end_inquiries_with_an_answer),
    Breakage(
        "a decline leaves the intent processing", TWO_CARDS, "processing", _stay_processing_after_a_decline
    ),
    Breakage("an event does not fit", TWO_CARDS, "event", _record_a_wrong_event),
    Breakage("an operator declines too early", TWO_CARDS_AND_OPERATOR, TWICE, _decline_what_may_still_arrive),
    Breakage(
        "an operator decides by an early answer", TWO_CARDS_AND_OPERATOR, TWICE, _decide_with_an_early_answer
    ),
]


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: breakage.name)
def test_broken_rule_of_payments_is_found(breakage: Breakage, monkeypatch: Patch) -> None:
    monkeypatch.setattr(one_time_codes, "MAX_CODE_TRIES", 2)
    breakage.make(monkeypatch)
    with pytest.raises(CounterexampleError) as found:
        explore(PaymentModel(breakage.bounds))
    assert breakage.found in found.value.problem
