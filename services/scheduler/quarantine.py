"""Keeps what is refused out of the way: it is retried with growing pauses while everything else goes on."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from prometheus_client import Gauge

from shared.platform.backoff import backoff_delay

K = TypeVar("K", bound=Hashable)


class QuarantineNotEmptyError(Exception):
    """Something is refused again and again; an operator has to look at it."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    failures: int
    retry_at: float


class Quarantine(Generic[K]):
    """The keys that were refused: the relay's message keys, or the expiry's intents.

    `description` says what is wrong with them, in the plural; `gauge` shows how many there are.
    """

    def __init__(self, description: str, gauge: Gauge) -> None:
        self._description = description
        self._gauge = gauge
        self._refusals: dict[K, _Refusal] = {}

    def add(self, key: K, reason: str) -> None:
        """Hold a key back until its next retry; the pause grows with each refusal."""
        known = self._refusals.get(key)
        failures = known.failures + 1 if known else 1
        self._refusals[key] = _Refusal(reason, failures, monotonic() + backoff_delay(failures))
        self._gauge.set(len(self._refusals))

    def release(self, keys: Iterable[K]) -> None:
        """Forget keys that were accepted."""
        for key in set(keys) & self._refusals.keys():
            del self._refusals[key]
        self._gauge.set(len(self._refusals))

    def release_all_except(self, held: Iterable[K]) -> None:
        """Forget the keys that were due for a retry and turned out to be gone."""
        self.release(self._refusals.keys() - set(held))

    def held(self) -> list[K]:
        """Return the keys whose next retry is not due yet."""
        now = monotonic()
        return [key for key, refusal in self._refusals.items() if refusal.retry_at > now]

    def check(self) -> None:
        """Raise QuarantineNotEmptyError while there are refused keys. For /readyz, called from another thread."""
        refusals = dict(self._refusals)
        if refusals:
            key, refusal = next(iter(refusals.items()))
            raise QuarantineNotEmptyError(
                f"{len(refusals)} {self._description}, such as {key}: {refusal.reason}"
            )
