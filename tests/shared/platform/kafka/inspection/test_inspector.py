"""Snapshots of topics and groups are correct after retention, recreated topics and broker failures."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Thread
from time import monotonic, time
from typing import Any
from uuid import uuid4

import pytest

from shared.domain.dead_letters.producer import KafkaDeadLetterProducer
from shared.domain.messages import DeliveryDue, decode, encode
from shared.domain.topics import ALL_TOPICS, DEAD_LETTERS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.inspection import inspector, topics
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.inspection.snapshot import (
    GroupSnapshot,
    KafkaSnapshot,
    PartitionLag,
    TopicSnapshot,
)
from shared.platform.kafka.inspection.topics import fetch_partition_offsets
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from stack.engines import Engines
from tests.scheduler.deliveries import Line
from tests.shared.platform.kafka.harness import Collector, event, running
from tests.topics import delete_topic
from tests.waiting import eventually

DELAYED = WEBHOOKS_DELAY[0]
TOPICS = (WEBHOOKS_DELIVER, WEBHOOKS_SLOW, DELAYED, DEAD_LETTERS)

MakeTopics = Callable[[Sequence[Topic]], None]


@pytest.fixture
def line(kafka_settings: KafkaSettings, make_topics: MakeTopics) -> Line:
    make_topics(TOPICS)
    return Line(kafka_settings)


@pytest.fixture
def kafka_inspector(line: Line) -> Iterator[KafkaInspector]:
    with closing(KafkaInspector(line.settings, ALL_TOPICS)) as made:
        yield made


def topic_in(snapshot: KafkaSnapshot, topic: Topic) -> TopicSnapshot:
    return next(found for found in snapshot.topics if found.name == topic.name)


def group_in(snapshot: KafkaSnapshot, topic: Topic) -> GroupSnapshot:
    return next(found for found in snapshot.groups if found.topic == topic.name)


def lag_in(snapshot: KafkaSnapshot, topic: Topic, partition: int = 0) -> PartitionLag:
    return group_in(snapshot, topic).partitions[partition]


def about(seconds: float) -> object:
    """Some seconds may pass between producing the records and the snapshot."""
    return pytest.approx(seconds + 10, abs=10)


def due(in_s: float) -> DeliveryDue:
    return DeliveryDue(uuid4(), uuid4(), 2, datetime.fromtimestamp(time() + in_s, UTC))


def worker(settings: KafkaSettings, topic: Topic) -> ConsumerLoop:
    assert topic.group is not None
    dead_letters = KafkaDeadLetterProducer(settings)
    return ConsumerLoop(
        settings, topic.group, [topic.name], BatchHandler(Collector()), dead_letters, decode=decode
    )


def test_every_topic_and_group_is_listed_even_if_missing(kafka_inspector: KafkaInspector) -> None:
    """By name without the prefix, in the order of their definitions."""
    snapshot = kafka_inspector.inspect()
    assert [found.name for found in snapshot.topics] == [topic.name for topic in ALL_TOPICS]
    assert [found.name for found in snapshot.groups] == [topic.group for topic in ALL_TOPICS if topic.group]
    assert {found.name for found in snapshot.topics if found.exists} == {topic.name for topic in TOPICS}
    missing = topic_in(snapshot, WEBHOOKS_DELAY[3])
    assert (missing.partitions, missing.records, missing.oldest_at) == ((), 0, None)
    alone = group_in(snapshot, WEBHOOKS_DELAY[3])
    assert (alone.state, alone.members, alone.partitions, alone.lag, alone.lag_s) == ("dead", (), (), 0, 0)
    assert snapshot.brokers == 1


def test_an_empty_topic_has_no_lag(kafka_inspector: KafkaInspector) -> None:
    """No group has ever committed."""
    snapshot = kafka_inspector.inspect()
    assert len(topic_in(snapshot, WEBHOOKS_DELIVER).partitions) == WEBHOOKS_DELIVER.partitions
    group = group_in(snapshot, WEBHOOKS_DELIVER)
    assert (group.lag, group.lag_s, group.committed_at, group.waiting, group.next_due_at) == (
        0,
        0.0,
        None,
        0,
        None,
    )


def test_topic_reports_its_record_count_and_oldest_record(
    line: Line, kafka_inspector: KafkaInspector
) -> None:
    """Over all partitions, also without a consumer; records deleted by retention do not count."""
    line.put(DEAD_LETTERS, b"a", age_s=500)
    line.put(WEBHOOKS_DELIVER, b"a", age_s=900)
    line.put(WEBHOOKS_DELIVER, b"b", b"c", age_s=300)
    line.put(WEBHOOKS_DELIVER, b"d", age_s=200, partition=4)
    snapshot = kafka_inspector.inspect()
    found = topic_in(snapshot, WEBHOOKS_DELIVER)
    assert (found.records, found.partitions[0].records, found.partitions[4].records) == (4, 3, 1)
    assert found.oldest_at is not None
    assert (snapshot.at - found.oldest_at).total_seconds() == about(900)
    dead = topic_in(snapshot, DEAD_LETTERS)
    assert dead.oldest_at is not None
    assert (snapshot.at - dead.oldest_at).total_seconds() == about(500)
    line.lose_records(WEBHOOKS_DELIVER, before=1)
    snapshot = kafka_inspector.inspect()
    found = topic_in(snapshot, WEBHOOKS_DELIVER)
    assert found.oldest_at is not None
    assert (found.records, (snapshot.at - found.oldest_at).total_seconds()) == (3, about(300))


def test_all_records_are_lag_for_a_group_that_never_committed(
    line: Line, kafka_inspector: KafkaInspector
) -> None:
    """`committed` is None."""
    line.put(WEBHOOKS_DELIVER, b"a", b"b", age_s=100)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.high, lag.lag, lag.lag_s) == (None, 2, 2, about(100))


def test_lag_counts_unfinished_records_and_is_as_old_as_the_oldest(
    line: Line, kafka_inspector: KafkaInspector
) -> None:
    """In consecutive snapshots with the same clients. A commit without a timestamp has no time."""
    for age_s in (900, 600, 300):
        line.put(WEBHOOKS_DELIVER, b"x", age_s=age_s)
    line.put(WEBHOOKS_DELIVER, b"y", age_s=50, partition=3)
    for done, lag, lag_s in ((1, 2, 600), (2, 1, 300), (3, 0, 0)):
        line.commit(WEBHOOKS_DELIVER, done)
        snapshot = kafka_inspector.inspect()
        found = lag_in(snapshot, WEBHOOKS_DELIVER)
        assert (found.committed, found.lag, found.committed_at) == (done, lag, None)
        assert found.lag_s == (about(lag_s) if lag else 0)
        group = group_in(snapshot, WEBHOOKS_DELIVER)
        assert (group.lag, group.lag_s) == (lag + 1, about(max(lag_s, 50)))
        assert group.state == "empty"


def test_lag_starts_at_the_first_record_if_retention_passed_the_committed_offset(
    line: Line, kafka_inspector: KafkaInspector
) -> None:
    """The committed offset is reported unchanged."""
    for age_s in (900, 800, 700, 600):
        line.put(WEBHOOKS_DELIVER, b"x", age_s=age_s)
    line.commit(WEBHOOKS_DELIVER, 1)
    line.lose_records(WEBHOOKS_DELIVER, before=3)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.lag, lag.lag_s) == (1, 1, about(600))
    line.lose_records(WEBHOOKS_DELIVER, before=4)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.lag, lag.lag_s) == (1, 0, 0.0)


def test_deleted_topic_is_reported_missing_without_lag(line: Line, kafka_inspector: KafkaInspector) -> None:
    line.put(WEBHOOKS_DELIVER, b"old", age_s=5000)
    assert lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER).lag == 1
    delete_topic(line.settings, WEBHOOKS_DELIVER)
    snapshot = kafka_inspector.inspect()
    assert not topic_in(snapshot, WEBHOOKS_DELIVER).exists
    assert group_in(snapshot, WEBHOOKS_DELIVER).lag == 0


def test_recreated_topic_is_a_new_one(
    line: Line, kafka_inspector: KafkaInspector, make_topics: MakeTopics
) -> None:
    """Nothing cached from the old topic is reported for the new one; an offset beyond its end is ignored."""
    line.put(WEBHOOKS_DELIVER, *[b"old"] * 7, age_s=5000)
    line.commit(WEBHOOKS_DELIVER, 1)
    assert lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER).lag_s == about(5000)
    delete_topic(line.settings, WEBHOOKS_DELIVER)
    make_topics([WEBHOOKS_DELIVER])
    line.put(WEBHOOKS_DELIVER, b"new", b"newer", age_s=400)
    line.commit(WEBHOOKS_DELIVER, 1)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.lag, lag.lag_s) == (1, 1, about(400))
    line.commit(WEBHOOKS_DELIVER, 7)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.lag, lag.lag_s) == (7, 2, about(400))


def test_lag_of_a_delay_topic_counts_from_the_due_time(line: Line, kafka_inspector: KafkaInspector) -> None:
    """Not from when a record was written. Waiting records and the next due time are reported."""
    line.put(DELAYED, due(in_s=3600), due(in_s=3700), age_s=7000)
    group = group_in(kafka_inspector.inspect(), DELAYED)
    assert (group.lag, group.waiting, group.lag_s) == (2, 2, 0.0)
    assert group.next_due_at is not None
    assert (group.next_due_at - datetime.now(UTC)).total_seconds() == pytest.approx(3590, abs=10)
    line.put(DELAYED, due(in_s=-200), age_s=7000, partition=1)
    group = group_in(kafka_inspector.inspect(), DELAYED)
    assert (group.waiting, group.lag_s) == (3, about(200))
    assert [lag.lag_s > 0 for lag in group.partitions] == [False, True]
    assert group_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER).waiting == 0


def test_inspection_uses_the_given_time(line: Line, kafka_inspector: KafkaInspector) -> None:
    """The caller passes the time of the database's clock, which decides what is due."""
    line.put(DELAYED, due(in_s=3600))
    now = datetime.now(UTC) + timedelta(hours=2)
    snapshot = kafka_inspector.inspect(now)
    assert (snapshot.at, group_in(snapshot, DELAYED).lag_s) == (now, about(3600))


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b"",
        b"\xff" * 3000,
        b'{"kind":"resend_requested.v1"}',
        encode(DeliveryDue(uuid4(), uuid4(), 2, datetime(2020, 1, 1))),  # noqa: DTZ001  a time without an offset
    ],
)
def test_malformed_record_does_not_break_the_snapshot(
    line: Line, kafka_inspector: KafkaInspector, value: bytes
) -> None:
    """It counts by its age or as due long ago."""
    line.put(DELAYED, value, age_s=300)
    line.put(WEBHOOKS_DELIVER, value, age_s=100)
    snapshot = kafka_inspector.inspect()
    assert group_in(snapshot, DELAYED).lag_s >= 300
    assert lag_in(snapshot, WEBHOOKS_DELIVER).lag_s == about(100)


