"""Commits are retried when they fail, and have a timestamp as metadata."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from shared.domain.messages import decode
from shared.platform.kafka.assignment import Assignment, OffsetCommitter, parse_commit_time
from shared.platform.kafka.records import Record, Task


def test_failed_commit_is_retried_though_a_new_record_was_read() -> None:
    """The new record may be held for hours: nothing else would be committed until then."""
    assignment = Assignment()
    assignment.add([TopicPartition("t", 0)])
    partition = assignment.get("t", 0)
    assert partition is not None
    sent: list[int] = []

    def commit(offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        sent.append(offsets[0].offset)

    consumer = cast("Consumer", SimpleNamespace(commit=commit))
    committer = OffsetCommitter(assignment)
    done = Task(partition, Record("t", 0, 5, None, None, 0.0), decode)
    partition.add(done)
    done.done()
    committer.commit_when_due(consumer)
    committer.on_commit(KafkaError(KafkaError.REBALANCE_IN_PROGRESS), [TopicPartition("t", 0, 6)])
    partition.add(Task(partition, Record("t", 0, 6, None, None, 0.0), decode))
    committer._next_at = 0.0
    committer.commit_when_due(consumer)
    assert sent == [6, 6]


def test_commit_has_its_time_as_metadata() -> None:
    """So that every reader of the offset sees the time."""
    assignment = Assignment()
    assignment.add([TopicPartition("t", 0)])
    partition = assignment.get("t", 0)
    assert partition is not None
    partition.add(Task(partition, Record("t", 0, 5, None, None, 0.0), decode))
    notes: list[str | None] = []

    def commit(offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        notes.extend(tp.metadata for tp in offsets)
        return offsets

    before = datetime.now(UTC)
    OffsetCommitter(assignment).commit_now(cast("Consumer", SimpleNamespace(commit=commit)), [partition])
    (told,) = (parse_commit_time(note) for note in notes)
    assert told is not None
    assert abs((told - before).total_seconds()) < 60


@pytest.mark.parametrize(
    "note", [None, "", "by hand", "1760000000", "2026-05-01T12:00:00", "\x00", "9" * 4000]
)
def test_other_commit_metadata_has_no_time(note: str | None) -> None:
    """Nor has missing metadata, as older versions committed it."""
    assert parse_commit_time(note) is None
