"""The health of an application's endpoint, judged by its newest deliveries. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from math import ceil
from uuid import UUID

from shared.domain.deliveries.try_results import PROXY_FAILURES

MIN_FAILURES_IN_A_ROW = 3
"""Fewer failures are treated as temporary."""


@dataclass(frozen=True, slots=True)
class TriedDelivery:
    id: UUID
    at: datetime
    """When the event happened."""
    event: str
    status: str
    url: str
    """The URL of the delivery, which may differ from the application's current one."""
    status_code: int | None
    """The last response; if None, `failure` says why there was none."""
    failure: str | None
    is_test: bool
    tried_at: datetime
    """When it was last tried."""

    @property
    def is_delivered(self) -> bool:
        return self.status == "succeeded"


@dataclass(frozen=True, slots=True)
class FailingEndpoint:
    """The newest deliveries to the endpoint have all failed."""

    count: int
    """How many of the newest deliveries failed in a row."""
    is_all: bool
    """All deliveries that were examined failed, so it may have started earlier."""
    since: datetime
    last: TriedDelivery
    """The delivery that was tried last."""


def find_failing(newest: Sequence[TriedDelivery], url: str | None) -> FailingEndpoint | None:
    """Return the failure if the newest deliveries to `url` failed in a row, else None.

    Deliveries to a previous URL do not count, nor those that last failed at our own proxy.
    """
    to_current_url = [
        delivery for delivery in newest if delivery.url == url and delivery.failure not in PROXY_FAILURES
    ]
    failed = list(takewhile(lambda delivery: not delivery.is_delivered, to_current_url))
    if len(failed) < MIN_FAILURES_IN_A_ROW:
        return None
    return FailingEndpoint(
        count=len(failed),
        is_all=len(failed) == len(to_current_url),
        since=failed[-1].at,
        last=max(failed, key=lambda delivery: delivery.tried_at),
    )


def share_delivered(newest: Sequence[TriedDelivery]) -> float | None:
    if not newest:
        return None
    return sum(delivery.is_delivered for delivery in newest) / len(newest)


BOUNDS_MS = (1_000, 10_000, 60_000, 600_000, 3_600_000)
"""Upper bounds of the histogram's bins, inclusive. A last bin holds everything above."""


@dataclass(frozen=True, slots=True)
class DeliveryTimes:
    count: int
    median_ms: float
    percentile_95_ms: float
    bins: list[int]


def summarize_times(milliseconds: Sequence[float]) -> DeliveryTimes | None:
    """Return median, 95th percentile and histogram, or None if there are no times."""
    if not milliseconds:
        return None
    ordered = sorted(milliseconds)
    bins = [0] * (len(BOUNDS_MS) + 1)
    for each in ordered:
        bins[bisect_left(BOUNDS_MS, each)] += 1
    return DeliveryTimes(len(ordered), _percentile(ordered, 0.5), _percentile(ordered, 0.95), bins)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed."""
    return ordered[ceil(share * len(ordered)) - 1]
