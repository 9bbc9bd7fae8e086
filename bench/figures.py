"""The results of benchmarks."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

ROUNDS = 5

_Measured = TypeVar("_Measured")


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


def ratio_in_turn(measure: Callable[[_Measured], float], this: _Measured, that: _Measured) -> float:
    """Measure both in turn, `that` first, and return the median of `this` over `that`."""
    those, these = zip(*((measure(that), measure(this)) for _ in range(ROUNDS)), strict=True)
    return ratio(list(these), list(those))
