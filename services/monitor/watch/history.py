"""The last quarter of an hour of some numbers, in memory: what the small curves are drawn from."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

KEPT = 180
"""A quarter of an hour at five seconds."""


@dataclass(frozen=True, slots=True)
class Point:
    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class History:
    """Series by name, oldest point first."""

    series: Mapping[str, Sequence[Point]]

    def of(self, name: str) -> Sequence[Point]:
        return self.series.get(name, ())


class Recorder:
    """For several threads. The names of series are few: topics, groups, and some figures."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._series: dict[str, deque[Point]] = {}
        self._lock = Lock()

    def note(self, at: datetime, values: Mapping[str, float]) -> None:
        with self._lock:
            for name, value in values.items():
                self._series.setdefault(name, deque(maxlen=self._kept)).append(Point(at, float(value)))

    def history(self) -> History:
        with self._lock:
            return History({name: tuple(points) for name, points in self._series.items()})
