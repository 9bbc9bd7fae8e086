"""Isolation: each application has a few places for requests in flight, and a line of its own behind them.

How long one would wait in that line is known from how long the endpoint takes. A line that is too long is cut: what
is cut goes to the slow lane, so that an endpoint that hangs or is slow holds up nobody but itself. In the slow lane it
goes around, so that those who are there for a moment get past those who stay. Pure; time is given.
"""

from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_QUEUE_WAIT_S = 1.0
MAX_QUEUE_LENGTH = 500
FAST_RESPONSE_S = 0.15
"""Behind an endpoint that usually answers so soon a line may be of any length: it is over in a moment."""
UNANSWERED_S = 1.0
FIRST_UNANSWERED_S = 0.1
"""A request that is out for so long says more than how long they usually take; the sooner if nobody knows that."""
HANGING_RESPONSE_S = 5.0
"""An endpoint that takes so long three times in a row is one that hangs …"""
HANGING_RESPONSES = 3
SLOTS_WHEN_HANGING = 2
"""… and is only probed, until it answers in time again."""
_MEMORY = 500
_JUDGED_EVERY = 50
MAX_QUEUED_IN_SLOW = 1500
SLOW_TRIM_INTERVAL_S = 5.0
"""In the slow lane, when so many are in line, long lines are cut to their share and go around, but not too often."""


class ApplicationQueue(Generic[T]):
    """An application's, as this lane knows it."""

    def __init__(self) -> None:
        self.line: deque[T] = deque()
        self.began: dict[int, float] = {}
        """The requests in flight, oldest first, by a number."""
        self.hangs = 0
        self.typical_s = 0.0
        """Three in four answers come sooner. When this process itself falters, the hundred that are in flight are late,
        and it is not the endpoint's fault: of the last few hundred they are a minority."""
        self._last_s: deque[float] = deque(maxlen=_MEMORY)
        self._answers = 0

    @property
    def is_hanging(self) -> bool:
        return self.hangs >= HANGING_RESPONSES

    def takes_s(self, now: float) -> float:
        """How long a request takes: as long as usual, or as one that is out for very long."""
        silence_s = now - next(iter(self.began.values()), now)
        is_silent = silence_s >= (UNANSWERED_S if self._answers else FIRST_UNANSWERED_S)
        return max(self.typical_s, silence_s) if is_silent else self.typical_s

    def answered(self, duration_s: float) -> None:
        self._last_s.append(duration_s)
        self._answers += 1
        if self._answers % _JUDGED_EVERY == 0:
            self.typical_s = sorted(self._last_s)[3 * len(self._last_s) // 4]
        self.hangs = self.hangs + 1 if duration_s >= HANGING_RESPONSE_S else 0


class ApplicationQueues(Generic[T]):
    """All of one lane."""

    def __init__(self, places: int, places_each: int, *, has_slow_lane: bool) -> None:
        """`places` in all and for each application. Without a slow lane behind it, it is the slow lane."""
        self._places = places
        self._places_each = places_each
        self._has_slow_lane = has_slow_lane
        self._endpoints: dict[str, ApplicationQueue[T]] = {}
        self._lines: dict[str, ApplicationQueue[T]] = {}
        """Those with somebody in line, in the order in which they are served."""
        self._busy = 0
        self._relieved_at = -inf
        self.in_flight = 0
        self.waiting = 0
        self._numbers = 0

    def join(self, application: str, item: T) -> None:
        """The end of its line."""
        endpoint = self._endpoints.get(application)
        if endpoint is None:
            endpoint = self._endpoints[application] = ApplicationQueue()
        endpoint.line.append(item)
        self._lines[application] = endpoint
        self.waiting += 1

    def leave(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Takes these out of the lines."""
        gone: list[T] = []
        for application, endpoint in list(self._lines.items()):
            left = deque(item for item in endpoint.line if not unwanted(item))
            gone.extend(item for item in endpoint.line if unwanted(item))
            self._set_line(application, endpoint, left)
        return gone

    def next_to_send(self, now: float) -> Iterator[tuple[int, T]]:
        """One after another, each application in turn; the number says which request has ended, later."""
        while self._lines and self.in_flight < self._places:
            served = False
            for application, endpoint in list(self._lines.items()):
                if self.in_flight >= self._places:
                    return
                if len(endpoint.began) < self._places_of(endpoint):
                    served = True
                    yield self._serve(application, endpoint, now)
            if not served:
                return

    def ended(self, application: str, number: int, duration_s: float | None) -> None:
        """`duration_s` is None when it ended without an answer of the endpoint's doing."""
        endpoint = self._endpoints[application]
        if endpoint.began.pop(number, None) is None:
            return
        self.in_flight -= 1
        self._busy -= not endpoint.began
        if duration_s is not None:
            endpoint.answered(duration_s)
        self._forget_if_idle(application, endpoint)

    def cut_lines(self, now: float) -> list[T]:
        """What would wait too long here, or has to make room for others, and goes to the slow lane, or around it."""
        if not self._has_slow_lane and not self._needs_relief(now):
            return []
        cut: list[T] = []
        for application, endpoint in list(self._lines.items()):
            fits = self._longest_line(endpoint, now)
            if fits is not None and len(endpoint.line) > fits:
                items = list(endpoint.line)
                cut.extend(items[fits:])
                self._set_line(application, endpoint, deque(items[:fits]))
        return cut

    def _needs_relief(self, now: float) -> bool:
        if self.waiting < MAX_QUEUED_IN_SLOW or now - self._relieved_at < SLOW_TRIM_INTERVAL_S:
            return False
        self._relieved_at = now
        return True

    def _longest_line(self, endpoint: ApplicationQueue[T], now: float) -> int | None:
        """None where it may be of any length."""
        if not self._has_slow_lane:
            return max(1, MAX_QUEUED_IN_SLOW // 2 // len(self._lines))
        if endpoint.is_hanging and endpoint.began:
            return 0
        takes_s = endpoint.takes_s(now)
        if takes_s < FIRST_UNANSWERED_S or (takes_s < FAST_RESPONSE_S and endpoint.typical_s):
            return None
        return min(MAX_QUEUE_LENGTH, int(MAX_QUEUE_WAIT_S * self._places_of(endpoint) / takes_s))

    def _places_of(self, endpoint: ApplicationQueue[T]) -> int:
        """Where many are busy none may take more than its share."""
        if self._has_slow_lane and endpoint.is_hanging:
            return SLOTS_WHEN_HANGING
        return max(1, min(self._places_each, self._places // max(1, self._busy)))

    def _serve(self, application: str, endpoint: ApplicationQueue[T], now: float) -> tuple[int, T]:
        item = endpoint.line.popleft()
        self.waiting -= 1
        del self._lines[application]
        if endpoint.line:
            self._lines[application] = endpoint  # to the end of those who are served
        self._busy += not endpoint.began
        self._numbers += 1
        endpoint.began[self._numbers] = now
        self.in_flight += 1
        return self._numbers, item

    def _set_line(self, application: str, endpoint: ApplicationQueue[T], line: deque[T]) -> None:
        self.waiting += len(line) - len(endpoint.line)
        endpoint.line = line
        if not line:
            self._lines.pop(application, None)
            self._forget_if_idle(application, endpoint)

    def _forget_if_idle(self, application: str, endpoint: ApplicationQueue[T]) -> None:
        """An endpoint that is well needs no memory."""
        if not endpoint.began and not endpoint.line and not endpoint.hangs:
            self._endpoints.pop(application, None)
