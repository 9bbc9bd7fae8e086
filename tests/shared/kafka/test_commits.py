"""Commits: the last step, sent again when it fails."""

from types import SimpleNamespace
from typing import cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from shared.kafka.commits import Commits
from shared.kafka.lanes import Lanes
from shared.kafka.tasks import Record, Task


def test_one_that_failed_is_sent_again_though_a_new_record_was_read() -> None:
    """Such as one that is held for hours: nothing else would be committed until then."""
    lanes = Lanes()
    lanes.open([TopicPartition("t", 0)])
    lane = lanes.of("t", 0)
    assert lane is not None
    sent: list[int] = []

    def commit(offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        sent.append(offsets[0].offset)

    consumer = cast("Consumer", SimpleNamespace(commit=commit))
    commits = Commits(lanes)
    done = Task(lane, Record("t", 0, 5, None, None, 0.0))
    lane.add(done)
    done.done()
    commits.commit_when_due(consumer)
    commits.reported(KafkaError(KafkaError.REBALANCE_IN_PROGRESS), [TopicPartition("t", 0, 6)])
    lane.add(Task(lane, Record("t", 0, 6, None, None, 0.0)))
    commits._next_at = 0.0
    commits.commit_when_due(consumer)
    assert sent == [6, 6]
