"""The order of the entries of a payment's timeline."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from services.dashboard.payments.queries import PaymentAttempt, PaymentDetails, PaymentEvent, PaymentHistory
from services.dashboard.payments.timeline import EntryKind, build_timeline

START = datetime(2027, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def payment(events: list[tuple[str, float]], attempts: list[tuple[str, float, float]]) -> PaymentHistory:
    details = PaymentDetails(
        uuid4(), "order 1", "abc", 1000, "LYD", "succeeded", None, None, None, None, at(9), at(0), at(0)
    )
    return PaymentHistory(
        details,
        [
            PaymentAttempt(uuid4(), "card", "sandbox", state, None, None, at(began), at(changed))
            for state, began, changed in attempts
        ],
        [_event(seq, kind, when) for seq, (kind, when) in enumerate(events, 1)],
        [],
    )


def _event(seq: int, kind: str, when: float) -> PaymentEvent:
    """`kind` ends with the number of the code, if the event followed from a wrong one."""
    name, _, wrong_code = kind.partition(" ")
    return PaymentEvent(seq, f"payment_intent.{name}", at(when), int(wrong_code) if wrong_code else None)


@pytest.mark.parametrize(
    ("events", "attempts", "expected"),
    [
        # No attempt was made.
        ([("created", 0)], [], [EntryKind.CREATED]),
        # The event of the intent is written a little before that of the attempt; the cause is shown first.
        (
            [("created", 0), ("processing", 5.001), ("succeeded", 6.0)],
            [("paid", 5, 6.003)],
            [
                EntryKind.CREATED,
                EntryKind.ATTEMPT_STARTED,
                EntryKind.PROCESSING,
                EntryKind.ATTEMPT_PAID,
                EntryKind.PAID,
            ],
        ),
        (
            [("created", 0), ("processing", 5.001), ("requires_payment_method", 6.0)],
            [("declined", 5, 6.003)],
            [
                EntryKind.CREATED,
                EntryKind.ATTEMPT_STARTED,
                EntryKind.PROCESSING,
                EntryKind.ATTEMPT_DECLINED,
                EntryKind.OPEN_AGAIN,
            ],
        ),
        # A payment after the cancellation counts, and is called late.
        (
            [("created", 0), ("canceled", 10), ("succeeded", 20)],
            [("paid", 5, 20.001)],
            [
                EntryKind.CREATED,
                EntryKind.ATTEMPT_STARTED,
                EntryKind.EXPIRED,
                EntryKind.ATTEMPT_PAID,
                EntryKind.PAID_LATE,
            ],
        ),
        # A duplicate charge by the provider has no start of its own.
        ([("created", 0)], [("duplicate", 7, 7)], [EntryKind.CREATED, EntryKind.SECOND_PAYMENT]),
        (
            [("created", 0)],
            [("duplicate", 7, 9)],
            [EntryKind.CREATED, EntryKind.ATTEMPT_STARTED, EntryKind.SECOND_PAYMENT],
        ),
        # An attempt in progress has no end; an abandoned one has.
        ([("created", 0)], [("awaiting_code", 1, 2)], [EntryKind.CREATED, EntryKind.ATTEMPT_STARTED]),
        (
            [("created", 0)],
            [("abandoned", 1, 2)],
            [EntryKind.CREATED, EntryKind.ATTEMPT_STARTED, EntryKind.ATTEMPT_ABANDONED],
        ),
        # A wrong code is one entry: nothing was taken. The fifth ends the attempt.
        (
            [
                ("created", 0),
                *(
                    (kind, 2.0 * number + ended)
                    for number in range(1, 6)
                    for kind, ended in (("processing", 0), (f"requires_payment_method {number}", 1))
                ),
            ],
            [("declined", 1, 11.003)],
            [
                EntryKind.CREATED,
                EntryKind.ATTEMPT_STARTED,
                *[EntryKind.WRONG_CODE] * 5,
                EntryKind.ATTEMPT_DECLINED,
                EntryKind.OPEN_AGAIN,
            ],
        ),
        # The provider was asked to take the money only with the right code, and when the bank asked for a code.
        (
            [
                ("created", 0),
                ("processing", 1),
                ("requires_payment_method", 2),
                ("processing", 3),
                ("requires_payment_method 1", 4),
                ("processing", 5),
                ("succeeded", 6),
            ],
            [("paid", 1, 6.003)],
            [
                EntryKind.CREATED,
                EntryKind.ATTEMPT_STARTED,
                EntryKind.PROCESSING,
                EntryKind.OPEN_AGAIN,
                EntryKind.WRONG_CODE,
                EntryKind.PROCESSING,
                EntryKind.ATTEMPT_PAID,
                EntryKind.PAID,
            ],
        ),
        # Unknown event types are left out.
        ([("created", 0), ("refunded", 5)], [], [EntryKind.CREATED]),
    ],
)
def test_timeline_entries_are_in_order_of_cause_and_effect(
    events: list[tuple[str, float]], attempts: list[tuple[str, float, float]], expected: list[EntryKind]
) -> None:
    assert [moment.kind for moment in build_timeline(payment(events, attempts))] == expected
