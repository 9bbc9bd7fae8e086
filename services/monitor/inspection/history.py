"""The last 15 minutes of some numbers, kept in memory for the sparklines."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from services.monitor.inspection.snapshots import Figures, KafkaSeen

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


OUTBOX_AGE = "outbox age"
PAID = "paid"
UNDER_WAY = "under way"
ATTEMPT_AGE = "attempt age"
PENDING = "pending"
CREATED = "created"


def lag_name(group: str) -> str:
    return f"lag of {group}"


def lag_s_name(group: str) -> str:
    return f"lag in seconds of {group}"


def into_name(topic: str) -> str:
    return f"into {topic}"


def out_name(topic: str) -> str:
    return f"out of {topic}"


def of_database(figures: Figures) -> dict[str, float]:
    return {
        OUTBOX_AGE: figures.outbox.oldest_s,
        PAID: figures.payments.paid_in_5_minutes,
        CREATED: figures.payments.created_in_a_minute,
        UNDER_WAY: sum(figures.attempts.under_way.values()),
        ATTEMPT_AGE: figures.attempts.oldest_s,
        PENDING: figures.deliveries.waiting,
    }


def of_kafka(seen: KafkaSeen) -> dict[str, float]:
    found: dict[str, float] = {}
    for group in seen.view.groups:
        found[lag_name(group.name)] = group.lag
        found[lag_s_name(group.name)] = group.lag_s
    for topic, flow in seen.flows.items():
        found[into_name(topic)] = flow.into
        if flow.out is not None:
            found[out_name(topic)] = flow.out
    return found
