"""What was seen, as metrics. Made anew at each scrape, so that what is gone vanishes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.monitor.inspection.inspector import Watch
from services.monitor.inspection.snapshots import Figures, KafkaSeen, ServiceSeen
from shared.platform.kafka.inspection.health import Health

Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class _Family:
    """`samples` are its label values and its value, of each thing that was seen."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[..., Iterable[Sample]]


_KAFKA: tuple[_Family, ...] = (
    _Family(
        "mizan_topic_records",
        "Records in the topic",
        ("topic",),
        lambda kafka: (((topic.name,), topic.records) for topic in kafka.view.topics if topic.exists),
    ),
    _Family(
        "mizan_topic_partitions",
        "Partitions of the topic; 0 if the topic does not exist",
        ("topic",),
        lambda kafka: (((topic.name,), len(topic.partitions)) for topic in kafka.view.topics),
    ),
    _Family(
        "mizan_group_members",
        "Members of the consumer group",
        ("group",),
        lambda kafka: (((group.name,), len(group.members)) for group in kafka.view.groups),
    ),
    _Family(
        "mizan_group_lag_records",
        "Records of the partition that the group has not processed yet",
        ("group", "topic", "partition"),
        lambda kafka: _by_partition(kafka, lambda view: view.lag),
    ),
    _Family(
        "mizan_group_lag_seconds",
        "Age of the oldest record not yet processed; in a delay topic, how late it is",
        ("group", "topic", "partition"),
        lambda kafka: _by_partition(kafka, lambda view: view.lag_s),
    ),
    _Family(
        "mizan_group_stalled",
        "1 if the group has members and lag but its offsets do not move",
        ("group",),
        lambda kafka: _standing(kafka, Health.STALLED),
    ),
    _Family(
        "mizan_group_unattended",
        "1 if the group has lag but no members",
        ("group",),
        lambda kafka: _standing(kafka, Health.NO_MEMBERS),
    ),
    _Family(
        "mizan_delay_waiting_records",
        "Records waiting in the delay topic, due or not",
        ("topic",),
        lambda kafka: (((group.topic,), group.waiting) for group in kafka.view.groups if group.is_delay),
    ),
    _Family(
        "mizan_delay_head_late_seconds",
        "How late the head record of the delay topic is; 0 until it is due",
        ("topic",),
        lambda kafka: (((group.topic,), group.lag_s) for group in kafka.view.groups if group.is_delay),
    ),
    _Family(
        "mizan_dead_letters_recent",
        "Records added to a dead-letter topic within the last hour",
        ("topic",),
        lambda kafka: (((topic,), dead.in_an_hour) for topic, dead in kafka.dead.items()),
    ),
)
_DATABASE: tuple[_Family, ...] = (
    _Family(
        "mizan_attempts_in_progress",
        "Payment attempts whose outcome is not known yet",
        ("state",),
        lambda figures: (((state,), count) for state, count in figures.attempts.under_way.items()),
    ),
    _Family(
        "mizan_attempts_undecided",
        "Payment attempts that wait for an operator's decision",
        (),
        lambda figures: _one(figures.attempts.undecided.count),
    ),
    _Family(
        "mizan_attempts_duplicate_open",
        "Duplicate payments that nobody has handled yet",
        (),
        lambda figures: _one(figures.attempts.duplicates.count),
    ),
    _Family(
        "mizan_deliveries_pending",
        "Deliveries waiting for their next try, by step (counted up to 20,000)",
        ("step",),
        lambda figures: (((str(step),), figures.deliveries.pending.get(step, 0)) for step in range(1, 10)),
    ),
    _Family(
        "mizan_applications_paused",
        "Applications whose webhooks an operator has paused",
        (),
        lambda figures: _one(figures.paused),
    ),
    _Family(
        "mizan_endpoint_failing_applications",
        "Applications with at least 5 failing deliveries and no success within 15 minutes",
        (),
        lambda figures: _one(figures.failing),
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


class WatchCollector(Collector):
    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing, so that nobody looks before it is asked for."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """What was seen too long ago is not told as if it were so now."""
        seen, now = self._watch.seen(), datetime.now(UTC)
        parts: tuple[
            tuple[tuple[_Family, ...], KafkaSeen | Figures | tuple[ServiceSeen, ...] | None], ...
        ] = (
            (_KAFKA, seen.kafka.found if seen.kafka.is_current(now) else None),
            (_DATABASE, seen.database.found if seen.database.is_current(now) else None),
            (_SERVICES, seen.services.found if seen.services.is_current(now) else None),
        )
        for families, found in parts:
            for family in families:
                metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
                for labels, value in family.samples(found) if found is not None else ():
                    metric.add_metric(labels, float(value))
                yield metric
        yield self._ages()

    def _ages(self) -> GaugeMetricFamily:
        """Where no look has worked yet, since the first one began."""
        ages = GaugeMetricFamily(
            "mizan_monitor_snapshot_age_seconds", "Age of the last successful snapshot", labels=["source"]
        )
        for name, age_s in self._watch.ages_s(datetime.now(UTC)).items():
            ages.add_metric((name,), age_s)
        return ages


def expose(watch: Watch, registry: CollectorRegistry = REGISTRY) -> WatchCollector:
    """Once for a process: by whoever starts the watch."""
    collector = WatchCollector(watch)
    registry.register(collector)
    return collector


def _by_partition(kafka: KafkaSeen, value: Callable[..., float]) -> Iterator[Sample]:
    for group in kafka.view.groups:
        for view in group.partitions:
            yield (group.name, group.topic, str(view.partition)), value(view)


def _standing(kafka: KafkaSeen, wanted: Health) -> Iterator[Sample]:
    for group in kafka.view.groups:
        yield (group.name,), kafka.standing(group.name) is wanted


def _one(value: float) -> list[Sample]:
    return [((), value)]
