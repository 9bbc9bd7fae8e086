"""Rate limits: a token bucket for each application, and for each client with unknown credentials, in each process."""

from collections.abc import Callable
from math import ceil
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

K = TypeVar("K")

_MAX_BUCKETS = 10_000


class TooManyRequestsError(Exception):
    """The application calls faster than it may; the same call works after `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(f"Too many requests. Please try again in {retry_after} s.")


class RateLimit(Generic[K]):
    """`per_second` is 0 if there is no limit."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: dict[K, tuple[float, float]] = {}
        self._lock = Lock()

    def acquire(self, key: K) -> None:
        """Count one request; raises TooManyRequestsError when the bucket of `key` is empty."""
        if not self._per_second:
            return
        now = self._clock()
        with self._lock:
            if len(self._buckets) >= _MAX_BUCKETS:
                self._remove_full_buckets(now)
            left, at = self._buckets.get(key, (float(self._burst), now))
            left = min(float(self._burst), left + (now - at) * self._per_second)
            allowed = left >= 1
            self._buckets[key] = (left - 1 if allowed else left, now)
        if not allowed:
            raise TooManyRequestsError(ceil((1 - left) / self._per_second))

    def _remove_full_buckets(self, now: float) -> None:
        """Forget who has not called for a while; everybody, if there are too many others."""
        self._buckets = {
            key: (left, at)
            for key, (left, at) in self._buckets.items()
            if left + (now - at) * self._per_second < self._burst
        }
        if len(self._buckets) >= _MAX_BUCKETS:
            self._buckets.clear()
