"""Builders of poll results, for tests without Kafka and PostgreSQL."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from services.monitor.inspection.snapshots import (
    AttemptFigures,
    Backlog,
    DatabaseSnapshot,
    DeadLetterCounts,
    DeliveryFigures,
    KafkaState,
    PaymentFigures,
    PollResult,
    ServiceStatus,
    SystemState,
)
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.inspection.health import GroupHealth, Health
from shared.platform.kafka.inspection.snapshot import (
    GroupMember,
    GroupSnapshot,
    KafkaSnapshot,
    PartitionLag,
    PartitionOffsets,
    TopicSnapshot,
)

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
MEMBER = GroupMember("worker-1", "mizan-worker", "10.0.0.7", (0,))


def figures(
    *,
    payments: PaymentFigures | None = None,
    attempts: AttemptFigures | None = None,
    deliveries: DeliveryFigures | None = None,
    outbox: Backlog | None = None,
    expiry_late_s: float = 0.0,
    intake_age_s: float = 0.0,
    failing: int = 0,
) -> DatabaseSnapshot:
    return DatabaseSnapshot(
        now=NOW,
        outbox=outbox or Backlog(),
        payments=payments or PaymentFigures(),
        attempts=attempts or AttemptFigures({"sent": 0, "unknown": 0}),
        expiry_late_s=expiry_late_s,
        intake_age_s=intake_age_s,
        deliveries=deliveries or DeliveryFigures({}),
        paused_applications=0,
        failing_applications=failing,
    )


def lag(
    partition: int = 0, *, records: int = 0, seconds: float = 0.0, committed: int | None = 10
) -> PartitionLag:
    return PartitionLag(
        partition=partition,
        committed=committed,
        high=(committed or 0) + records,
        lag=records,
        lag_s=seconds,
        head_at=NOW - timedelta(seconds=seconds) if records else None,
        due_at=None,
        committed_at=None,
    )


def group(
    topic: str = "webhooks.deliver",
    *partitions: PartitionLag,
    members: Sequence[GroupMember] = (MEMBER,),
    name: str | None = None,
) -> GroupSnapshot:
    is_delay = topic.startswith("webhooks.delay.")
    return GroupSnapshot(name or topic, topic, "stable", tuple(members), partitions or (lag(),), is_delay)


def view(*groups: GroupSnapshot, at: datetime = NOW, missing: Sequence[str] = ()) -> KafkaSnapshot:
    """Build a snapshot of Kafka in which all topics except `missing` exist."""
    ends = {group.topic: [(one.partition, one.high) for one in group.partitions] for group in groups}
    topics = tuple(
        TopicSnapshot(
            topic.name,
            tuple(PartitionOffsets(number, 0, high) for number, high in ends.get(topic.name, [(0, 0)])),
            None,
            topic.name not in missing,
        )
        for topic in ALL_TOPICS
    )
    return KafkaSnapshot(at, topics, groups, 1)


def kafka(
    *groups: GroupSnapshot,
    health: Health = Health.HEALTHY,
    dead: Mapping[str, DeadLetterCounts] | None = None,
    missing: Sequence[str] = (),
) -> KafkaState:
    group_health = GroupHealth(health, {0: health})
    return KafkaState(
        view(*groups, missing=missing), {one.name: group_health for one in groups}, {}, dead or {}
    )


def service(name: str = "api", *, is_up: bool = True, is_ready: bool = True) -> ServiceStatus:
    return ServiceStatus(
        name, "http://127.0.0.1:1", is_up, is_ready, () if is_ready else ("database: away",), None
    )


def seen(
    database: DatabaseSnapshot | None = None,
    kafka_values: KafkaState | None = None,
    *services: ServiceStatus,
) -> SystemState:
    """Build a state of the system, polled just now. What is not given is healthy."""
    return SystemState(
        PollResult(kafka_values or kafka(), NOW),
        PollResult(database or figures(), NOW),
        PollResult(services, NOW),
    )
