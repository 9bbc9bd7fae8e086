"""The rate limit: a token bucket for each application, in each process. Off unless configured."""

from collections.abc import Callable
from math import ceil
from threading import Lock
from time import monotonic
from uuid import UUID


class TooManyRequestsError(Exception):
    """The application calls faster than it may; the same call works after `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(f"Too many requests. Please try again in {retry_after} s.")


class RateLimit:
    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: dict[UUID, tuple[float, float]] = {}
        self._lock = Lock()

    def acquire(self, application_id: UUID) -> None:
        """Count one request of this application; raises TooManyRequestsError when its bucket is empty."""
        if not self._per_second:
            return
        now = self._clock()
        with self._lock:
            left, at = self._buckets.get(application_id, (float(self._burst), now))
            left = min(float(self._burst), left + (now - at) * self._per_second)
            allowed = left >= 1
            self._buckets[application_id] = (left - 1 if allowed else left, now)
        if not allowed:
            raise TooManyRequestsError(ceil((1 - left) / self._per_second))
