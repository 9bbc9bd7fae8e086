"""The last 15 minutes of some numbers, kept in memory for the sparklines."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from services.monitor.inspection.snapshots import DatabaseSnapshot, KafkaState

MAX_POINTS = 180
"""15 minutes at one point every 5 seconds."""

OUTBOX_AGE = "outbox age"
PAID = "paid"
IN_PROGRESS = "in progress"
ATTEMPT_AGE = "attempt age"
PENDING = "pending"
CREATED = "created"


def lag_series(group: str) -> str:
    return f"lag of {group}"


def lag_seconds_series(group: str) -> str:
    return f"lag in seconds of {group}"


def in_rate_series(topic: str) -> str:
    return f"into {topic}"


def out_rate_series(topic: str) -> str:
    return f"out of {topic}"


def database_values(snapshot: DatabaseSnapshot) -> dict[str, float]:
    """Return the values to record of a snapshot, by name of the series."""
    return {
        OUTBOX_AGE: snapshot.outbox.oldest_age_s,
        PAID: snapshot.payments.paid_in_5_minutes,
        CREATED: snapshot.payments.created_in_a_minute,
        IN_PROGRESS: sum(snapshot.attempts.in_progress.values()),
        ATTEMPT_AGE: snapshot.attempts.oldest_age_s,
        PENDING: snapshot.deliveries.waiting,
    }


def kafka_values(state: KafkaState) -> dict[str, float]:
    """Return the values to record of a snapshot, by name of the series."""
    values: dict[str, float] = {}
    for group in state.snapshot.groups:
        values[lag_series(group.name)] = group.lag
        values[lag_seconds_series(group.name)] = group.lag_s
    for topic, rate in state.rates.items():
        values[in_rate_series(topic)] = rate.into
        if rate.out is not None:
            values[out_rate_series(topic)] = rate.out
    return values


@dataclass(frozen=True, slots=True)
class Point:
    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class History:
    """Series by name, oldest point first."""

    series: Mapping[str, Sequence[Point]]

    def points(self, name: str) -> Sequence[Point]:
        return self.series.get(name, ())


class HistoryRecorder:
    """Thread-safe. There are only a few series: those of topics and groups, and some figures."""

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._series: dict[str, deque[Point]] = {}
        self._lock = Lock()

    def record(self, at: datetime, values: Mapping[str, float]) -> None:
        with self._lock:
            for name, value in values.items():
                self._series.setdefault(name, deque(maxlen=self._max_points)).append(Point(at, float(value)))

    def history(self) -> History:
        with self._lock:
            return History({name: tuple(points) for name, points in self._series.items()})
