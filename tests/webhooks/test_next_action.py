"""The next action for a record, for every state of its delivery in the database."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from msgspec.structs import replace

from services.webhooks.pipeline.next_action import (
    Drop,
    FailWithoutUrl,
    NextAction,
    PublishExhausted,
    Requeue,
    Send,
    SetAside,
    decide,
    decide_resend,
)
from services.webhooks.pipeline.queries import DeliveryState, DeliveryTarget
from services.webhooks.retry_schedule import DeliveryStatus
from shared.domain.messages import DeliveryDue

ID = UUID("01978f6e-0000-7000-8000-000000000001")
APPLICATION = UUID("01978f6e-0000-7000-8000-000000000002")
NOW = datetime(2026, 7, 1, tzinfo=UTC)
ORIGINAL = DeliveryTarget("https://shop.example/old", 1)
CURRENT = DeliveryTarget("https://shop.example/new", 2)
PENDING_AT_3 = DeliveryState(
    id=str(ID),
    application_id=str(APPLICATION),
    intent_uuid=str(ID),
    event="payment_intent.succeeded",
    status=DeliveryStatus.PENDING,
    step=3,
    due_at=b"2026-07-01 00:00:00+00",
    original=ORIGINAL,
    current=CURRENT,
    is_paused=False,
    due_in_s=-1.0,
    ended_without_url=False,
)
SUCCEEDED = replace(PENDING_AT_3, status=DeliveryStatus.SUCCEEDED, due_at=None)
FAILED_AT_9 = replace(PENDING_AT_3, status=DeliveryStatus.FAILED, step=9, due_at=None)
WITHOUT_URL = replace(PENDING_AT_3, current=None)

CASES: list[tuple[str, int, DeliveryState | None, NextAction]] = [
    ("its try is due", 3, PENDING_AT_3, Send(ORIGINAL)),
    ("there is no such delivery", 3, None, Drop()),
    ("it has succeeded, by a resend or by another process", 3, SUCCEEDED, Drop()),
    (
        "it is at a later step: who moved it there may have died before publishing that",
        2,
        PENDING_AT_3,
        Requeue(),
    ),
    ("the database was restored to an earlier state", 4, PENDING_AT_3, Drop()),
    ("it is early", 3, replace(PENDING_AT_3, due_in_s=5.0), Requeue()),
    (
        "a first try, when the clock was set back",
        1,
        replace(PENDING_AT_3, step=1, due_in_s=1.0),
        Send(ORIGINAL),
    ),
    ("the URL was removed", 3, WITHOUT_URL, FailWithoutUrl()),
    ("the application is paused", 3, replace(PENDING_AT_3, is_paused=True), SetAside()),
    ("paused, and the URL was removed", 3, replace(WITHOUT_URL, is_paused=True), FailWithoutUrl()),
    ("its tries are exhausted", 9, FAILED_AT_9, PublishExhausted()),
    ("a duplicate of an earlier step after the last one failed", 8, FAILED_AT_9, Drop()),
    ("it ended without a URL at its last step", 9, replace(FAILED_AT_9, ended_without_url=True), Drop()),
]


@pytest.mark.parametrize(("step", "delivery", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_next_action_for_a_scheduled_try(
    step: int, delivery: DeliveryState | None, expected: NextAction
) -> None:
    assert decide(DeliveryDue(ID, APPLICATION, step, NOW), delivery) == expected


RESENDS: list[tuple[str, DeliveryState | None, bool, NextAction | type[Drop]]] = [
    ("while pending: to the current URL, with the current secret", PENDING_AT_3, False, Send(CURRENT)),
    ("after it failed", FAILED_AT_9, False, Send(CURRENT)),
    ("after it succeeded", SUCCEEDED, False, Send(CURRENT)),
    ("the same resend again", PENDING_AT_3, True, Drop()),
    ("there is no such delivery", None, False, Drop()),
    ("no URL", WITHOUT_URL, False, Drop("its application has no webhook URL")),
]


@pytest.mark.parametrize(
    ("delivery", "is_recorded", "expected"), [c[1:] for c in RESENDS], ids=[c[0] for c in RESENDS]
)
def test_next_action_for_a_resend(
    delivery: DeliveryState | None, is_recorded: bool, expected: NextAction
) -> None:
    assert decide_resend(delivery, is_recorded=is_recorded) == expected


@pytest.mark.parametrize(("delivery", "expected"), [(PENDING_AT_3, Send(CURRENT)), (SUCCEEDED, Drop())])
def test_bulk_resend_is_not_sent_after_the_delivery_succeeded(
    delivery: DeliveryState, expected: NextAction
) -> None:
    assert decide_resend(delivery, is_recorded=False, is_unless_succeeded=True) == expected


def test_resend_of_a_paused_application_is_dropped() -> None:
    action = decide_resend(replace(PENDING_AT_3, is_paused=True), is_recorded=False)
    assert isinstance(action, Drop)
    assert action.why
