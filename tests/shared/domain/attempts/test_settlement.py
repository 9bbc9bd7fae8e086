"""Attempts on real PostgreSQL: how each answer changes them and their intent (§3, DESIGN §3)."""

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


def test_payment_goes_through_processing_to_succeeded(checkout: Checkout) -> None:
    """`sent` is committed before the provider is called; `paid` settles attempt and intent."""
    request = checkout.begin()
    assert (checkout.status(), checkout.states()) == (IntentStatus.PROCESSING, [SENT])
    assert checkout.answer(request, ProviderAnswer.PAID) == SettlementResult(PAID, IntentStatus.SUCCEEDED)
    assert checkout.events() == ["processing", "succeeded"]


def test_intent_can_be_paid_again_after_a_declined_attempt(checkout: Checkout) -> None:
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
    """A double click, a second tab, an impatient customer; also while the outcome is unknown."""
    request = checkout.begin()
    if answer:
        checkout.answer(request, answer)
    for state in (SENT, CODE, REDIRECT):
        with pytest.raises(AttemptInFlightError):
            checkout.begin(state)
    assert checkout.events() == ["processing"]


def test_no_attempt_starts_on_a_paid_intent(checkout: Checkout) -> None:
    """The checkout shows the receipt instead."""
    code = checkout.begin(CODE)
    checkout.notify(code.attempt, ProviderAnswer.PAID)
    with pytest.raises(AlreadyPaidError):
        checkout.begin()
    with pytest.raises(AlreadyPaidError):
        checkout.send(code.attempt)


def test_customer_can_submit_another_code_after_a_wrong_one(checkout: Checkout) -> None:
    """The intent is in processing only while the provider checks a code."""
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


def test_second_code_is_refused_while_the_first_is_in_flight(checkout: Checkout) -> None:
    """Such as the confirmation of a second tab."""
    code = checkout.begin(CODE)
    checkout.send(code.attempt)
    with pytest.raises(AttemptInFlightError):
        checkout.send(code.attempt)


def test_new_attempt_replaces_one_that_awaits_a_code(checkout: Checkout) -> None:
    """The customer changed number or method: the old form no longer works."""
    old = checkout.begin(CODE)
    new = checkout.begin(CODE)
    assert checkout.states() == [ABANDONED, CODE]
    with pytest.raises(NotAwaitingCodeError):
        checkout.send(old.attempt)
    assert checkout.answer(old, ProviderAnswer.NEEDS_CODE).attempt is ABANDONED  # its answer comes late
    checkout.answer(checkout.send(new.attempt), ProviderAnswer.PAID)
    assert checkout.states() == [ABANDONED, PAID]


def test_open_redirect_is_abandoned_only_if_the_customer_says_so(checkout: Checkout) -> None:
    """They may be paying on the provider's page."""
    page = checkout.begin(REDIRECT)
    with pytest.raises(RedirectOpenError):
        checkout.begin()
    checkout.begin(leave_redirect=True)
    assert checkout.states() == [ABANDONED, SENT]
    assert checkout.notify(page.attempt, ProviderAnswer.DECLINED).attempt is ABANDONED
    assert checkout.status() is IntentStatus.PROCESSING  # because of the other attempt


def test_late_payment_of_an_abandoned_redirect_settles_the_intent(checkout: Checkout) -> None:
    """A payment of the other attempt is then a duplicate, without a second event."""
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
    """No code is requested for a paid intent."""
    page = checkout.begin(REDIRECT)
    card = checkout.begin(leave_redirect=True)
    checkout.notify(page.attempt, ProviderAnswer.PAID)
    assert checkout.answer(card, answer) == SettlementResult(state, IntentStatus.SUCCEEDED)
    assert checkout.events() == ["processing", "succeeded"]


def test_repeated_answer_changes_nothing(checkout: Checkout) -> None:
    """Notifications are repeated, and inquiries and returns report the same."""
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


def test_late_payment_of_a_declined_attempt_succeeds(checkout: Checkout) -> None:
    """By a signed notification, here after the intent has expired (§3: a verified late payment)."""
    request = checkout.begin()
    checkout.answer(request, ProviderAnswer.DECLINED)
    checkout.at(checkout.expires_at)
    checkout.expire()
    assert checkout.notify(request.attempt, ProviderAnswer.PAID) == SettlementResult(
        PAID, IntentStatus.SUCCEEDED
    )
    assert checkout.events() == ["processing", "requires_payment_method", "canceled", "succeeded"]


