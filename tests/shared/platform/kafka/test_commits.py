"""Commits: the last step, sent again when it fails, with a note of when it was."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from shared.domain.messages import decode
from shared.platform.kafka.assignment import Assignment, OffsetCommitter, parse_commit_time
from shared.platform.kafka.records import Record, Task


def test_one_that_failed_is_sent_again_though_a_new_record_was_read() -> None:
    """Such as one that is held for hours: nothing else would be committed until then."""
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


def test_each_says_when_it_was_made() -> None:
    """Beside the offset, where everybody who asks for it finds it."""
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
def test_what_others_noted_beside_an_offset_tells_no_time(note: str | None) -> None:
    """Nor does nothing, as older versions left it."""
    assert parse_commit_time(note) is None
