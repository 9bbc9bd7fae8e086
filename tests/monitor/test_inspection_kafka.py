"""Polling a real Kafka: groups without members, stalled groups, late delay topics, and an unavailable Kafka."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.monitor.inspection.history import in_rate_series, lag_series
from services.monitor.inspection.problems import ProblemKind
from services.monitor.inspection.rules import find_problems
from services.monitor.inspection.snapshots import KafkaState
from shared.domain.topics import ALL_TOPICS, DEAD_LETTERS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.inspection import health
from shared.platform.kafka.inspection.health import Health
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from stack.engines import Engines
from tests.monitor.topic_records import Records
from tests.monitor.world import MonitorWorld
from tests.waiting import eventually

DELIVER = WEBHOOKS_DELIVER.name
MINUTES = timedelta(minutes=1)


@pytest.fixture
def records(world: MonitorWorld, all_topics: KafkaSettings) -> Records:
    eventually(lambda: _are_led(world))
    return Records(world.settings.kafka)


def _are_led(world: MonitorWorld) -> bool:
    """Return whether all partitions have a leader. A new topic may not have one yet."""
    with closing(KafkaInspector(world.settings.kafka, ALL_TOPICS)) as inspector:
        try:
            inspector.inspect()
        except KafkaUnavailableError:
            return False
    return True


def look(world: MonitorWorld) -> KafkaState:
    """Poll Kafka until it answers. A busy one may miss a poll's time limit."""

    def value() -> KafkaState | None:
        world.inspector.kafka.poll_once()
        looked = world.inspector.kafka.result
        return looked.value if looked.error is None else None

    return eventually(value)


def kinds(world: MonitorWorld) -> dict[ProblemKind, str]:
    return {one.kind: one.subject for one in find_problems(world.inspector.state(), datetime.now(UTC))}


@contextmanager
def consumer(world: MonitorWorld, root: Path, topic: Topic) -> Iterator["subprocess.Popen[bytes]"]:
    kafka = world.settings.kafka
    login = json.dumps(dict(kafka.client))
    arguments = [kafka.bootstrap_servers, kafka.topic_prefix, login, topic.name]
    process = subprocess.Popen([sys.executable, "-m", "tests.monitor.consumer", *arguments], cwd=root)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_lag_without_consumers_is_a_group_without_members(world: MonitorWorld, records: Records) -> None:
    records.put(WEBHOOKS_DELIVER, 3, ago=2 * MINUTES)
    found = look(world)
    assert found.health_of(DELIVER) is Health.NO_MEMBERS
    assert found.health_of(WEBHOOKS_SLOW.name) is Health.HEALTHY
    seen_group = found.group_of(DELIVER)
    assert seen_group is not None
    assert (seen_group.lag, seen_group.members) == (3, ())
    assert seen_group.lag_s > 119
    assert kinds(world) == {ProblemKind.GROUP_WITHOUT_MEMBERS: DELIVER}


@pytest.mark.kills
def test_frozen_consumer_is_reported_as_stalled(
    world: MonitorWorld, records: Records, repository_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is still a member of its group. Once it continues, the group is healthy again."""
    monkeypatch.setattr(health, "STALLED_S", 1.0)
    with consumer(world, repository_root, WEBHOOKS_DELIVER) as process:
        records.put(WEBHOOKS_DELIVER)
        eventually(lambda: (one := look(world).group_of(DELIVER)) and one.members and one.lag == 0)
        process.send_signal(signal.SIGSTOP)
        records.put(WEBHOOKS_DELIVER, 5, ago=2 * MINUTES)
        eventually(lambda: look(world).health_of(DELIVER) is Health.STALLED, every=0.3)
        found = look(world)
        assert found.group_health[DELIVER].partitions[0] is Health.STALLED
        assert found.group_health[DELIVER].partitions[1] is Health.HEALTHY
        stalled = found.group_of(DELIVER)
        assert stalled is not None
        assert (len(stalled.members), stalled.lag) == (1, 5)
        assert kinds(world)[ProblemKind.GROUP_STALLED] == DELIVER
        process.send_signal(signal.SIGCONT)
        eventually(lambda: look(world).health_of(DELIVER) is Health.HEALTHY, every=0.3)
    assert kinds(world) == {}


def test_delay_topics_are_late_only_once_their_head_record_is_due(
    world: MonitorWorld, records: Records
) -> None:
    records.put(WEBHOOKS_DELAY[0], 2, due_in=-2 * MINUTES)
    records.put(WEBHOOKS_DELAY[4], 4, ago=50 * MINUTES, due_in=10 * MINUTES)
    found = look(world)
    late, waiting = found.group_of(WEBHOOKS_DELAY[0].name), found.group_of(WEBHOOKS_DELAY[4].name)
    assert late is not None
    assert waiting is not None
    assert (late.waiting, waiting.waiting) == (2, 4)
    assert late.lag_s > 119
    assert waiting.lag_s == 0
    assert waiting.next_due_at is not None
    assert timedelta(0) < waiting.next_due_at - datetime.now(UTC) <= 10 * MINUTES


def test_dead_letters_are_counted_in_total_and_for_the_last_hour_and_day(
    world: MonitorWorld, records: Records
) -> None:
    records.put(DEAD_LETTERS, 2, ago=30 * MINUTES)
    records.put(DEAD_LETTERS, 1)
    dead = look(world).dead_letters[DEAD_LETTERS.name]
    assert (dead.total, dead.last_hour, dead.last_day) == (3, 3, 3)
    records.put(DEAD_LETTERS, 1)
    assert look(world).dead_letters[DEAD_LETTERS.name].last_hour == 4
    assert ProblemKind.DEAD_LETTERS in kinds(world)


def test_rates_and_lag_are_recorded_in_the_history(world: MonitorWorld, records: Records) -> None:
    look(world)
    records.put(WEBHOOKS_DELIVER, 50)
    found = look(world)
    assert found.rates[DELIVER].into > 0
    history = world.inspector.history()
    assert [point.value for point in history.points(lag_series(DELIVER))] == [0, 50]
    assert [point.value for point in history.points(in_rate_series(DELIVER))] == [found.rates[DELIVER].into]


def test_topics_that_do_not_exist_are_reported_as_missing(world: MonitorWorld) -> None:
    look(world)
    assert ProblemKind.TOPIC_MISSING in kinds(world)


@pytest.mark.kills
@pytest.mark.timeout(300)
def test_polling_recovers_after_kafka_was_killed(
    world: MonitorWorld, records: Records, killable_engines: Engines
) -> None:
    """Meanwhile the last result is kept, with its time and the error."""
    records.put(WEBHOOKS_DELIVER, 2)
    seen = look(world)
    killable_engines.kafka.kill()
    world.inspector.kafka.poll_once()
    looked = world.inspector.kafka.result
    assert looked.error
    assert looked.value is seen
    assert looked.at is not None
    assert not looked.is_unavailable(looked.at)
    assert looked.is_unavailable(looked.at + timedelta(seconds=11))
    killable_engines.kafka.start()

    def works_again() -> bool:
        world.inspector.kafka.poll_once()
        return world.inspector.kafka.result.error is None

    eventually(works_again, within=60)
    again = look(world).group_of(DELIVER)
    assert again is not None
    assert again.lag == 2