def test_answer_to_a_superseded_request_is_ignored_unless_paid(checkout: Checkout) -> None:
    """A slow process reports "wrong code" for an old request, while the next one may be charging."""
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
    )  # a payment always counts


def test_decline_that_may_be_of_an_earlier_code_is_verified(checkout: Checkout) -> None:
    """A notification names the attempt, not the request. The last request may be charging, so an inquiry follows."""
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


def test_decline_of_the_only_request_counts(checkout: Checkout) -> None:
    """It can belong to no other request."""
    request = checkout.begin()
    declined = SettlementResult(DECLINED, IntentStatus.REQUIRES_PAYMENT_METHOD)
    assert checkout.notify(request.attempt, ProviderAnswer.DECLINED) == declined


def test_second_charge_of_one_attempt_is_recorded_as_a_duplicate(checkout: Checkout) -> None:
    """At some providers each code is a charge of its own; a refund needs both references."""
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


def test_provider_reference_that_comes_later_is_stored(checkout: Checkout) -> None:
    """The response had none; the notification names it."""
    request = checkout.begin()
    checkout.answer(request, ProviderAnswer.PAID)
    checkout.notify(request.attempt, ProviderAnswer.PAID, reference="tx-1")
    assert checkout.references() == [(PAID, "tx-1")]


def test_provider_reference_replaces_one_that_an_operator_typed(checkout: Checkout) -> None:
    """The operator decided first. One charge was made, so there is no duplicate; a second charge still is one."""
    request = checkout.begin()
    checkout.decide(request.attempt, ProviderAnswer.PAID, reference="typed")
    assert checkout.references() == [(PAID, "typed")]
    for _ in range(2):
        checkout.notify(request.attempt, ProviderAnswer.PAID, reference="tx-1")
    assert checkout.references() == [(PAID, "tx-1")]
    checkout.notify(request.attempt, ProviderAnswer.PAID, reference="tx-2")
    assert checkout.references() == [(PAID, "tx-1"), (DUPLICATE, "tx-2")]


def test_operator_reference_does_not_replace_the_providers(checkout: Checkout) -> None:
    """The provider's notification came first, while the operator was typing."""
    request = checkout.begin()
    checkout.notify(request.attempt, ProviderAnswer.PAID, reference="tx-1")
    checkout.decide(request.attempt, ProviderAnswer.PAID, reference="typed")
    assert checkout.references() == [(PAID, "tx-1")]


def test_provider_reference_of_a_declined_attempt_is_kept_when_an_operator_decides(
    checkout: Checkout,
) -> None:
    request = checkout.begin()
    checkout.answer(request, ProviderAnswer.DECLINED, reference="tx-1")
    checkout.decide(request.attempt, ProviderAnswer.PAID, reference="typed")
    checkout.notify(request.attempt, ProviderAnswer.PAID, reference="tx-1")
    assert checkout.references() == [(PAID, "tx-1")]


def test_unknown_answers_while_awaiting_the_customer_change_nothing(checkout: Checkout) -> None:
    """Not even the reason that the customer sees."""
    code = checkout.begin(CODE)
    request = checkout.send(code.attempt)
    checkout.answer(request, ProviderAnswer.NEEDS_CODE, reason="wrong_code")
    for answer in (ProviderAnswer.UNKNOWN, ProviderAnswer.NOT_FOUND):
        assert checkout.answer(request, answer) == SettlementResult(
            CODE, IntentStatus.REQUIRES_PAYMENT_METHOD
        )
    assert checkout.reason() == "wrong_code"


def test_stalled_process_must_not_call_the_provider_after_the_deadline(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then an inquiry may have found nothing, and the customer may be paying again."""
    request = checkout.begin()
    assert not request.is_past_deadline()
    later = monotonic() + ANSWER_TIMEOUT.total_seconds() + 1
    monkeypatch.setattr("shared.domain.attempts.provider_exchange.monotonic", lambda: later)
    assert request.is_past_deadline()


def test_unknown_attempt_is_an_error(checkout: Checkout) -> None:
    with pytest.raises(AttemptNotFoundError):
        checkout.notify(uuid4(), ProviderAnswer.PAID)
    with pytest.raises(AttemptNotFoundError):
        checkout.send(uuid4())
