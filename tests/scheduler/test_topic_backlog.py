"""The age of the oldest record that its consumer group has not consumed."""

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
    """Some seconds may pass between producing the records and measuring."""
    return pytest.approx(seconds + 10, abs=10)


def due(in_s: float) -> DeliveryDue:
    return DeliveryDue(uuid4(), uuid4(), 2, datetime.fromtimestamp(time() + in_s, UTC))


def test_empty_topics_have_no_backlog(line: Line) -> None:
    """No group has ever committed."""
    assert oldest_s(line) == 0


def test_missing_topic_has_no_backlog(line: Line) -> None:
    """The other topics still count."""
    assert oldest_s(line, PAYMENT_INTENT_EVENTS) == 0
    line.put(WEBHOOKS_SLOW, b"waits", age_s=300)
    assert oldest_s(line, PAYMENT_INTENT_EVENTS, *TOPICS) == about(300)


def test_oldest_record_of_all_topics_and_partitions_counts(line: Line) -> None:
    """Without a committed offset the first record counts."""
    line.put(WEBHOOKS_DELIVER, b"a", b"b", age_s=100)
    line.put(WEBHOOKS_DELIVER, b"c", age_s=900, partition=5)
    line.put(WEBHOOKS_SLOW, b"d", age_s=500)
    assert oldest_s(line) == about(900)


def test_consumed_records_do_not_count(line: Line) -> None:
    """The record at the committed offset is the first that counts; offsets of other groups do not matter."""
    for age_s in (900, 600, 300):
        line.put(WEBHOOKS_DELIVER, b"x", age_s=age_s)
    line.commit(WEBHOOKS_DELIVER, 1)
    assert oldest_s(line) == about(600)
    line.commit(replace(WEBHOOKS_DELIVER, group="somebody.else"), 3)
    assert oldest_s(line) == about(600)
    line.commit(WEBHOOKS_DELIVER, 3)
    assert oldest_s(line) == 0


def test_records_deleted_by_retention_are_skipped(line: Line) -> None:
    """The committed offset is before the first record that is left."""
    for age_s in (900, 800, 700, 600):
        line.put(WEBHOOKS_DELIVER, b"x", age_s=age_s)
    line.commit(WEBHOOKS_DELIVER, 1)
    line.lose_records(WEBHOOKS_DELIVER, before=3)
    assert oldest_s(line) == about(600)
    line.lose_records(WEBHOOKS_DELIVER, before=4)
    assert oldest_s(line) == 0


def test_every_record_of_a_recreated_topic_counts(line: Line, make_topics: MakeTopics) -> None:
    """A consumer of the old topic committed an offset beyond the end: its group will start from the beginning."""
    line.put(WEBHOOKS_DELIVER, *[b"old"] * 7, age_s=5000)
    line.delete(WEBHOOKS_DELIVER)
    eventually(lambda: not line.exists(WEBHOOKS_DELIVER))
    make_topics([WEBHOOKS_DELIVER])
    line.commit(WEBHOOKS_DELIVER, 7)
    assert oldest_s(line) == 0
    line.put(WEBHOOKS_DELIVER, b"new", b"newer", age_s=400)
    assert line.committed(WEBHOOKS_DELIVER) == 7
    assert oldest_s(line) == about(400)


def test_delayed_record_counts_from_its_due_time_on(line: Line) -> None:
    """Not from when it was written: it is on the delay topic to wait."""
    line.put(DELAYED, due(in_s=3600), age_s=7000)
    assert oldest_s(line) == 0
    line.put(DELAYED, due(in_s=-200), age_s=7000, partition=1)
    assert oldest_s(line) == about(200)


def test_age_is_measured_at_the_given_time(line: Line) -> None:
    """The caller passes the time of the database's clock, not this machine's."""
    line.put(DELAYED, due(in_s=3600))
    line.put(WEBHOOKS_DELIVER, b"x", age_s=100)
    backlog = TopicBacklog(line.settings, TOPICS)
    assert backlog.oldest_age_s(time() + 7200) == about(7300)
    assert TopicBacklog(line.settings, [DELAYED]).oldest_age_s(time() + 7200) == about(3600)
    assert backlog.oldest_age_s(time() - 7200) == 0


def test_delayed_record_that_cannot_be_decoded_counts_by_its_age(line: Line) -> None:
    """It has no due time to wait for; it will become a dead letter."""
    line.put(DELAYED, b"{", age_s=300)
    assert oldest_s(line) == about(300)


def test_measuring_does_not_rebalance_the_group(line: Line) -> None:
    """A running consumer keeps its partitions and its committed offset."""
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
def test_measuring_fails_within_seconds_while_kafka_is_unavailable(
    killable_engines: Engines, line: Line, how: str
) -> None:
    """Whether connections are refused or time out; it works again once Kafka is back."""
    line.put(WEBHOOKS_DELIVER, b"x", age_s=100)
    killable_engines.kafka.kill() if how == "killed" else killable_engines.kafka.suspend()
    began = monotonic()
    try:
        with pytest.raises(KafkaUnavailableError, match="the backlog cannot be measured"):
            oldest_s(line)
        assert monotonic() - began < 8
    finally:
        killable_engines.kafka.start() if how == "killed" else killable_engines.kafka.resume()
    # It grew older while Kafka was unavailable.
    assert 100 <= eventually(lambda: _known(line)) < 100 + monotonic() - began + 10


def _known(line: Line) -> float:
    try:
        return oldest_s(line)
    except KafkaUnavailableError:
        return 0
