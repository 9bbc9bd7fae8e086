"""The retry schedule (§6.6): what happens to a delivery after a try, by its step and result. Pure.

The delays between the steps are the setting WEBHOOK_RETRY_DELAYS.
"""

from enum import StrEnum
from functools import cache

import msgspec

from shared.platform.settings import RETRY_STEPS

FIRST_STEP = 1
LAST_STEP = RETRY_STEPS + 1


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class RetryDecision(msgspec.Struct, frozen=True):
    status: DeliveryStatus
    next_step: int
    """The step of the next try, or of the last one if none follows."""
    wait_s: float | None = None
    """Seconds until that step is due, or None if no try follows."""


@cache
def decide_after_try(step: int, *, is_success: bool, retry_delays: tuple[float, ...]) -> RetryDecision:
    """Return what follows the try of this step. Raises ValueError if there is no such step."""
    if not FIRST_STEP <= step <= LAST_STEP:
        raise ValueError(f"the retry schedule has no step {step}")
    if is_success:
        return RetryDecision(DeliveryStatus.SUCCEEDED, step)
    if step == LAST_STEP:
        return RetryDecision(DeliveryStatus.FAILED, step)
    return RetryDecision(DeliveryStatus.PENDING, step + 1, retry_delays[step - 1])
