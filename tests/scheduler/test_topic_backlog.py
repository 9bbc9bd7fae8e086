"""The age of the oldest record that nobody has consumed, as the group that consumes it would find it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic, time
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

from services.scheduler.topic_backlog import TopicBacklog
from shared.domain.messages import DeliveryDue
from shared.domain.topics import PAYMENT_INTENT_EVENTS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from stack.engines import Engines
from tests.scheduler.deliveries import Line
from tests.waiting import eventually

TOPICS = (WEBHOOKS_DELIVER, WEBHOOKS_SLOW, *WEBHOOKS_DELAY[:2])
DELAYED = WEBHOOKS_DELAY[0]

MakeTopics = Callable[[Sequence[Topic]], None]


@pytest.fixture
def line(kafka_settings: KafkaSettings, make_topics: MakeTopics) -> Line:
    make_topics(TOPICS)
    return Line(kafka_settings)


def oldest_s(line: Line, *topics: Topic) -> float:
    return TopicBacklog(line.settings, topics or TOPICS).oldest_age_s(time())


def about(seconds: float) -> object:
    """Between the records and the look some seconds may pass."""
    return pytest.approx(seconds + 10, abs=10)


def due(in_s: float) -> DeliveryDue:
    return DeliveryDue(uuid4(), uuid4(), 2, datetime.fromtimestamp(time() + in_s, UTC))


def test_where_nothing_is_there_is_no_backlog(line: Line) -> None:
    """Every topic is empty, and no group has ever committed."""
    assert oldest_s(line) == 0


def test_a_topic_that_does_not_exist_has_no_backlog(line: Line) -> None:
    """The others count all the same."""
    assert oldest_s(line, PAYMENT_INTENT_EVENTS) == 0
    line.put(WEBHOOKS_SLOW, b"waits", age_s=300)
    assert oldest_s(line, PAYMENT_INTENT_EVENTS, *TOPICS) == about(300)


def test_the_oldest_of_all_topics_and_partitions_counts(line: Line) -> None:
    """Where nothing was committed, from the first record on."""
    line.put(WEBHOOKS_DELIVER, b"a", b"b", age_s=100)
    line.put(WEBHOOKS_DELIVER, b"c", age_s=900, partition=5)
    line.put(WEBHOOKS_SLOW, b"d", age_s=500)
    assert oldest_s(line) == about(900)


def test_what_is_consumed_does_not_count(line: Line) -> None:
    """The record at the committed offset is the first that does; other groups' offsets say nothing."""
    for age_s in (900, 600, 300):
        line.put(WEBHOOKS_DELIVER, b"x", age_s=age_s)
    line.commit(WEBHOOKS_DELIVER, 1)
    assert oldest_s(line) == about(600)
    line.commit(replace(WEBHOOKS_DELIVER, group="somebody.else"), 3)
    assert oldest_s(line) == about(600)
    line.commit(WEBHOOKS_DELIVER, 3)
    assert oldest_s(line) == 0


def test_a_record_that_retention_took_is_skipped(line: Line) -> None:
    """The committed offset lies before the first record that is left."""
    for age_s in (900, 800, 700, 600):
        line.put(WEBHOOKS_DELIVER, b"x", age_s=age_s)
    line.commit(WEBHOOKS_DELIVER, 1)
    line.lose_records(WEBHOOKS_DELIVER, before=3)
    assert oldest_s(line) == about(600)
    line.lose_records(WEBHOOKS_DELIVER, before=4)
    assert oldest_s(line) == 0


def test_in_a_topic_deleted_and_made_again_all_that_is_there_counts(
    line: Line, make_topics: MakeTopics
) -> None:
    """A consumer that had not noticed committed an offset beyond the end: its group will begin anew."""
    line.put(WEBHOOKS_DELIVER, *[b"old"] * 7, age_s=5000)
    line.delete(WEBHOOKS_DELIVER)
    eventually(lambda: not line.exists(WEBHOOKS_DELIVER))
    make_topics([WEBHOOKS_DELIVER])
    line.commit(WEBHOOKS_DELIVER, 7)
    assert oldest_s(line) == 0
    line.put(WEBHOOKS_DELIVER, b"new", b"newer", age_s=400)
    assert line.committed(WEBHOOKS_DELIVER) == 7
    assert oldest_s(line) == about(400)


def test_a_delayed_record_counts_from_its_time_on(line: Line) -> None:
    """However long ago it was written: waiting is what it is there for."""
    line.put(DELAYED, due(in_s=3600), age_s=7000)
    assert oldest_s(line) == 0
    line.put(DELAYED, due(in_s=-200), age_s=7000, partition=1)
    assert oldest_s(line) == about(200)


def test_by_the_time_that_is_asked_for(line: Line) -> None:
    """The database's clock decides, not this machine's."""
    line.put(DELAYED, due(in_s=3600))
    line.put(WEBHOOKS_DELIVER, b"x", age_s=100)
    backlog = TopicBacklog(line.settings, TOPICS)
    assert backlog.oldest_age_s(time() + 7200) == about(7300)
    assert TopicBacklog(line.settings, [DELAYED]).oldest_age_s(time() + 7200) == about(3600)
    assert backlog.oldest_age_s(time() - 7200) == 0


def test_a_delayed_record_that_cannot_be_read_counts_by_its_age(line: Line) -> None:
    """It waits for nothing but the dead letters."""
    line.put(DELAYED, b"{", age_s=300)
    assert oldest_s(line) == about(300)


def test_nobody_is_disturbed(line: Line) -> None:
    """A group at work keeps its partitions, and what it has committed."""
    name, rebalanced = clients.topic_name(line.settings, WEBHOOKS_DELIVER.name), []

    def note(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
        rebalanced.append(len(partitions))

    assert WEBHOOKS_DELIVER.group is not None
    member = clients.consumer(line.settings, WEBHOOKS_DELIVER.group)
    member.subscribe([name], on_assign=note, on_revoke=note, on_lost=note)
    eventually(lambda: member.poll(0.1) or rebalanced)
    line.put(WEBHOOKS_DELIVER, b"x", b"y", age_s=100)
    member.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=False)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            measuring = pool.submit(oldest_s, line)
            eventually(lambda: member.poll(0.1) is None and measuring.done())  # noqa: B023  called at once
            assert measuring.result() == about(100)
    assert rebalanced == [WEBHOOKS_DELIVER.partitions]
    assert line.committed(WEBHOOKS_DELIVER) == 1
    member.close()


@pytest.mark.kills
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_with_kafka_away_it_says_so_within_seconds(killable_engines: Engines, line: Line, how: str) -> None:
    """Whether connections are refused or nobody answers; and it knows again once Kafka is back."""
    line.put(WEBHOOKS_DELIVER, b"x", age_s=100)
    killable_engines.kafka.kill() if how == "killed" else killable_engines.kafka.suspend()
    began = monotonic()
    try:
        with pytest.raises(KafkaUnavailableError, match="the backlog cannot be measured"):
            oldest_s(line)
        assert monotonic() - began < 8
    finally:
        killable_engines.kafka.start() if how == "killed" else killable_engines.kafka.resume()
    # It grew older while Kafka was away and came back.
    assert 100 <= eventually(lambda: _known(line)) < 100 + monotonic() - began + 10


def _known(line: Line) -> float:
    try:
        return oldest_s(line)
    except KafkaUnavailableError:
        return 0
