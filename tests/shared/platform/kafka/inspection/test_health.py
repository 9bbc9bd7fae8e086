"""The health of a consumer group, from consecutive snapshots."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.domain.topics import WEBHOOKS_DELAY
from shared.platform.kafka.inspection.health import GroupHealthTracker, Health
from shared.platform.kafka.inspection.snapshot import GroupMember, GroupSnapshot, KafkaSnapshot, PartitionLag

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
SOMEBODY = (GroupMember("m-1", "mizan-worker", "10.0.0.7", (0, 1, 2)),)
HEALTHY, BEHIND, STALLED, NO_MEMBERS, UNKNOWN = Health


def at(partition: int, committed: int | None, lag: int = 0, lag_s: float = 0.0) -> PartitionLag:
    return PartitionLag(partition, committed, (committed or 0) + lag, lag, lag_s, None, None, None)


def group(
    *partitions: PartitionLag, members: tuple[GroupMember, ...] = SOMEBODY, topic: str = "work"
) -> GroupSnapshot:
    return GroupSnapshot(
        "workers", topic, "stable", members, partitions, is_delay=topic.startswith("webhooks.delay.")
    )


def assessed(snapshots: Sequence[tuple[float, GroupSnapshot]]) -> tuple[Health, dict[int, Health]]:
    """Return the health of group and partitions after the last of these snapshots, given with their seconds."""
    tracker = GroupHealthTracker()
    found = {}
    for second, snapshot in snapshots:
        found = tracker.assess(KafkaSnapshot(START + timedelta(seconds=second), (), (snapshot,), 1))
    return found["workers"].health, dict(found["workers"].partitions)


@dataclass(frozen=True)
class Case:
    name: str
    snapshots: Sequence[tuple[float, GroupSnapshot]]
    health: Health
    partitions: dict[int, Health] = field(default_factory=dict)


CASES = [
    Case("nothing waits", [(0, group(at(0, 5)))], HEALTHY),
    Case("no topic, so no partition", [(0, group())], HEALTHY),
    Case("nothing waits, nobody is there", [(0, group(at(0, 5), members=()))], HEALTHY),
    Case("a little waits", [(0, group(at(0, 5, 10, 4.0)))], HEALTHY),
    Case("exactly at the limit", [(0, group(at(0, 5, 10, 30.0)))], HEALTHY),
    Case("records wait for long", [(0, group(at(0, 5, 10, 30.1)))], BEHIND),
    Case("records wait and nobody is there", [(0, group(at(0, 5, 1, 0.1), members=()))], NO_MEMBERS),
    Case("it never committed, and nobody is there", [(0, group(at(0, None, 1), members=()))], NO_MEMBERS),
    Case("the first snapshot cannot tell", [(0, group(at(0, 5, 10, 900.0)))], BEHIND),
    Case(
        "not moved for a minute",
        [(0, group(at(0, 5, 10, 20.0))), (60, group(at(0, 5, 12, 80.0)))],
        STALLED,
    ),
    Case(
        "not moved for less than a minute",
        [(0, group(at(0, 5, 10, 20.0))), (59, group(at(0, 5, 12, 79.0)))],
        BEHIND,
    ),
    Case(
        "hours behind, but it moves",
        [(0, group(at(0, 5, 10, 9000.0))), (70, group(at(0, 6, 10, 9000.0)))],
        BEHIND,
    ),
    Case(
        "it moved half a minute ago",
        [
            (0, group(at(0, 5, 10, 100.0))),
            (60, group(at(0, 6, 10, 100.0))),
            (90, group(at(0, 6, 10, 130.0))),
        ],
        BEHIND,
    ),
    Case(
        "it moved and got stuck",
        [
            (0, group(at(0, 5, 10, 100.0))),
            (60, group(at(0, 6, 10, 100.0))),
            (120, group(at(0, 6, 10, 160.0))),
        ],
        STALLED,
    ),
    Case(
        "stuck, then on its way",
        [
            (0, group(at(0, 5, 10, 100.0))),
            (60, group(at(0, 5, 10, 160.0))),
            (62, group(at(0, 9, 6, 120.0))),
        ],
        BEHIND,
    ),
    Case(
        "never committed anything",
        [(0, group(at(0, None, 10, 61.0))), (60, group(at(0, None, 10, 121.0)))],
        STALLED,
    ),
    Case(
        "idle for an hour, then an old record arrives",
        [(0, group(at(0, 5))), (3600, group(at(0, 5))), (3602, group(at(0, 5, 1, 300.0)))],
        BEHIND,
    ),
    Case(
        "one of three is stuck, the others move",
        [
            (0, group(at(0, 5, 1, 1.0), at(1, 5, 1, 61.0), at(2, 5))),
            (60, group(at(0, 50, 1, 1.0), at(1, 5, 9, 121.0), at(2, 70))),
        ],
        STALLED,
        {0: HEALTHY, 1: STALLED, 2: HEALTHY},
    ),
    Case(
        "no members is worse than stalled",
        [(0, group(at(0, 5, 1, 61.0))), (60, group(at(0, 5, 1, 121.0), at(1, 5), members=()))],
        NO_MEMBERS,
        {0: NO_MEMBERS, 1: HEALTHY},
    ),
    Case(
        "held until its time",
        [
            (0, group(at(0, 5, 9), topic=WEBHOOKS_DELAY[7].name)),
            (900, group(at(0, 5, 9), topic=WEBHOOKS_DELAY[7].name)),
        ],
        HEALTHY,
    ),
    Case(
        "held, and nobody there who would move it on",
        [(0, group(at(0, 5, 9), topic=WEBHOOKS_DELAY[7].name, members=()))],
        NO_MEMBERS,
    ),
    Case(
        "due for long, and not moved on",
        [
            (0, group(at(0, 5, 9, 5.0), topic=WEBHOOKS_DELAY[0].name)),
            (60, group(at(0, 5, 9, 65.0), topic=WEBHOOKS_DELAY[0].name)),
        ],
        STALLED,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_group_health_follows_progress_lag_and_members(case: Case) -> None:
    """The worst of its partitions counts."""
    health, partitions = assessed(case.snapshots)
    assert health is case.health
    assert {number: partitions[number] for number in case.partitions} == case.partitions


def test_groups_are_assessed_independently() -> None:
    """Two groups have the same partition, and one of them is stuck."""
    tracker = GroupHealthTracker()
    stuck, moving = group(at(0, 5, 1, 100.0)), replace(group(at(0, 5, 1, 100.0)), name="others")
    tracker.assess(KafkaSnapshot(START, (), (stuck, moving), 1))
    moved = replace(moving, partitions=(at(0, 6, 1, 100.0),))
    found = tracker.assess(KafkaSnapshot(START + timedelta(seconds=60), (), (stuck, moved), 1))
    assert {name: group_health.health for name, group_health in found.items()} == {
        "workers": STALLED,
        "others": BEHIND,
    }
