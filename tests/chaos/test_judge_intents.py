"""Damage to intents and their states, planted into a correct history, is named by the rule that it breaks."""

from dataclasses import replace

import pytest

from chaos.history import CreateAnswered, CustomerClicked, Record, RetrieveAnswered, TryShown
from tests.chaos.planted import (
    Planted,
    add_run,
    assert_named,
    both,
    change,
    change_intent,
    change_request,
    drop,
    final_status,
    names,
    never_listed,
    never_sent,
    planted,
    retrieve,
)
from tests.chaos.run_builder import AMOUNT, CANCELED, DAY, START, RunBuilder, delivery_id
from tests.chaos.sample_run import ALPHA_NEW_URL, NEW

_LATE = delivery_id("late", CANCELED)
_DECLINED = delivery_id("declined", CANCELED)


def _create_second_intent(records: list[Record]) -> list[Record]:
    """Answer a repeated create of `card` with an intent of its own, which then expires."""
    run = RunBuilder()
    run.create("alpha", "other", 10, 200)
    run.retrieve("alpha", "other", 431, run.seen("other", "canceled", 10, 301))
    created, final = run.records
    assert isinstance(created, CreateAnswered)
    assert isinstance(final, RetrieveAnswered)
    assert created.intent is not None
    assert final.intent is not None
    run.records = [
        replace(
            created,
            merchant_reference="order-card",
            intent=replace(created.intent, merchant_reference="order-card"),
        ),
        replace(final, intent=replace(final.intent, merchant_reference="order-card")),
    ]
    run.deliver("alpha", "other", CANCELED, [(302, "200")], secret=NEW, url=ALPHA_NEW_URL)
    return [*records, *run.records]


