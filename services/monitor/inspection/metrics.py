"""Exports the state of the system as Prometheus metrics.

They are computed at each scrape, so series of what is gone disappear.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.monitor.inspection.inspector import SystemInspector
from services.monitor.inspection.snapshots import DatabaseSnapshot, KafkaState, ServiceStatus
from shared.platform.kafka.inspection.health import Health

Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class _Family:
    """`samples` returns label values and a value for each series."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[..., Iterable[Sample]]


_KAFKA: tuple[_Family, ...] = (
    _Family(
        "mizan_topic_records",
        "Records in the topic",
        ("topic",),
        lambda kafka: (((topic.name,), topic.records) for topic in kafka.snapshot.topics if topic.exists),
    ),
    _Family(
        "mizan_topic_partitions",
        "Partitions of the topic; 0 if the topic does not exist",
        ("topic",),
        lambda kafka: (((topic.name,), len(topic.partitions)) for topic in kafka.snapshot.topics),
    ),
    _Family(
        "mizan_group_members",
        "Members of the consumer group",
        ("group",),
        lambda kafka: (((group.name,), len(group.members)) for group in kafka.snapshot.groups),
    ),
    _Family(
        "mizan_group_lag_records",
        "Records of the partition that the group has not processed yet",
        ("group", "topic", "partition"),
        lambda kafka: _by_partition(kafka, lambda lag: lag.lag),
    ),
    _Family(
        "mizan_group_lag_seconds",
        "Age of the oldest record not yet processed; in a delay topic, how late it is",
        ("group", "topic", "partition"),
        lambda kafka: _by_partition(kafka, lambda lag: lag.lag_s),
    ),
    _Family(
        "mizan_group_stalled",
        "1 if the group has members and lag but its offsets do not move",
        ("group",),
        lambda kafka: _has_health(kafka, Health.STALLED),
    ),
    _Family(
        "mizan_group_unattended",
        "1 if the group has lag but no members",
        ("group",),
        lambda kafka: _has_health(kafka, Health.NO_MEMBERS),
    ),
    _Family(
        "mizan_delay_waiting_records",
        "Records waiting in the delay topic, due or not",
        ("topic",),
        lambda kafka: (((group.topic,), group.waiting) for group in kafka.snapshot.groups if group.is_delay),
    ),
    _Family(
        "mizan_delay_head_late_seconds",
        "How late the head record of the delay topic is; 0 until it is due",
        ("topic",),
        lambda kafka: (((group.topic,), group.lag_s) for group in kafka.snapshot.groups if group.is_delay),
    ),
    _Family(
        "mizan_dead_letters_recent",
        "Records added to a dead-letter topic within the last hour and not dismissed",
        ("topic",),
        lambda kafka: (((topic,), counts.last_hour) for topic, counts in kafka.dead_letters.items()),
    ),
)
_DATABASE: tuple[_Family, ...] = (
    _Family(
        "mizan_attempts_in_progress",
        "Payment attempts whose outcome is not known yet",
        ("state",),
        lambda database: (((state,), count) for state, count in database.attempts.in_progress.items()),
    ),
    _Family(
        "mizan_attempts_undecided",
        "Payment attempts that wait for an operator's decision",
        (),
        lambda database: _one(database.attempts.undecided.count),
    ),
    _Family(
        "mizan_attempts_duplicate_open",
        "Duplicate payments that nobody has handled yet",
        (),
        lambda database: _one(database.attempts.duplicates.count),
    ),
    _Family(
        "mizan_deliveries_pending",
        "Deliveries waiting for their next try, by step (counted up to 20,000)",
        ("step",),
        lambda database: (((str(step),), database.deliveries.pending.get(step, 0)) for step in range(1, 10)),
    ),
    _Family(
        "mizan_applications_paused",
        "Applications whose webhooks an operator has paused",
        (),
        lambda database: _one(database.paused_applications),
    ),
    _Family(
        "mizan_endpoint_failing_applications",
        "Applications whose latest 3 tried deliveries were not accepted and are still retried (at most 200)",
        (),
        lambda database: _one(database.failing_applications),
    ),
)
_SERVICES: tuple[_Family, ...] = (
    _Family(
        "mizan_service_up",
        "1 if the service responds",
        ("service",),
        lambda services: (((service.name,), service.is_up) for service in services),
    ),
    _Family(
        "mizan_service_ready",
        "1 if the service reports that it is ready",
        ("service",),
        lambda services: (((service.name,), service.is_ready) for service in services),
    ),
)


class InspectionCollector(Collector):
    def __init__(self, inspector: SystemInspector) -> None:
        self._inspector = inspector

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing: the registry must not collect when the collector is registered."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all metrics. Those of a source that is not current have no samples."""
        state, now = self._inspector.state(), datetime.now(UTC)
        parts: tuple[
            tuple[tuple[_Family, ...], KafkaState | DatabaseSnapshot | tuple[ServiceStatus, ...] | None], ...
        ] = (
            (_KAFKA, state.kafka.value if state.kafka.is_current(now) else None),
            (_DATABASE, state.database.value if state.database.is_current(now) else None),
            (_SERVICES, state.services.value if state.services.is_current(now) else None),
        )
        for families, value in parts:
            for family in families:
                metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
                for labels, number in family.samples(value) if value is not None else ():
                    metric.add_metric(labels, float(number))
                yield metric
        yield self._ages()

    def _ages(self) -> GaugeMetricFamily:
        ages = GaugeMetricFamily(
            "mizan_monitor_snapshot_age_seconds", "Age of the last successful snapshot", labels=["source"]
        )
        for name, age_s in self._inspector.ages_s(datetime.now(UTC)).items():
            ages.add_metric((name,), age_s)
        return ages


def register_metrics(
    inspector: SystemInspector, registry: CollectorRegistry = REGISTRY
) -> InspectionCollector:
    """Register the metrics. Call it once per process, where the inspector is started."""
    collector = InspectionCollector(inspector)
    registry.register(collector)
    return collector


def _by_partition(kafka: KafkaState, value: Callable[..., float]) -> Iterator[Sample]:
    for group in kafka.snapshot.groups:
        for lag in group.partitions:
            yield (group.name, group.topic, str(lag.partition)), value(lag)


def _has_health(kafka: KafkaState, health: Health) -> Iterator[Sample]:
    for group in kafka.snapshot.groups:
        yield (group.name,), kafka.health_of(group.name) is health


def _one(value: float) -> list[Sample]:
    return [((), value)]
