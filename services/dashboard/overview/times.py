"""How long deliveries took, in a few numbers. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

BOUNDS_MS = (1_000, 10_000, 60_000, 600_000, 3_600_000)
"""Of the histogram's bins: each up to and with its bound, and one beyond the last."""


@dataclass(frozen=True, slots=True)
class Times:
    count: int
    median_ms: float
    percentile_95_ms: float
    bins: list[int]


def times_of(milliseconds: Sequence[float]) -> Times | None:
    """None where there are none."""
    if not milliseconds:
        return None
    ordered = sorted(milliseconds)
    bins = [0] * (len(BOUNDS_MS) + 1)
    for each in ordered:
        bins[bisect_left(BOUNDS_MS, each)] += 1
    return Times(len(ordered), _percentile(ordered, 0.5), _percentile(ordered, 0.95), bins)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest that so many are not above."""
    return ordered[ceil(share * len(ordered)) - 1]
