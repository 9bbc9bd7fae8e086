"""The order in which a payment's timeline tells what happened."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from services.dashboard.payments.looking import Attempt, Event, Facts, PaymentInFull
from services.dashboard.payments.timeline import Kind, timeline_of

START = datetime(2027, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def payment(events: list[tuple[str, float]], attempts: list[tuple[str, float, float]]) -> PaymentInFull:
    facts = Facts(
        uuid4(), "order 1", "abc", 1000, "LYD", "succeeded", None, None, None, None, at(9), at(0), at(0)
    )
    return PaymentInFull(
        facts,
        [
            Attempt(uuid4(), "card", "sandbox", state, None, None, at(began), at(changed))
            for state, began, changed in attempts
        ],
        [Event(seq, f"payment_intent.{kind}", at(when)) for seq, (kind, when) in enumerate(events, 1)],
        [],
    )


@pytest.mark.parametrize(
    ("events", "attempts", "expected"),
    [
        # Nobody came.
        ([("created", 0)], [], [Kind.CREATED]),
        # The intent's own change is written a little before the attempt's; told is the cause first.
        (
            [("created", 0), ("processing", 5.001), ("succeeded", 6.0)],
            [("paid", 5, 6.003)],
            [Kind.CREATED, Kind.ATTEMPT_BEGAN, Kind.PROCESSING, Kind.ATTEMPT_PAID, Kind.PAID],
        ),
        (
            [("created", 0), ("processing", 5.001), ("requires_payment_method", 6.0)],
            [("declined", 5, 6.003)],
            [Kind.CREATED, Kind.ATTEMPT_BEGAN, Kind.PROCESSING, Kind.ATTEMPT_DECLINED, Kind.OPEN_AGAIN],
        ),
        # Money after the end counts, and is called late; money before it is not.
        (
            [("created", 0), ("canceled", 10), ("succeeded", 20)],
            [("paid", 5, 20.001)],
            [Kind.CREATED, Kind.ATTEMPT_BEGAN, Kind.EXPIRED, Kind.ATTEMPT_PAID, Kind.PAID_LATE],
        ),
        # One that the provider charged twice has no beginning of its own.
        ([("created", 0)], [("duplicate", 7, 7)], [Kind.CREATED, Kind.SECOND_PAYMENT]),
        ([("created", 0)], [("duplicate", 7, 9)], [Kind.CREATED, Kind.ATTEMPT_BEGAN, Kind.SECOND_PAYMENT]),
        # What is still under way has no end; what was left has.
        ([("created", 0)], [("awaiting_code", 1, 2)], [Kind.CREATED, Kind.ATTEMPT_BEGAN]),
        (
            [("created", 0)],
            [("abandoned", 1, 2)],
            [Kind.CREATED, Kind.ATTEMPT_BEGAN, Kind.ATTEMPT_ABANDONED],
        ),
        # An event that this page does not know yet is left out.
        ([("created", 0), ("refunded", 5)], [], [Kind.CREATED]),
    ],
)
def test_moments_stand_in_the_order_of_cause_and_effect(
    events: list[tuple[str, float]], attempts: list[tuple[str, float, float]], expected: list[Kind]
) -> None:
    assert [moment.kind for moment in timeline_of(payment(events, attempts))] == expected