def test_members_and_commit_times_are_reported(line: Line, kafka_inspector: KafkaInspector) -> None:
    """The inspector itself is not a member, and takes no partitions from the members."""
    started = datetime.now(UTC)
    line.put(WEBHOOKS_SLOW, *[event(n) for n in range(9)], age_s=60)
    with running(worker(line.settings, WEBHOOKS_SLOW)):
        group = eventually(lambda: _caught_up(kafka_inspector, WEBHOOKS_SLOW))
        assert group is not None
        assert group.state == "stable"
        (member,) = group.members
        assert member.partitions == (0, 1, 2)
        assert member.client_id == "mizan-webhooks.slow"
        assert member.host == "127.0.0.1"
        assert group.committed_at is not None
        assert started <= group.committed_at <= datetime.now(UTC)
        assert [lag.committed_at is None for lag in group.partitions] == [False, True, True]
    assert eventually(lambda: group_in(kafka_inspector.inspect(), WEBHOOKS_SLOW).state == "empty")
    assert group_in(kafka_inspector.inspect(), WEBHOOKS_SLOW).committed_at is not None


def test_commit_during_the_inspection_is_not_beyond_the_end(
    line: Line, kafka_inspector: KafkaInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the group would seem to start over, with the whole topic as lag."""
    line.put(WEBHOOKS_SLOW, b"x")
    line.commit(WEBHOOKS_SLOW, 1)

    def finish_more(*asked: Any) -> Any:
        offsets = fetch_partition_offsets(*asked)
        line.put(WEBHOOKS_SLOW, b"y", b"z")
        line.commit(WEBHOOKS_SLOW, 3)
        return offsets

    monkeypatch.setattr(inspector, "fetch_partition_offsets", finish_more)
    assert lag_in(kafka_inspector.inspect(), WEBHOOKS_SLOW).lag == 0


def test_known_head_record_is_not_read_again(
    line: Line, kafka_inspector: KafkaInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only offsets that have moved are read."""
    read: list[int] = []
    first_records = topics.read_first_records

    def noting(consumer: object, places: Sequence[object], deadline: object) -> object:
        read.append(len(places))
        return first_records(consumer, places, deadline)  # type: ignore[arg-type]

    monkeypatch.setattr(topics, "read_first_records", noting)
    for partition in (0, 1):
        line.put(WEBHOOKS_SLOW, b"a", b"b", b"c", age_s=100, partition=partition)
    line.commit(WEBHOOKS_SLOW, 1)
    first = kafka_inspector.inspect()
    assert read == [2, 1]  # per partition: the first and the committed record of 0, the first of 1
    again = kafka_inspector.inspect()
    assert read == [2, 1]
    assert lag_in(again, WEBHOOKS_SLOW).head_at == lag_in(first, WEBHOOKS_SLOW).head_at
    line.commit(WEBHOOKS_SLOW, 2)
    kafka_inspector.inspect()
    assert read == [2, 1, 1]


@pytest.mark.kills
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_inspection_fails_within_seconds_during_an_outage_and_recovers(
    killable_engines: Engines, line: Line, kafka_inspector: KafkaInspector, how: str
) -> None:
    """With the same clients, whether connections are refused or time out; it can be closed during the outage."""
    line.put(WEBHOOKS_SLOW, b"x", age_s=100)
    assert _seen(kafka_inspector) is not None
    killable_engines.kafka.kill() if how == "killed" else killable_engines.kafka.suspend()
    try:
        KafkaInspector(line.settings, ALL_TOPICS).close()
        for _ in range(2):
            began = monotonic()
            with pytest.raises(KafkaUnavailableError, match="cannot be inspected"):
                kafka_inspector.inspect()
            assert monotonic() - began < 8
    finally:
        killable_engines.kafka.start() if how == "killed" else killable_engines.kafka.resume()
    snapshot = eventually(lambda: _seen(kafka_inspector))
    assert snapshot is not None
    assert lag_in(snapshot, WEBHOOKS_SLOW).lag == 1


@pytest.mark.kills
def test_group_is_reported_correctly_after_a_broker_restart(
    killable_engines: Engines, line: Line, kafka_inspector: KafkaInspector
) -> None:
    """A broker that has just started knows no groups yet: then inspecting fails, rather than report a wrong result."""
    line.put(WEBHOOKS_SLOW, *[event(n) for n in range(9)])
    with running(worker(line.settings, WEBHOOKS_SLOW)):
        eventually(lambda: _caught_up(kafka_inspector, WEBHOOKS_SLOW))
        killable_engines.kafka.kill()
        coming = Thread(target=killable_engines.kafka.start)
        coming.start()
        snapshot = eventually(lambda: _seen(kafka_inspector), within=90)
        coming.join()
        lag = lag_in(snapshot, WEBHOOKS_SLOW)
        assert (lag.committed, lag.lag, lag.committed_at is not None) == (9, 0, True)
        # Its old member id may be listed beside the new one until its session times out.
        assert len(group_in(snapshot, WEBHOOKS_SLOW).members) in {1, 2}


@pytest.mark.kills
def test_clients_without_a_broker_for_too_long_are_replaced(
    killable_engines: Engines, line: Line, kafka_inspector: KafkaInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka may have lost all brokers for good."""
    monkeypatch.setattr(inspector, "_RECONNECT_AFTER_S", 0.0)
    old = kafka_inspector._admin
    killable_engines.kafka.kill()
    assert _seen(kafka_inspector) is None
    assert _seen(kafka_inspector) is None
    killable_engines.kafka.start()
    eventually(lambda: _seen(kafka_inspector))
    assert kafka_inspector._admin is not old


def _seen(kafka_inspector: KafkaInspector) -> KafkaSnapshot | None:
    try:
        return kafka_inspector.inspect()
    except KafkaUnavailableError:
        return None


def _caught_up(kafka_inspector: KafkaInspector, topic: Topic) -> GroupSnapshot | None:
    group = group_in(kafka_inspector.inspect(), topic)
    done = sum(lag.committed or 0 for lag in group.partitions)
    return group if done and not group.lag else None
