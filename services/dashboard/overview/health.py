"""Judges an application's endpoint by its newest deliveries. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from math import ceil
from uuid import UUID

MIN_FAILURES_IN_A_ROW = 3
"""Fewer are a hiccup that the next tries mend."""


@dataclass(frozen=True, slots=True)
class TriedDelivery:
    id: UUID
    at: datetime
    """When its event happened."""
    event: str
    status: str
    url: str
    """Where it is to go, whatever the application's URL is by now."""
    status_code: int | None
    """The last answer, or else `failure` says why there was none."""
    failure: str | None
    is_test: bool
    tried_at: datetime
    """When it was last tried."""

    @property
    def is_delivered(self) -> bool:
        return self.status == "succeeded"


@dataclass(frozen=True, slots=True)
class FailingEndpoint:
    """The endpoint is in trouble."""

    count: int
    """How many of the newest were not delivered, one after the other."""
    is_all: bool
    """None of those that were looked at was delivered, so that it may have begun earlier."""
    since: datetime
    last: TriedDelivery
    """Whose answer is the newest."""


def find_failing(newest: Sequence[TriedDelivery], url: str | None) -> FailingEndpoint | None:
    """Only what was sent to the URL of today tells of it: a URL that was corrected has a clean sheet."""
    of_today = [delivery for delivery in newest if delivery.url == url]
    row = list(takewhile(lambda delivery: not delivery.is_delivered, of_today))
    if len(row) < MIN_FAILURES_IN_A_ROW:
        return None
    return FailingEndpoint(
        count=len(row),
        is_all=len(row) == len(of_today),
        since=row[-1].at,
        last=max(row, key=lambda delivery: delivery.tried_at),
    )


def share_delivered(newest: Sequence[TriedDelivery]) -> float | None:
    if not newest:
        return None
    return sum(delivery.is_delivered for delivery in newest) / len(newest)


BOUNDS_MS = (1_000, 10_000, 60_000, 600_000, 3_600_000)
"""Of the histogram's bins: each up to and with its bound, and one beyond the last."""


@dataclass(frozen=True, slots=True)
class DeliveryTimes:
    count: int
    median_ms: float
    percentile_95_ms: float
    bins: list[int]


def summarize_times(milliseconds: Sequence[float]) -> DeliveryTimes | None:
    """None where there are none."""
    if not milliseconds:
        return None
    ordered = sorted(milliseconds)
    bins = [0] * (len(BOUNDS_MS) + 1)
    for each in ordered:
        bins[bisect_left(BOUNDS_MS, each)] += 1
    return DeliveryTimes(len(ordered), _percentile(ordered, 0.5), _percentile(ordered, 0.95), bins)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest that so many are not above."""
    return ordered[ceil(share * len(ordered)) - 1]
