"""The ladder of tries (§6.6): how a try went, and which it was, decide what becomes of its delivery. Pure."""

from enum import StrEnum
from functools import cache

import msgspec

from shared.platform.settings import RETRY_STEPS

LAST_STEP = RETRY_STEPS + 1


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class RetryDecision(msgspec.Struct, frozen=True):
    status: DeliveryStatus
    next_step: int
    """Where the delivery stands now; where nothing follows, the step of its last try."""
    wait_s: float | None = None
    """Until that step is due; None where nothing follows."""


@cache
def decide_after_try(step: int, *, is_success: bool, retry_delays: tuple[float, ...]) -> RetryDecision:
    """After the try of this step, from 1 to 9."""
    if not 1 <= step <= LAST_STEP:
        raise ValueError(f"the ladder has no step {step}")
    if is_success:
        return RetryDecision(DeliveryStatus.SUCCEEDED, step)
    if step == LAST_STEP:
        return RetryDecision(DeliveryStatus.FAILED, step)
    return RetryDecision(DeliveryStatus.PENDING, step + 1, retry_delays[step - 1])
