"""Attempts on the real database: how each answer changes them and their intent (§3, DESIGN §3)."""

from datetime import timedelta
from time import monotonic
from uuid import uuid4

import pytest

from shared.domain.attempts.provider_exchange import SettlementResult, StatusInquiry
from shared.domain.attempts.settlement import AttemptNotFoundError
from shared.domain.attempts.start import (
    AlreadyPaidError,
    AttemptInFlightError,
    NotAwaitingCodeError,
    RedirectOpenError,
)
from shared.domain.attempts.states import ANSWER_TIMEOUT, AttemptState, ProviderAnswer
from shared.domain.intents.states import IntentStatus
from tests.shared.domain.attempts.conftest import Checkout

CODE, REDIRECT, SENT, UNKNOWN, PAID, DECLINED, ABANDONED, DUPLICATE = AttemptState


def test_a_payment_goes_through_processing_to_succeeded(checkout: Checkout) -> None:
    """Sent is committed before the provider is called; paid settles both."""
    request = checkout.begin()
    assert (checkout.status(), checkout.states()) == (IntentStatus.PROCESSING, [SENT])
    assert checkout.answer(request, ProviderAnswer.PAID) == SettlementResult(PAID, IntentStatus.SUCCEEDED)
    assert checkout.events() == ["processing", "succeeded"]


def test_a_declined_payment_leads_back_and_can_be_tried_again(checkout: Checkout) -> None:
    """§3: a failed attempt leads back to requires_payment_method."""
    first = checkout.begin()
    assert checkout.answer(first, ProviderAnswer.DECLINED) == SettlementResult(
        DECLINED, IntentStatus.REQUIRES_PAYMENT_METHOD
    )
    checkout.answer(checkout.begin(), ProviderAnswer.PAID)
    assert checkout.states() == [DECLINED, PAID]
    assert checkout.events() == ["processing", "requires_payment_method", "processing", "succeeded"]


@pytest.mark.parametrize("answer", [None, ProviderAnswer.UNKNOWN])
def test_no_attempt_starts_while_another_may_be_charging(
    checkout: Checkout, answer: ProviderAnswer | None
) -> None:
    """A double click, a second tab, an impatient customer: also while the outcome is unknown."""
    request = checkout.begin()
    if answer:
        checkout.answer(request, answer)
    for state in (SENT, CODE, REDIRECT):
        with pytest.raises(AttemptInFlightError):
            checkout.begin(state)
    assert checkout.events() == ["processing"]


def test_no_attempt_starts_on_a_paid_intent(checkout: Checkout) -> None:
    """It shows the receipt instead."""
    code = checkout.begin(CODE)
    checkout.notify(code.attempt, ProviderAnswer.PAID)
    with pytest.raises(AlreadyPaidError):
        checkout.begin()
    with pytest.raises(AlreadyPaidError):
        checkout.send(code.attempt)


def test_a_code_is_asked_for_sent_wrong_and_sent_again(checkout: Checkout) -> None:
    """The intent is processing only while the provider has a code to judge."""
    code = checkout.begin(CODE)
    checkout.answer(code, ProviderAnswer.NEEDS_CODE)
    assert checkout.status() is IntentStatus.REQUIRES_PAYMENT_METHOD
    wrong = checkout.send(code.attempt)
    assert checkout.status() is IntentStatus.PROCESSING
    checkout.answer(wrong, ProviderAnswer.NEEDS_CODE, reason="wrong_code")
    assert (checkout.status(), checkout.states()) == (IntentStatus.REQUIRES_PAYMENT_METHOD, [CODE])
    right = checkout.send(code.attempt)
    assert (wrong.number, right.number) == (1, 2)
    checkout.answer(right, ProviderAnswer.PAID)
    assert checkout.events() == ["processing", "requires_payment_method", "processing", "succeeded"]


def test_a_code_is_accepted_once(checkout: Checkout) -> None:
    """The second tab's confirmation finds it under way, or no longer waiting."""
    code = checkout.begin(CODE)
    checkout.send(code.attempt)
    with pytest.raises(AttemptInFlightError):
        checkout.send(code.attempt)


