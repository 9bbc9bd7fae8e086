"""What somebody refuses: it is tried again with growing pauses, while all else goes on, and shows in /readyz."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from prometheus_client import Gauge

from shared.platform.backoff import backoff_delay

K = TypeVar("K", bound=Hashable)


class QuarantineNotEmptyError(Exception):
    """Something is refused again and again; somebody has to look at it."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    failures: int
    retry_at: float


class Quarantine(Generic[K]):
    def __init__(self, what: str, gauge: Gauge) -> None:
        """`what` they are, in the plural; `gauge` tells how many there are."""
        self._what = what
        self._gauge = gauge
        self._refusals: dict[K, _Refusal] = {}

    def park(self, key: K, reason: str) -> None:
        known = self._refusals.get(key)
        failures = known.failures + 1 if known else 1
        self._refusals[key] = _Refusal(reason, failures, monotonic() + backoff_delay(failures))
        self._gauge.set(len(self._refusals))

    def release(self, keys: Iterable[K]) -> None:
        """They went through."""
        for key in set(keys) & self._refusals.keys():
            del self._refusals[key]
        self._gauge.set(len(self._refusals))

    def release_all_but(self, waiting: Iterable[K]) -> None:
        """The others were not there any more when they could have been tried again."""
        self.release(self._refusals.keys() - set(waiting))

    def waiting(self) -> list[K]:
        """Those that it is not yet time to try again."""
        now = monotonic()
        return [key for key, refusal in self._refusals.items() if refusal.retry_at > now]

    def check(self) -> None:
        """For /readyz, from another thread."""
        refusals = dict(self._refusals)
        if refusals:
            key, refusal = next(iter(refusals.items()))
            raise QuarantineNotEmptyError(f"{len(refusals)} {self._what}, such as {key}: {refusal.reason}")
