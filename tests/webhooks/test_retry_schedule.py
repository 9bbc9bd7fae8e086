"""The retry schedule (§6.6): nine tries, and when the next one is due."""

import pytest

from services.webhooks.retry_schedule import LAST_STEP, DeliveryStatus, RetryDecision, decide_after_try
from shared.platform.settings import WebhookSettings

DELAYS = WebhookSettings().retry_delays

AFTER_A_FAILURE = [
    # step that failed, status afterwards, next step, seconds until it is due
    (1, DeliveryStatus.PENDING, 2, 10),
    (2, DeliveryStatus.PENDING, 3, 60),
    (3, DeliveryStatus.PENDING, 4, 5 * 60),
    (4, DeliveryStatus.PENDING, 5, 30 * 60),
    (5, DeliveryStatus.PENDING, 6, 60 * 60),
    (6, DeliveryStatus.PENDING, 7, 3 * 60 * 60),
    (7, DeliveryStatus.PENDING, 8, 6 * 60 * 60),
    (8, DeliveryStatus.PENDING, 9, 12 * 60 * 60),
    (9, DeliveryStatus.FAILED, 9, None),
]


@pytest.mark.parametrize(("step", "status", "next_step", "wait_s"), AFTER_A_FAILURE)
def test_a_failure_leads_to_the_next_step(
    step: int, status: DeliveryStatus, next_step: int, wait_s: float | None
) -> None:
    assert decide_after_try(step, is_success=False, retry_delays=DELAYS) == RetryDecision(
        status, next_step, wait_s
    )


@pytest.mark.parametrize("step", range(1, LAST_STEP + 1))
def test_a_success_ends_the_schedule_at_any_step(step: int) -> None:
    assert decide_after_try(step, is_success=True, retry_delays=DELAYS) == RetryDecision(
        DeliveryStatus.SUCCEEDED, step
    )


@pytest.mark.parametrize("step", [-1, 0, LAST_STEP + 1])
def test_unknown_steps_are_refused(step: int) -> None:
    with pytest.raises(ValueError, match="no step"):
        decide_after_try(step, is_success=False, retry_delays=DELAYS)