def test_a_new_attempt_replaces_one_that_awaits_a_code(checkout: Checkout) -> None:
    """Change number or method: the old form no longer works."""
    old = checkout.begin(CODE)
    new = checkout.begin(CODE)
    assert checkout.states() == [ABANDONED, CODE]
    with pytest.raises(NotAwaitingCodeError):
        checkout.send(old.attempt)
    assert checkout.answer(old, ProviderAnswer.NEEDS_CODE).attempt is ABANDONED  # its own answer comes late
    checkout.answer(checkout.send(new.attempt), ProviderAnswer.PAID)
    assert checkout.states() == [ABANDONED, PAID]


def test_a_providers_page_is_left_only_when_the_customer_says_so(checkout: Checkout) -> None:
    """They may be paying there at this moment."""
    page = checkout.begin(REDIRECT)
    with pytest.raises(RedirectOpenError):
        checkout.begin()
    checkout.begin(leave_redirect=True)
    assert checkout.states() == [ABANDONED, SENT]
    assert checkout.notify(page.attempt, ProviderAnswer.DECLINED).attempt is ABANDONED
    assert checkout.status() is IntentStatus.PROCESSING  # the other attempt's


def test_an_abandoned_provider_page_is_paid_after_all(checkout: Checkout) -> None:
    """It settles the intent, and what the other attempt brings then is a duplicate, without a second event."""
    page = checkout.begin(REDIRECT)
    card = checkout.begin(leave_redirect=True)
    assert checkout.notify(page.attempt, ProviderAnswer.PAID) == SettlementResult(
        PAID, IntentStatus.SUCCEEDED
    )
    assert checkout.answer(card, ProviderAnswer.PAID) == SettlementResult(DUPLICATE, IntentStatus.SUCCEEDED)
    assert checkout.states() == [PAID, DUPLICATE]
    assert checkout.events() == ["processing", "succeeded"]


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (ProviderAnswer.DECLINED, DECLINED),
        (ProviderAnswer.NEEDS_CODE, ABANDONED),
        (ProviderAnswer.UNKNOWN, UNKNOWN),
    ],
)
def test_other_answers_on_a_paid_intent_change_only_the_attempt(
    checkout: Checkout, answer: ProviderAnswer, state: AttemptState
) -> None:
    """Nobody is asked for a code on an intent that is paid."""
    page = checkout.begin(REDIRECT)
    card = checkout.begin(leave_redirect=True)
    checkout.notify(page.attempt, ProviderAnswer.PAID)
    assert checkout.answer(card, answer) == SettlementResult(state, IntentStatus.SUCCEEDED)
    assert checkout.events() == ["processing", "succeeded"]


def test_a_repeated_answer_changes_nothing(checkout: Checkout) -> None:
    """Notifications are repeated, and verification and return say the same."""
    request = checkout.begin()
    for _ in range(3):
        assert checkout.notify(request.attempt, ProviderAnswer.PAID) == SettlementResult(
            PAID, IntentStatus.SUCCEEDED
        )
        assert checkout.answer(request, ProviderAnswer.PAID) == SettlementResult(PAID, IntentStatus.SUCCEEDED)
        inquiry = StatusInquiry(request.attempt, request.number, past_in_flight_window=False)
        assert checkout.answer_inquiry(inquiry, ProviderAnswer.PAID) == SettlementResult(
            PAID, IntentStatus.SUCCEEDED
        )
    assert checkout.notify(request.attempt, ProviderAnswer.DECLINED) == SettlementResult(
        PAID, IntentStatus.SUCCEEDED
    )
    assert checkout.events() == ["processing", "succeeded"]


def test_a_declined_payment_that_is_paid_after_all_counts(checkout: Checkout) -> None:
    """By a signed notification; here after the intent has expired (§3: a verified late payment)."""
    request = checkout.begin()
    checkout.answer(request, ProviderAnswer.DECLINED)
    checkout.at(checkout.expires_at)
    checkout.expire()
    assert checkout.notify(request.attempt, ProviderAnswer.PAID) == SettlementResult(
        PAID, IntentStatus.SUCCEEDED
    )
    assert checkout.events() == ["processing", "requires_payment_method", "canceled", "succeeded"]


