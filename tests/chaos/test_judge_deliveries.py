"""Damage to deliveries and their tries, planted into a correct history, is named by the rule that it breaks."""

from dataclasses import replace

import pytest

from chaos.history import DeliveryShown, Record, ResendRequested, TryShown, WebhooksPaused
from tests.chaos.planted import (
    Planted,
    add,
    assert_named,
    both,
    change,
    change_request,
    drop,
    find_record,
    names,
    never_listed,
    never_sent,
    planted,
    repeat_request,
    request_of,
)
from tests.chaos.run_builder import CANCELED, START, SUCCEEDED, delivery_id

_CARD = delivery_id("card", SUCCEEDED)
_RETRIED = delivery_id("retried", SUCCEEDED)
_ACROSS_ROLL = delivery_id("across-roll", SUCCEEDED)
_AFTER_URL = delivery_id("after-url", SUCCEEDED)
_CODE = delivery_id("code", SUCCEEDED)
_REPEATED = delivery_id("repeated", SUCCEEDED)
_UNDELIVERABLE = delivery_id("undeliverable", SUCCEEDED)
_SET_ASIDE = delivery_id("set-aside", SUCCEEDED)
_LATE = delivery_id("late", CANCELED)


def _try_a_tenth_time(records: list[Record]) -> list[Record]:
    last = find_record(records, TryShown, delivery=_UNDELIVERABLE, number=9)
    request = request_of(records, _UNDELIVERABLE, 8)
    return [
        *change(DeliveryShown, {"scheduled_tries": 10}, delivery=_UNDELIVERABLE)(records),
        replace(last, number=10, began_at=last.began_at + 20),
        replace(request, at=request.at + 20),
    ]


def _try_again_after_success(records: list[Record]) -> list[Record]:
    tried = find_record(records, TryShown, delivery=_CODE)
    return [
        *change(DeliveryShown, {"scheduled_tries": 2}, delivery=_CODE)(records),
        replace(tried, number=2, began_at=tried.began_at + 2),
        replace(request_of(records, _CODE), at=START + 75.1),
    ]


_PAUSED_AT_END = WebhooksPaused(
    at=START + 399, began_at=START + 398, application="alpha", paused=True, acknowledged=True
)

