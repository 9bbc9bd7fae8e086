"""The results of benchmarks."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    meaning: str


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of the others is below. Raises ValueError if there are no values."""
    if not values:
        raise ValueError("nothing was measured, so there is no percentile")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ratio(these: list[float], those: list[float]) -> float:
    """Return the median ratio of consecutive rounds, so that a noisy moment affects one round only."""
    return round(median(this / that for this, that in zip(these, those, strict=True)), 3)