def test_a_superseded_answer_is_ignored(checkout: Checkout) -> None:
    """A slow process says "wrong code" of a request that is long over, while the next one may be charging."""
    code = checkout.begin(CODE)
    first = checkout.send(code.attempt)
    checkout.later(timedelta(minutes=1))
    (inquiry,) = checkout.claim()
    checkout.answer_inquiry(inquiry, ProviderAnswer.NEEDS_CODE)
    checkout.send(code.attempt)
    checkout.later(timedelta(minutes=1))
    for answer in (
        ProviderAnswer.NEEDS_CODE,
        ProviderAnswer.DECLINED,
        ProviderAnswer.UNKNOWN,
        ProviderAnswer.NOT_FOUND,
    ):
        assert checkout.answer(first, answer) == SettlementResult(SENT, IntentStatus.PROCESSING)
        assert checkout.answer_inquiry(inquiry, answer) == SettlementResult(SENT, IntentStatus.PROCESSING)
    assert checkout.answer(first, ProviderAnswer.PAID) == SettlementResult(
        PAID, IntentStatus.SUCCEEDED
    )  # money always counts


def test_a_decline_that_may_be_of_an_earlier_code_is_verified(checkout: Checkout) -> None:
    """A notification names the attempt, not the request; the last one may be charging, so the provider is asked."""
    code = checkout.begin(CODE)
    checkout.answer(checkout.send(code.attempt), ProviderAnswer.NEEDS_CODE, reason="wrong_code")
    second = checkout.send(code.attempt)
    checkout.later(timedelta(minutes=5))
    assert checkout.notify(code.attempt, ProviderAnswer.DECLINED) == SettlementResult(
        UNKNOWN, IntentStatus.PROCESSING
    )
    assert [(inquiry.attempt, inquiry.number) for inquiry in checkout.claim()] == [
        (second.attempt, second.number)
    ]


def test_a_refusal_of_the_only_request_counts(checkout: Checkout) -> None:
    """Nothing else can be meant."""
    request = checkout.begin()
    declined = SettlementResult(DECLINED, IntentStatus.REQUIRES_PAYMENT_METHOD)
    assert checkout.notify(request.attempt, ProviderAnswer.DECLINED) == declined


def test_a_second_charge_of_one_attempt_is_recorded_as_a_duplicate(checkout: Checkout) -> None:
    """Each code is a charge of its own at some providers; whoever pays back needs both references."""
    code = checkout.begin(CODE)
    first = checkout.send(code.attempt)
    checkout.answer(first, ProviderAnswer.NEEDS_CODE)
    second = checkout.send(code.attempt)
    checkout.answer(second, ProviderAnswer.PAID, reference="tx-2")
    for _ in range(2):
        checkout.answer(first, ProviderAnswer.PAID, reference="tx-1")
        checkout.notify(code.attempt, ProviderAnswer.PAID, reference="tx-2")
    assert checkout.references() == [(PAID, "tx-2"), (DUPLICATE, "tx-1")]
    assert checkout.events()[-1:] == ["succeeded"]


def test_a_reference_that_comes_later_is_kept(checkout: Checkout) -> None:
    """Asked, the provider said paid; its notification names the reference."""
    request = checkout.begin()
    checkout.answer(request, ProviderAnswer.PAID)
    checkout.notify(request.attempt, ProviderAnswer.PAID, reference="tx-1")
    assert checkout.references() == [(PAID, "tx-1")]


def test_no_answer_while_awaiting_the_customer_changes_nothing(checkout: Checkout) -> None:
    """Not even the reason that they were told."""
    code = checkout.begin(CODE)
    request = checkout.send(code.attempt)
    checkout.answer(request, ProviderAnswer.NEEDS_CODE, reason="wrong_code")
    for answer in (ProviderAnswer.UNKNOWN, ProviderAnswer.NOT_FOUND):
        assert checkout.answer(request, answer) == SettlementResult(
            CODE, IntentStatus.REQUIRES_PAYMENT_METHOD
        )
    assert checkout.reason() == "wrong_code"


def test_a_process_that_stalls_must_not_call_any_more(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then others may have asked the provider, heard that it knows nothing, and let the customer pay again."""
    request = checkout.begin()
    assert not request.is_past_deadline()
    later = monotonic() + ANSWER_TIMEOUT.total_seconds() + 1
    monkeypatch.setattr("shared.domain.attempts.provider_exchange.monotonic", lambda: later)
    assert request.is_past_deadline()


def test_an_unknown_attempt_is_an_error(checkout: Checkout) -> None:
    """Not silence, and not somebody else's attempt."""
    with pytest.raises(AttemptNotFoundError):
        checkout.notify(uuid4(), ProviderAnswer.PAID)
    with pytest.raises(AttemptNotFoundError):
        checkout.send(uuid4())