PLANTED = [
    planted(
        "a delivery is not listed",
        never_listed(_REPEATED),
        "delivery-is-listed",
        "change-has-a-delivery",
    ),
    planted(
        "a delivery is listed twice",
        lambda records: [*records, find_record(records, DeliveryShown, delivery=_CARD)],
        "delivery-is-listed",
    ),
    planted(
        "a delivery is listed for another application",
        change(DeliveryShown, {"application": "beta"}, delivery=_AFTER_URL),
        "delivery-is-listed",
    ),
    planted(
        "the numbers of tries have a gap",
        change(TryShown, {"number": 4}, delivery=_RETRIED, number=3),
        "tries-are-complete",
    ),
    planted(
        "a try is forgotten",
        drop(TryShown, delivery=_RETRIED, number=2),
        "tries-are-complete",
        "repeat-only-around-fault",
    ),
    planted(
        "tries of a delivery that is not listed",
        drop(DeliveryShown, delivery=delivery_id("unknown", CANCELED)),
        "tries-are-complete",
        "delivery-is-listed",
    ),
    planted("a delivery is tried ten times", _try_a_tenth_time, "at-most-nine-tries"),
    planted(
        "a retry is early",
        change(TryShown, {"began_at": START + 25.4}, delivery=_RETRIED, number=3),
        "retry-is-never-early",
    ),
    planted(
        "a retry is early, and shown as if it were not",
        both(
            change_request(_ACROSS_ROLL, 1, at=START + 39.2),
            change(TryShown, {"began_at": START + 39.65}, delivery=_ACROSS_ROLL, number=2),
        ),
        "retry-is-never-early",
    ),
    planted(
        "a retry comes before the try that hangs has ended",
        both(
            change_request(_RETRIED, 0, answer="hang"),
            change(TryShown, {"result": "timeout"}, delivery=_RETRIED, number=1),
        ),
        "retry-is-never-early",
    ),
    planted(
        "a delivery fails before its ninth try",
        change(DeliveryShown, {"status": "failed"}, delivery=_SET_ASIDE),
        "status-follows-from-tries",
    ),
    planted(
        "a delivery is pending after its ninth try",
        change(DeliveryShown, {"status": "pending"}, delivery=_UNDELIVERABLE),
        "status-follows-from-tries",
    ),
    planted(
        "a delivery is tried again after it succeeded",
        _try_again_after_success,
        "status-follows-from-tries",
    ),
    planted(
        "a try shows an answer that no receiver gave",
        change_request(_ACROSS_ROLL, 1, answer="500"),
        "answered-try-was-received",
        "repeat-only-around-fault",
    ),
    planted(
        "a try shows an answer to a request that was not sent",
        change(TryShown, {"result": "500"}, delivery=_RETRIED, number=2),
        "answered-try-was-received",
        "repeat-only-around-fault",
    ),
    planted(
        "an answer is forgotten",
        both(
            change(TryShown, {"result": "timeout"}, delivery=_AFTER_URL),
            change(DeliveryShown, {"status": "pending"}, delivery=_AFTER_URL),
            add(_PAUSED_AT_END),
        ),
        "accepted-delivery-succeeds",
    ),
    planted("a request is repeated without a fault", repeat_request(_CODE, 75), "repeat-only-around-fault"),
    planted(
        "a request is sent again because its connection, which was new, was closed",
        both(
            change_request(_RETRIED, 1, connection=99),
            repeat_request(_RETRIED, 23.7, connection=8),
        ),
        "closed-connection-is-replaced-once",
    ),
    planted(
        "a request is sent again twice because its connections were closed",
        both(
            repeat_request(_RETRIED, 23.7, connection=8, answer="close"),
            repeat_request(_RETRIED, 23.8, connection=9),
        ),
        "closed-connection-is-replaced-once",
    ),
    planted(
        "a request is sent again twice because its connections, which were new, were closed, around a fault",
        both(
            change_request(_REPEATED, 0, answer="close", connection=99),
            repeat_request(_REPEATED, 107.2, connection=98, answer="close"),
            repeat_request(_REPEATED, 107.3, connection=97, answer="close"),
        ),
        "closed-connection-is-replaced-once",
    ),
    planted(
        "a request is repeated some time after its connection was closed",
        repeat_request(_RETRIED, 24.2, connection=8),
        "repeat-only-around-fault",
    ),
    planted(
        "a request is repeated at once on another connection",
        repeat_request(_CODE, 73.5, connection=8),
        "repeat-only-around-fault",
    ),
    planted(
        "a jump of the clock is no excuse for a repeat",
        repeat_request(_LATE, 303),
        "repeat-only-around-fault",
    ),
    planted(
        "a request long after its success, around a fault",
        repeat_request(_REPEATED, 385),
        "no-request-after-recorded-success",
    ),
    planted(
        "a request long after its success, and before it was resent",
        both(
            repeat_request(_REPEATED, 385),
            add(
                ResendRequested(
                    at=START + 391,
                    began_at=START + 390,
                    application="beta",
                    delivery=_REPEATED,
                    acknowledged=False,
                )
            ),
        ),
        "no-request-after-recorded-success",
    ),
    planted(
        "a resend is not made",
        add(
            ResendRequested(
                at=START + 71, began_at=START + 70, application="alpha", delivery=_RETRIED, acknowledged=True
            )
        ),
        "resend-is-one-try",
    ),
    planted(
        "a resend after a pause is not made",
        add(
            ResendRequested(
                at=START + 81, began_at=START + 80, application="beta", delivery=_CODE, acknowledged=True
            )
        ),
        "resend-is-one-try",
    ),
    planted(
        "a delivery is stuck",
        both(
            never_sent(_AFTER_URL),
            drop(TryShown, delivery=_AFTER_URL),
            change(DeliveryShown, {"status": "pending", "scheduled_tries": 0}, delivery=_AFTER_URL),
        ),
        "nothing-is-pending",
        "change-is-received",
    ),
]


@pytest.mark.parametrize("case", PLANTED, ids=names(PLANTED))
def test_damage_is_named(case: Planted) -> None:
    assert_named(case)
