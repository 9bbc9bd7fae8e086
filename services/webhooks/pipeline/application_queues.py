"""Isolation of applications: each has a few slots for requests in flight, and a queue of its own behind them.

The response times of an endpoint tell how long its queue would take. A queue that would take too long is trimmed: the
surplus goes to the slow pipeline, so an endpoint that hangs or is slow holds up nobody but itself. The slow pipeline
publishes its surplus to its own topic again, so that applications with a short queue are not stuck behind long ones.
Intake publishes what a fast endpoint has too much of to webhooks.deliver, where records are in order of application.
Pure; callers pass the time.
"""

from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_QUEUE_WAIT_S = 1.0
MAX_QUEUE_LENGTH = 500
FAST_RESPONSE_S = 0.15
"""The queue of an endpoint that usually responds this fast may have any length: it is empty in a moment."""
UNANSWERED_S = 1.0
FIRST_UNANSWERED_S = 0.1
"""A request without a response for this long counts as the response time, instead of the usual one.

The second value applies while the endpoint has not responded to anything yet.
"""
HANGING_RESPONSE_S = 5.0
HANGING_RESPONSES = 3
SLOTS_WHEN_HANGING = 2
"""An endpoint that took HANGING_RESPONSE_S for HANGING_RESPONSES in a row hangs.

It gets only SLOTS_WHEN_HANGING slots until it responds in time again.
"""
_RESPONSE_TIMES_KEPT = 500
_RECALCULATED_EVERY = 50
MAX_QUEUED_IN_SLOW = 1500
SLOW_TRIM_INTERVAL_S = 5.0
"""When this many are queued in the slow pipeline, long queues are trimmed to their share, at most this often."""


