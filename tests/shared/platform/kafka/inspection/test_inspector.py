"""One look at Kafka tells how things are, whatever happened to topics, groups and brokers."""

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
    """Between the records and the look some seconds may pass."""
    return pytest.approx(seconds + 10, abs=10)


def due(in_s: float) -> DeliveryDue:
    return DeliveryDue(uuid4(), uuid4(), 2, datetime.fromtimestamp(time() + in_s, UTC))


def worker(settings: KafkaSettings, topic: Topic) -> ConsumerLoop:
    assert topic.group is not None
    dead_letters = KafkaDeadLetterProducer(settings)
    return ConsumerLoop(
        settings, topic.group, [topic.name], BatchHandler(Collector()), dead_letters, decode=decode
    )


def test_every_topic_and_group_is_seen_those_that_are_missing_too(kafka_inspector: KafkaInspector) -> None:
    """By their names without the prefix, in the order of their definitions."""
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


def test_records_and_the_oldest_of_them(line: Line, kafka_inspector: KafkaInspector) -> None:
    """Of all partitions, also where nobody consumes; what retention took is gone."""
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


def test_a_group_that_never_committed_has_all_before_it(line: Line, kafka_inspector: KafkaInspector) -> None:
    """And says so."""
    line.put(WEBHOOKS_DELIVER, b"a", b"b", age_s=100)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.high, lag.lag, lag.lag_s) == (None, 2, 2, about(100))


def test_lag_is_what_is_not_done_and_as_old_as_the_oldest_of_it(
    line: Line, kafka_inspector: KafkaInspector
) -> None:
    """Look after look, with the same clients. A commit that does not say when tells no time."""
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


def test_where_retention_took_the_committed_place_the_first_that_is_left_counts(
    line: Line, kafka_inspector: KafkaInspector
) -> None:
    """What the group committed is told as it is."""
    for age_s in (900, 800, 700, 600):
        line.put(WEBHOOKS_DELIVER, b"x", age_s=age_s)
    line.commit(WEBHOOKS_DELIVER, 1)
    line.lose_records(WEBHOOKS_DELIVER, before=3)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.lag, lag.lag_s) == (1, 1, about(600))
    line.lose_records(WEBHOOKS_DELIVER, before=4)
    lag = lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER)
    assert (lag.committed, lag.lag, lag.lag_s) == (1, 0, 0.0)


def test_a_topic_that_was_deleted_is_missing(line: Line, kafka_inspector: KafkaInspector) -> None:
    """And nothing of it is left in line."""
    line.put(WEBHOOKS_DELIVER, b"old", age_s=5000)
    assert lag_in(kafka_inspector.inspect(), WEBHOOKS_DELIVER).lag == 1
    delete_topic(line.settings, WEBHOOKS_DELIVER)
    snapshot = kafka_inspector.inspect()
    assert not topic_in(snapshot, WEBHOOKS_DELIVER).exists
    assert group_in(snapshot, WEBHOOKS_DELIVER).lag == 0


def test_a_topic_deleted_and_made_again_is_another_one(
    line: Line, kafka_inspector: KafkaInspector, make_topics: MakeTopics
) -> None:
    """Nothing that was known of the old one is told of the new one; an offset beyond its end counts for nothing."""
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


def test_in_a_delay_topic_only_what_is_due_is_late(line: Line, kafka_inspector: KafkaInspector) -> None:
    """However long ago it was written; what waits is told, and when it is due."""
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


def test_whose_clock_decides_can_be_said(line: Line, kafka_inspector: KafkaInspector) -> None:
    """The database's, for what is due."""
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
def test_a_hostile_record_spoils_no_look(line: Line, kafka_inspector: KafkaInspector, value: bytes) -> None:
    """It waits for nothing but the dead letters, or for a time that is long over."""
    line.put(DELAYED, value, age_s=300)
    line.put(WEBHOOKS_DELIVER, value, age_s=100)
    snapshot = kafka_inspector.inspect()
    assert group_in(snapshot, DELAYED).lag_s >= 300
    assert lag_in(snapshot, WEBHOOKS_DELIVER).lag_s == about(100)


def test_who_consumes_is_seen_and_when_it_committed(line: Line, kafka_inspector: KafkaInspector) -> None:
    """And the look itself is no member, and takes nothing from those who are."""
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


def test_a_group_that_gets_on_during_the_look_is_not_taken_for_one_beyond_the_end(
    line: Line, kafka_inspector: KafkaInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would seem to begin anew, with all of its topic before it."""
    line.put(WEBHOOKS_SLOW, b"x")
    line.commit(WEBHOOKS_SLOW, 1)

    def finish_more(*asked: Any) -> Any:
        offsets = fetch_partition_offsets(*asked)
        line.put(WEBHOOKS_SLOW, b"y", b"z")
        line.commit(WEBHOOKS_SLOW, 3)
        return offsets

    monkeypatch.setattr(inspector, "fetch_partition_offsets", finish_more)
    assert lag_in(kafka_inspector.inspect(), WEBHOOKS_SLOW).lag == 0


def test_a_head_that_is_known_is_not_read_again(
    line: Line, kafka_inspector: KafkaInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what has moved since costs anything."""
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
    assert read == [2, 1]  # a partition at a time: where 0 begins and where its group is, and where 1 begins
    again = kafka_inspector.inspect()
    assert read == [2, 1]
    assert lag_in(again, WEBHOOKS_SLOW).head_at == lag_in(first, WEBHOOKS_SLOW).head_at
    line.commit(WEBHOOKS_SLOW, 2)
    kafka_inspector.inspect()
    assert read == [2, 1, 1]


@pytest.mark.kills
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_with_kafka_away_it_says_so_within_seconds_and_sees_again_after(
    killable_engines: Engines, line: Line, kafka_inspector: KafkaInspector, how: str
) -> None:
    """With the same clients, whether connections are refused or nobody answers; and it can be closed meanwhile."""
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
def test_a_restart_under_a_group_is_not_taken_for_its_end(
    killable_engines: Engines, line: Line, kafka_inspector: KafkaInspector
) -> None:
    """A broker that has just started knows no groups yet: then there is no answer, rather than a wrong one."""
    line.put(WEBHOOKS_SLOW, *[event(n) for n in range(9)])
    with running(worker(line.settings, WEBHOOKS_SLOW)):
        eventually(lambda: _caught_up(kafka_inspector, WEBHOOKS_SLOW))
        killable_engines.kafka.kill()
        coming = Thread(target=killable_engines.kafka.start)
        coming.start()
        snapshot = eventually(lambda: _seen(kafka_inspector), within=90)
        coming.join()
        assert snapshot is not None
        lag = lag_in(snapshot, WEBHOOKS_SLOW)
        assert (lag.committed, lag.lag, lag.committed_at is not None) == (9, 0, True)
        # Its name of before the restart may be listed beside it until its session is over.
        assert len(group_in(snapshot, WEBHOOKS_SLOW).members) in {1, 2}


@pytest.mark.kills
def test_clients_that_find_no_broker_for_long_are_made_anew(
    killable_engines: Engines, line: Line, kafka_inspector: KafkaInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's may have lost all brokers for ever."""
    monkeypatch.setattr(inspector, "_RECONNECT_AFTER_S", 0.0)
    old = kafka_inspector._admin
    killable_engines.kafka.kill()
    assert _seen(kafka_inspector) is None
    assert _seen(kafka_inspector) is None
    killable_engines.kafka.start()
    assert eventually(lambda: _seen(kafka_inspector))
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
