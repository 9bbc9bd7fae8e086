"""Puts back what has waited for too long, a little at a time, so that a backlog is not made worse.

A round goes through all that waits, from the longest waiting on, a window at a time. It keeps its place, so no look
passes again over what was put back a moment ago, however much there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from prometheus_client import Gauge

P = TypeVar("P")

# Both are written out in the statements for the planner's sake: of an unknown limit it assumes a tenth of the table.
BATCH = 500
WINDOW = 5000
PAUSE_AFTER_BATCH_S = 1.0
"""After a batch: no more than 500 go back each second."""
_PAUSE_AFTER_EMPTY_WINDOW_S = 0.2
"""Between two windows with nothing to put back."""


@dataclass(frozen=True, slots=True)
class RequeueThresholds:
    patience_s: float = 900.0
    """Beyond the age of what is the oldest in line: only what has waited for longer is put back."""
    again_s: float = 3600.0
    """Nothing is put back twice within this time."""
    round_every_s: float = 60.0
    look_every_s: float = 10.0
    """Also how long counts what was measured of the line."""


@dataclass(frozen=True, slots=True)
class SweepWindow(Generic[P]):
    """A stretch of what waits. Times are those it has waited since, by the database's clock, in seconds since 1970."""

    now: float
    oldest: float | None
    """Of all that counts as waiting."""
    ids: Sequence[UUID]
    """What may be put back if the line is short: a batch at most."""
    oldest_id: float | None
    newest: float | None
    next_place: P | None
    """Behind this window, or behind `ids` where they fill a batch; None when nothing is left."""


class RequeueSource(Protocol[P]):
    def look(self, place: P | None) -> SweepWindow[P]:
        """From this place on, or from the longest waiting."""

    def in_line_s(self, now: float) -> float:
        """The age of the oldest that is still in line: it is not lost, however long it has waited."""

    def put_back(self, ids: Sequence[UUID], patience_s: float) -> int:
        """Those that still wait, and have for longer than that. Returns how many went back."""


class RequeueSweep(Generic[P]):
    """`oldest` tells operators how long the longest waiting has waited."""

    def __init__(self, waiting: RequeueSource[P], thresholds: RequeueThresholds, oldest: Gauge) -> None:
        self._waiting = waiting
        self._thresholds = thresholds
        self._oldest = oldest
        self._is_under_way = False
        self._place: P | None = None
        self._told_at: float | None = None
        self._next_at = float("-inf")
        self._in_line_s = 0.0
        self._measured_at = float("-inf")

    def step(self) -> tuple[int, float]:
        """How many were put back, and in how many seconds to go on."""
        pause_s = self._next_at - monotonic()
        if not self._is_under_way and pause_s > 0:
            return 0, pause_s
        if not self._is_under_way:
            self._is_under_way, self._place = True, None
            self._next_at = monotonic() + self._thresholds.round_every_s
        window = self._waiting.look(self._place)
        self._tell(window)
        patience_s = self._thresholds.patience_s
        put_back, goes_on = 0, self._told_at is None or _waited_s(window, window.newest) > patience_s
        if window.ids:
            patience_s += self._measured(window.now)
            if _waited_s(window, window.oldest_id) > patience_s:
                put_back = self._waiting.put_back(window.ids, patience_s)
            else:
                goes_on = False  # those behind have waited even less
        if goes_on and window.next_place is not None:
            self._place = window.next_place
            return put_back, PAUSE_AFTER_BATCH_S if put_back else _PAUSE_AFTER_EMPTY_WINDOW_S
        self._end()
        return put_back, PAUSE_AFTER_BATCH_S if put_back else max(0.0, self._next_at - monotonic())

    def _end(self) -> None:
        self._is_under_way = False
        if self._told_at is None:
            self._oldest.set(0)

    def _tell(self, window: SweepWindow[P]) -> None:
        """The first that counts is the oldest. A round may take long: then of the first window once more."""
        if self._place is None:
            self._told_at = None
        elif self._told_at is not None:
            if monotonic() - self._told_at <= self._thresholds.round_every_s:
                return
            window = self._waiting.look(None)
        if window.oldest is not None:
            self._oldest.set(_waited_s(window, window.oldest))
            self._told_at = monotonic()

    def _measured(self, now: float) -> float:
        if monotonic() - self._measured_at > self._thresholds.look_every_s:
            self._in_line_s = self._waiting.in_line_s(now)
            self._measured_at = monotonic()
        return self._in_line_s


def _waited_s(window: SweepWindow[P], since: float | None) -> float:
    return 0.0 if since is None else max(0.0, window.now - since)