PLANTED = [
    planted(
        "an intent is gone",
        add_run(lambda run: run.retrieve("alpha", "card", 20, None, 404)),
        "acknowledged-intent-exists",
    ),
    planted(
        "an intent is gone at the end",
        change(RetrieveAnswered, {"http_status": 404, "intent": None}, uuid="card", after_settling=True),
        "acknowledged-intent-exists",
        "final-state-is-known",
    ),
    planted(
        "an intent was not retrieved at the end",
        drop(RetrieveAnswered, uuid="card", after_settling=True),
        "final-state-is-known",
    ),
    planted("a repeated create makes a second intent", _create_second_intent, "one-reference-one-intent"),
    planted(
        "two creates are answered 201",
        change(CreateAnswered, {"http_status": 201, "amount": AMOUNT, "expires_at": None}, http_status=200),
        "one-reference-one-intent",
    ),
    planted(
        "another application sees an intent",
        retrieve("beta", "card", 20, "succeeded", 10),
        "intent-has-one-owner",
    ),
    planted(
        "the amount changes",
        change_intent(RetrieveAnswered, {"amount": 1000}, uuid="card"),
        "intent-keeps-its-fields",
    ),
    planted(
        "the expiry changes",
        change_intent(RetrieveAnswered, {"expires_at": START + 11 + DAY}, uuid="card"),
        "intent-keeps-its-fields",
    ),
    planted(
        "the amount is not the requested one",
        change(CreateAnswered, {"amount": 1000}, http_status=201),
        "intent-is-as-requested",
    ),
    planted(
        "the expiry is not the requested one",
        change(CreateAnswered, {"expires_at": START + 1000}, http_status=201),
        "intent-is-as-requested",
    ),
    planted(
        "an answer has no intent",
        add_run(lambda run: run.retrieve("alpha", "card", 20, None)),
        "answer-has-an-intent",
    ),
    planted(
        "an answer has another intent",
        change(RetrieveAnswered, {"uuid": "retried"}, uuid="card", after_settling=False),
        "answer-has-an-intent",
    ),
    planted(
        "a valid create is refused, also around a fault",
        change(CreateAnswered, {"http_status": 422}, merchant_reference="order-unknown"),
        "valid-request-is-accepted",
    ),
    planted(
        "an expiry is refused that is far enough ahead",
        change(
            CreateAnswered,
            {"http_status": 422, "expires_at": START + 500, "at": START + 111},
            merchant_reference="order-unknown",
        ),
        "valid-request-is-accepted",
    ),
    planted(
        "no answer after settling",
        change(
            RetrieveAnswered,
            {"http_status": None, "intent": None, "began_at": START + 445, "at": START + 455},
            uuid="card",
            after_settling=True,
        ),
        "error-only-around-fault",
        "final-state-is-known",
    ),
    planted(
        "a create is refused with another status, although its expiry is too near",
        change(
            CreateAnswered,
            {"http_status": 400, "expires_at": START + 400, "at": START + 111},
            merchant_reference="order-unknown",
        ),
        "valid-request-is-accepted",
    ),
    planted(
        "the owner is refused",
        add_run(lambda run: run.retrieve("alpha", "card", 20, None, 403)),
        "valid-request-is-accepted",
    ),
    planted(
        "an error without a fault",
        add_run(lambda run: run.retrieve("alpha", "card", 20, None, 503)),
        "error-only-around-fault",
    ),
    planted(
        "no answer without a fault",
        add_run(lambda run: run.create("alpha", "shed", 20, None)),
        "error-only-around-fault",
    ),
    planted(
        "an intent that its application never asked for",
        retrieve("beta", "ghost", 200, "requires_payment_method", 190),
        "intent-was-requested",
    ),
    planted("an unknown status", retrieve("alpha", "card", 11, "paid", 10), "status-is-of-the-spec"),
    planted(
        "succeeded is not final",
        retrieve("silent", "without-url", 200, "requires_payment_method", 140),
        "status-moves-as-allowed",
    ),
    planted(
        "a canceled intent is processing",
        add_run(lambda run: run.retrieve("beta", "late", 307, run.seen("late", "processing", 98, 306))),
        "status-moves-as-allowed",
        "retrieval-after-receipt-is-not-older",
    ),
    planted(
        "what the customer saw as paid is not",
        change_intent(RetrieveAnswered, {"status": "processing"}, uuid="without-url", after_settling=False),
        "status-moves-as-allowed",
    ),
    planted(
        "a retrieve is older than a webhook",
        retrieve("beta", "unanswered", 100, "processing", 80),
        "retrieval-after-receipt-is-not-older",
    ),
    planted(
        "a retrieve is older than a webhook about canceled",
        retrieve("alpha", "declined", 304, "requires_payment_method", 120),
        "retrieval-after-receipt-is-not-older",
    ),
    planted(
        "the time of the last update goes back",
        change_intent(RetrieveAnswered, {"updated_at": START + 10.2}, uuid="card", after_settling=True),
        "update-time-never-goes-back",
    ),
    planted(
        "an intent is stuck in processing",
        both(
            final_status("declined", "processing", 120, 121.2),
            never_sent(_DECLINED),
            never_listed(_DECLINED),
        ),
        "nothing-is-processing",
    ),
    planted(
        "an intent does not expire",
        both(
            final_status("declined", "requires_payment_method", 120, 121.2),
            never_sent(_DECLINED),
            never_listed(_DECLINED),
        ),
        "expired-is-canceled",
    ),
    planted(
        "canceled is seen early",
        retrieve("beta", "late", 200, "canceled", 98),
        "never-canceled-early",
    ),
    planted(
        "canceled is dated early",
        change_intent(RetrieveAnswered, {"updated_at": START + 290}, uuid="late"),
        "never-canceled-early",
    ),
    planted(
        "a webhook about canceled comes early",
        both(
            change_request(_LATE, at=START + 299.7),
            change(TryShown, {"began_at": START + 299.6}, delivery=_LATE),
        ),
        "never-canceled-early",
    ),
    planted(
        "the checkout says expired early",
        change(CustomerClicked, {"at": START + 200, "began_at": START + 199}, page="expired"),
        "never-canceled-early",
    ),
]


@pytest.mark.parametrize("case", PLANTED, ids=names(PLANTED))
def test_damage_is_named(case: Planted) -> None:
    assert_named(case)
