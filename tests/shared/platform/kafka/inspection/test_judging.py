"""Whether a group gets on, looked at again and again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.domain.topics import WEBHOOKS_DELAY
from shared.platform.kafka.inspection.health import Judge, Standing, all_away
from shared.platform.kafka.inspection.snapshot import GroupView, KafkaView, LagView, MemberView

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
SOMEBODY = (MemberView("m-1", "mizan-worker", "10.0.0.7", (0, 1, 2)),)
FINE, BEHIND, STALLED, NOBODY, AWAY = Standing


def at(partition: int, committed: int | None, lag: int = 0, lag_s: float = 0.0) -> LagView:
    return LagView(partition, committed, (committed or 0) + lag, lag, lag_s, None, None, None)


def group(*partitions: LagView, members: tuple[MemberView, ...] = SOMEBODY, topic: str = "work") -> GroupView:
    return GroupView(
        "workers", topic, "stable", members, partitions, is_delay=topic.startswith("webhooks.delay.")
    )


def judged(looks: Sequence[tuple[float, GroupView]]) -> tuple[Standing, dict[int, Standing]]:
    """After the last of looks at these seconds."""
    judge = Judge()
    found = {}
    for second, view in looks:
        found = judge.judge(KafkaView(START + timedelta(seconds=second), (), (view,), 1))
    return found["workers"].standing, dict(found["workers"].partitions)


@dataclass(frozen=True)
class Story:
    name: str
    looks: Sequence[tuple[float, GroupView]]
    standing: Standing
    partitions: dict[int, Standing] = field(default_factory=dict)


STORIES = [
    Story("nothing waits", [(0, group(at(0, 5)))], FINE),
    Story("no topic, so no partition", [(0, group())], FINE),
    Story("nothing waits, nobody is there", [(0, group(at(0, 5), members=()))], FINE),
    Story("a little waits", [(0, group(at(0, 5, 10, 4.0)))], FINE),
    Story("exactly at the limit", [(0, group(at(0, 5, 10, 30.0)))], FINE),
    Story("long waits", [(0, group(at(0, 5, 10, 30.1)))], BEHIND),
    Story("records wait and nobody is there", [(0, group(at(0, 5, 1, 0.1), members=()))], NOBODY),
    Story("it never committed, and nobody is there", [(0, group(at(0, None, 1), members=()))], NOBODY),
    Story("the first look cannot tell", [(0, group(at(0, 5, 10, 900.0)))], BEHIND),
    Story(
        "not moved for a minute",
        [(0, group(at(0, 5, 10, 20.0))), (60, group(at(0, 5, 12, 80.0)))],
        STALLED,
    ),
    Story(
        "not moved for less than a minute",
        [(0, group(at(0, 5, 10, 20.0))), (59, group(at(0, 5, 12, 79.0)))],
        BEHIND,
    ),
    Story(
        "hours behind, but it moves",
        [(0, group(at(0, 5, 10, 9000.0))), (70, group(at(0, 6, 10, 9000.0)))],
        BEHIND,
    ),
    Story(
        "it moved half a minute ago",
        [
            (0, group(at(0, 5, 10, 100.0))),
            (60, group(at(0, 6, 10, 100.0))),
            (90, group(at(0, 6, 10, 130.0))),
        ],
        BEHIND,
    ),
    Story(
        "it moved and got stuck",
        [
            (0, group(at(0, 5, 10, 100.0))),
            (60, group(at(0, 6, 10, 100.0))),
            (120, group(at(0, 6, 10, 160.0))),
        ],
        STALLED,
    ),
    Story(
        "stuck, then on its way",
        [
            (0, group(at(0, 5, 10, 100.0))),
            (60, group(at(0, 5, 10, 160.0))),
            (62, group(at(0, 9, 6, 120.0))),
        ],
        BEHIND,
    ),
    Story(
        "never committed anything",
        [(0, group(at(0, None, 10, 61.0))), (60, group(at(0, None, 10, 121.0)))],
        STALLED,
    ),
    Story(
        "idle for an hour, then an old record arrives",
        [(0, group(at(0, 5))), (3600, group(at(0, 5))), (3602, group(at(0, 5, 1, 300.0)))],
        BEHIND,
    ),
    Story(
        "one of three is stuck, the others move",
        [
            (0, group(at(0, 5, 1, 1.0), at(1, 5, 1, 61.0), at(2, 5))),
            (60, group(at(0, 50, 1, 1.0), at(1, 5, 9, 121.0), at(2, 70))),
        ],
        STALLED,
        {0: FINE, 1: STALLED, 2: FINE},
    ),
    Story(
        "nobody is worse than stalled",
        [(0, group(at(0, 5, 1, 61.0))), (60, group(at(0, 5, 1, 121.0), at(1, 5), members=()))],
        NOBODY,
        {0: NOBODY, 1: FINE},
    ),
    Story(
        "held until its time",
        [
            (0, group(at(0, 5, 9), topic=WEBHOOKS_DELAY[7].name)),
            (900, group(at(0, 5, 9), topic=WEBHOOKS_DELAY[7].name)),
        ],
        FINE,
    ),
    Story(
        "held, and nobody there who would move it on",
        [(0, group(at(0, 5, 9), topic=WEBHOOKS_DELAY[7].name, members=()))],
        NOBODY,
    ),
    Story(
        "due for long, and not moved on",
        [
            (0, group(at(0, 5, 9, 5.0), topic=WEBHOOKS_DELAY[0].name)),
            (60, group(at(0, 5, 9, 65.0), topic=WEBHOOKS_DELAY[0].name)),
        ],
        STALLED,
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_group_is_judged_by_what_it_does(story: Story) -> None:
    """The worst of its partitions counts."""
    standing, partitions = judged(story.looks)
    assert standing is story.standing
    assert {number: partitions[number] for number in story.partitions} == story.partitions


def test_groups_do_not_share_their_pasts() -> None:
    """Two groups, the same partition, one stuck."""
    judge = Judge()
    stuck, moving = group(at(0, 5, 1, 100.0)), replace(group(at(0, 5, 1, 100.0)), name="others")
    judge.judge(KafkaView(START, (), (stuck, moving), 1))
    moved = replace(moving, partitions=(at(0, 6, 1, 100.0),))
    found = judge.judge(KafkaView(START + timedelta(seconds=60), (), (stuck, moved), 1))
    assert {name: judgement.standing for name, judgement in found.items()} == {
        "workers": STALLED,
        "others": BEHIND,
    }


def test_while_kafka_cannot_be_looked_at_nobody_knows() -> None:
    """Neither of a group nor of its partitions."""
    found = all_away(Judge().judge(KafkaView(START, (), (group(at(0, 5)),), 1)))
    assert found["workers"].standing is AWAY
    assert found["workers"].partitions == {0: AWAY}
