"""Requeues what has waited for too long, a batch at a time, so that it does not make a backlog worse.

A sweep reads all that waits, from the longest waiting on, one window after another. It remembers its position, so it
does not read again what it has just requeued, however much there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from prometheus_client import Gauge

P = TypeVar("P")

# Both are literals in the statements, because the planner assumes a tenth of the table for an unknown limit.
BATCH = 500
WINDOW = 5000
PAUSE_AFTER_BATCH_S = 1.0
"""Limits the sweep to 500 a second."""
_PAUSE_AFTER_EMPTY_WINDOW_S = 0.2


@dataclass(frozen=True, slots=True)
class RequeueThresholds:
    min_overdue_s: float = 900.0
    """Requeue only what has waited longer than this plus the backlog's age."""
    requeue_interval_s: float = 3600.0
    """Requeue nothing twice within this time."""
    sweep_interval_s: float = 60.0
    poll_interval_s: float = 10.0
    """Also how long a measurement of the backlog is valid."""


@dataclass(frozen=True, slots=True)
class SweepWindow(Generic[P]):
    """A part of what waits. Each time says since when an item has waited, in seconds since 1970."""

    now: float
    """By the database's clock."""
    oldest: float | None
    """The longest waiting item of the window."""
    ids: Sequence[UUID]
    """The items to requeue unless the backlog is older: one batch at most."""
    oldest_id: float | None
    """The longest waiting of `ids`."""
    newest: float | None
    next_position: P | None
    """The end of this window, or of `ids` if they fill a batch; None if nothing is left."""


class RequeueSource(Protocol[P]):
    """What a sweep goes through: overdue deliveries, or unprocessed events."""

    def read_window(self, position: P | None) -> SweepWindow[P]:
        """Return the window after this position, or the first one."""

    def backlog_age_s(self, now: float) -> float:
        """Return the age of the oldest record still on its topic: what is no older may not be lost."""

    def requeue(self, ids: Sequence[UUID], min_overdue_s: float) -> int:
        """Requeue those that still wait and have waited longer than that. Return how many were requeued."""


class RequeueSweep(Generic[P]):
    """Goes through a source step by step; the gauge `oldest` shows how long the longest waiting item has waited."""

    def __init__(self, source: RequeueSource[P], thresholds: RequeueThresholds, oldest: Gauge) -> None:
        self._source = source
        self._thresholds = thresholds
        self._oldest = oldest
        self._is_sweeping = False
        self._position: P | None = None
        self._reported_at: float | None = None
        self._next_at = float("-inf")
        self._backlog_age_s = 0.0
        self._measured_at = float("-inf")

    def step(self) -> tuple[int, float]:
        """Take the next window. Return how many were requeued, and the seconds until the next step."""
        pause_s = self._next_at - monotonic()
        if not self._is_sweeping and pause_s > 0:
            return 0, pause_s
        if not self._is_sweeping:
            self._is_sweeping, self._position = True, None
            self._next_at = monotonic() + self._thresholds.sweep_interval_s
        window = self._source.read_window(self._position)
        self._report_oldest(window)
        min_overdue_s = self._thresholds.min_overdue_s
        requeued, goes_on = 0, self._reported_at is None or _waited_s(window, window.newest) > min_overdue_s
        if window.ids:
            min_overdue_s += self._measure_backlog(window.now)
            if _waited_s(window, window.oldest_id) > min_overdue_s:
                requeued = self._source.requeue(window.ids, min_overdue_s)
            else:
                goes_on = False  # the following ones have waited even less
        if goes_on and window.next_position is not None:
            self._position = window.next_position
            return requeued, PAUSE_AFTER_BATCH_S if requeued else _PAUSE_AFTER_EMPTY_WINDOW_S
        self._end()
        return requeued, PAUSE_AFTER_BATCH_S if requeued else max(0.0, self._next_at - monotonic())

    def _end(self) -> None:
        self._is_sweeping = False
        if self._reported_at is None:
            self._oldest.set(0)

    def _report_oldest(self, window: SweepWindow[P]) -> None:
        """Set the gauge from the first window that has a waiting item; during a long sweep, read that window again."""
        if self._position is None:
            self._reported_at = None
        elif self._reported_at is not None:
            if monotonic() - self._reported_at <= self._thresholds.sweep_interval_s:
                return
            window = self._source.read_window(None)
        if window.oldest is not None:
            self._oldest.set(_waited_s(window, window.oldest))
            self._reported_at = monotonic()

    def _measure_backlog(self, now: float) -> float:
        if monotonic() - self._measured_at > self._thresholds.poll_interval_s:
            self._backlog_age_s = self._source.backlog_age_s(now)
            self._measured_at = monotonic()
        return self._backlog_age_s


def _waited_s(window: SweepWindow[P], since: float | None) -> float:
    return 0.0 if since is None else max(0.0, window.now - since)