class ApplicationQueue(Generic[T]):
    """The queue of one application, its requests in flight, and the response times of its endpoint."""

    def __init__(self) -> None:
        self.queued: deque[T] = deque()
        self.started: dict[int, float] = {}
        """When each request in flight started, by slot number, oldest first."""
        self.hanging_responses = 0
        self.typical_s = 0.0
        """The 75th percentile of the last response times.

        When this process itself stalls, the hundred or so requests in flight are late, and the endpoint is not to
        blame. Among the last few hundred they are a minority.
        """
        self._response_times: deque[float] = deque(maxlen=_RESPONSE_TIMES_KEPT)
        self._responses = 0

    @property
    def is_hanging(self) -> bool:
        return self.hanging_responses >= HANGING_RESPONSES

    def response_time_s(self, now: float) -> float:
        """Return how long a request takes: the usual time, or the age of the oldest request if that is too old."""
        unanswered_s = now - next(iter(self.started.values()), now)
        is_unanswered = unanswered_s >= (UNANSWERED_S if self._responses else FIRST_UNANSWERED_S)
        return max(self.typical_s, unanswered_s) if is_unanswered else self.typical_s

    def add_response(self, duration_s: float) -> None:
        self._response_times.append(duration_s)
        self._responses += 1
        if self._responses % _RECALCULATED_EVERY == 0:
            self.typical_s = sorted(self._response_times)[3 * len(self._response_times) // 4]
        self.hanging_responses = self.hanging_responses + 1 if duration_s >= HANGING_RESPONSE_S else 0


class ApplicationQueues(Generic[T]):
    """The queues of all applications in one pipeline."""

    def __init__(self, slots: int, slots_per_application: int, *, has_slow_pipeline: bool) -> None:
        """`slots` limits all requests in flight. `has_slow_pipeline` is False in the slow pipeline itself."""
        self._slots = slots
        self._slots_per_application = slots_per_application
        self._has_slow_pipeline = has_slow_pipeline
        self._applications: dict[str, ApplicationQueue[T]] = {}
        self._non_empty: dict[str, ApplicationQueue[T]] = {}
        """The queues that are not empty, in the order in which they are served."""
        self._busy = 0
        """How many applications have requests in flight."""
        self._trimmed_at = -inf
        self.in_flight = 0
        self.waiting = 0
        self._last_slot = 0

    def add(self, application: str, item: T) -> None:
        queue = self._applications.get(application)
        if queue is None:
            queue = self._applications[application] = ApplicationQueue()
        queue.queued.append(item)
        self._non_empty[application] = queue
        self.waiting += 1

    def remove(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Remove these items from the queues and return them."""
        removed: list[T] = []
        for application, queue in list(self._non_empty.items()):
            left = deque(item for item in queue.queued if not unwanted(item))
            removed.extend(item for item in queue.queued if unwanted(item))
            self._replace_queued(application, queue, left)
        return removed

    def next_to_send(self, now: float) -> Iterator[tuple[int, T]]:
        """Yield items while there are free slots, one application after another, each with its slot number."""
        while self._non_empty and self.in_flight < self._slots:
            served = False
            for application, queue in list(self._non_empty.items()):
                if self.in_flight >= self._slots:
                    return
                if len(queue.started) < self._slots_of(queue):
                    served = True
                    yield self._start_next(application, queue, now)
            if not served:
                return

    def release(self, application: str, slot: int, duration_s: float | None) -> None:
        """Free the slot of a request that has ended. A slot that was freed before is ignored.

        `duration_s` is None if the request ended for a reason that says nothing about the endpoint.
        """
        queue = self._applications[application]
        if queue.started.pop(slot, None) is None:
            return
        self.in_flight -= 1
        self._busy -= not queue.started
        if duration_s is not None:
            queue.add_response(duration_s)
        self._forget_if_idle(application, queue)

    def trim(self, now: float) -> list[T]:
        """Remove and return the items that would wait too long here. They belong on the slow pipeline's topic."""
        if not self._has_slow_pipeline and not self._must_trim_slow(now):
            return []
        return self._trim_to(self._max_length, now)

    def trim_fast(self, now: float) -> list[T]:
        """Remove and return the items that would wait too long here, although their endpoint is fast."""
        return self._trim_to(self._max_fast_length, now)

    def _trim_to(self, max_length: Callable[[ApplicationQueue[T], float], int | None], now: float) -> list[T]:
        surplus: list[T] = []
        for application, queue in list(self._non_empty.items()):
            limit = max_length(queue, now)
            if limit is not None and len(queue.queued) > limit:
                items = list(queue.queued)
                surplus.extend(items[limit:])
                self._replace_queued(application, queue, deque(items[:limit]))
        return surplus

    def _must_trim_slow(self, now: float) -> bool:
        if self.waiting < MAX_QUEUED_IN_SLOW or now - self._trimmed_at < SLOW_TRIM_INTERVAL_S:
            return False
        self._trimmed_at = now
        return True

    def _max_length(self, queue: ApplicationQueue[T], now: float) -> int | None:
        """Return how long this queue may be, or None if there is no limit."""
        if not self._has_slow_pipeline:
            return max(1, MAX_QUEUED_IN_SLOW // 2 // len(self._non_empty))
        if queue.is_hanging and queue.started:
            return 0
        response_time_s = queue.response_time_s(now)
        if response_time_s < FIRST_UNANSWERED_S or (response_time_s < FAST_RESPONSE_S and queue.typical_s):
            return None
        return min(MAX_QUEUE_LENGTH, self._length_for(response_time_s, queue))

    def _max_fast_length(self, queue: ApplicationQueue[T], now: float) -> int | None:
        response_time_s = queue.response_time_s(now)
        return self._length_for(response_time_s, queue) if response_time_s else None

    def _length_for(self, response_time_s: float, queue: ApplicationQueue[T]) -> int:
        """Return how many responses an endpoint gives in MAX_QUEUE_WAIT_S."""
        return int(MAX_QUEUE_WAIT_S * self._slots_of(queue) / response_time_s)

    def _slots_of(self, queue: ApplicationQueue[T]) -> int:
        """Return how many slots the application may use now. Many busy applications share all slots equally."""
        if self._has_slow_pipeline and queue.is_hanging:
            return SLOTS_WHEN_HANGING
        return max(1, min(self._slots_per_application, self._slots // max(1, self._busy)))

    def _start_next(self, application: str, queue: ApplicationQueue[T], now: float) -> tuple[int, T]:
        item = queue.queued.popleft()
        self.waiting -= 1
        del self._non_empty[application]
        if queue.queued:
            self._non_empty[application] = queue  # served last from now on
        self._busy += not queue.started
        self._last_slot += 1
        queue.started[self._last_slot] = now
        self.in_flight += 1
        return self._last_slot, item

    def _replace_queued(self, application: str, queue: ApplicationQueue[T], queued: deque[T]) -> None:
        self.waiting += len(queued) - len(queue.queued)
        queue.queued = queued
        if not queued:
            self._non_empty.pop(application, None)
            self._forget_if_idle(application, queue)

    def _forget_if_idle(self, application: str, queue: ApplicationQueue[T]) -> None:
        """Free the memory of an application that has nothing queued or in flight, unless its endpoint hangs."""
        if not queue.started and not queue.queued and not queue.hanging_responses:
            self._applications.pop(application, None)
