"""The partitions assigned to this consumer: hands out batches, pauses partitions that have read far ahead, and commits.

A commit is always the last step: up to where each partition is finished without a gap.
"""

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from math import inf
from time import monotonic, time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from shared.platform.kafka.records import AssignedPartition, Task

# Far apart, because a pause makes the client throw away what it has fetched ahead.
_PAUSE_AT = 4000
_RESUME_AT = 1000
# How far a partition may run ahead of its oldest unfinished record, such as a webhook without a response for ten
# seconds. After a crash, up to this many records are processed again.
_RUN_AHEAD = 100_000
_COMMIT_EVERY_S = 0.5
_UNKNOWN_OFFSET = -1
"""No real offset, so it differs from whatever is to be committed. None would mean that nothing was read."""

_log = logging.getLogger(__name__)


class Assignment:
    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], AssignedPartition] = {}

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._partitions[tp.topic, tp.partition] = AssignedPartition(tp.topic, tp.partition)

    def remove(self, partitions: Iterable[TopicPartition]) -> list[AssignedPartition]:
        """Remove revoked partitions with their backlogs, which the next owner reads again. Return them."""
        found = [self._partitions.pop((tp.topic, tp.partition), None) for tp in partitions]
        removed = [partition for partition in found if partition is not None]
        for partition in removed:
            partition.revoked = True
        return removed

    def get(self, topic: str, partition: int) -> AssignedPartition | None:
        return self._partitions.get((topic, partition))

    def all(self) -> list[AssignedPartition]:
        return list(self._partitions.values())

    def next_batch(self, limit: int) -> list[Task]:
        """Take up to `limit` tasks that are ready: in order within a partition, the partitions in turn."""
        batch: list[Task] = []
        now = time()
        for key, partition in list(self._partitions.items()):
            taken, backlog = len(batch), partition.backlog
            # Computed once: handing out does not change it.
            last = _last_allowed_offset(partition)
            while (
                backlog
                and len(batch) < limit
                and backlog[0].held_until <= now
                and backlog[0].record.offset <= last
            ):
                batch.append(backlog.popleft())
            if len(batch) > taken:
                self._partitions[key] = self._partitions.pop(key)  # the next batch starts with another one
        return batch

    def requeue(self, tasks: Iterable[Task]) -> None:
        """Put tasks back into the backlogs of their partitions, by offset. Tasks of revoked partitions are dropped."""
        for partition, group in groupby(tasks, key=lambda task: task.partition):
            returned = list(group)
            if partition.revoked:
                continue
            backlog = partition.backlog
            if backlog and returned[-1].record.offset > backlog[0].record.offset:
                partition.backlog = deque(sorted([*returned, *backlog], key=lambda task: task.record.offset))
            else:
                backlog.extendleft(reversed(returned))

    def take_requeued(self) -> list[tuple[Task, Exception | None]]:
        """Collect the tasks that the handler requeued, each with its error."""
        requeued: list[tuple[Task, Exception | None]] = []
        for partition in self._partitions.values():
            if partition.requeued:
                requeued.extend(sorted(partition.requeued, key=lambda pair: pair[0].record.offset))
                partition.requeued.clear()
        return requeued

    def next_ready_at(self) -> float:
        """When the next waiting record can be handed out; infinite when none waits."""
        return min(
            (
                partition.ready_at
                for partition in self._partitions.values()
                if partition.backlog and partition.backlog[0].record.offset <= _last_allowed_offset(partition)
            ),
            default=inf,
        )

    def ready_count(self) -> int:
        """How many records wait only for the handler."""
        now = time()
        return sum(
            len(partition.backlog) for partition in self._partitions.values() if partition.ready_at <= now
        )

    def set_pauses(self, consumer: Consumer) -> None:
        """Pause partitions whose backlog is long, and resume those whose backlog has become short."""
        to_pause: list[AssignedPartition] = []
        to_resume: list[AssignedPartition] = []
        for partition in self._partitions.values():
            pause = len(partition.backlog) >= (_RESUME_AT if partition.paused else _PAUSE_AT)
            if pause != partition.paused:
                (to_pause if pause else to_resume).append(partition)
                partition.paused = pause
        if to_pause:
            consumer.pause(topic_partitions(to_pause))
        if to_resume:
            consumer.resume(topic_partitions(to_resume))


class OffsetCommitter:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._next_at = 0.0

    def commit_when_due(self, consumer: Consumer) -> None:
        """Twice a second, commit in the background what has changed."""
        if monotonic() < self._next_at:
            return
        self._next_at = monotonic() + _COMMIT_EVERY_S
        behind = [each for each in self._assignment.all() if each.position not in (None, each.committed)]
        if behind:
            consumer.commit(offsets=_offsets(behind), asynchronous=True)
            for partition in behind:
                partition.committed = partition.position

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Note the result of a commit. A failed one, as happens during a rebalance, is sent again."""
        for each in partitions:
            partition = self._assignment.get(each.topic, each.partition)
            if partition is not None and (error is not None or each.error is not None):
                partition.committed = _UNKNOWN_OFFSET

    def commit_now(self, consumer: Consumer, partitions: Sequence[AssignedPartition]) -> bool:
        """Commit before partitions are revoked, and wait for the result. Return whether it succeeded.

        If it did not, the next owner processes some records again.
        """
        started = [partition for partition in partitions if partition.position is not None]
        if not started:
            return True
        try:
            committed = consumer.commit(offsets=_offsets(started), asynchronous=False)
        except KafkaException as error:
            _log.warning("offsets could not be committed: %s", error)
            return False
        return not any(partition.error for partition in committed or [])


def topic_partitions(partitions: Sequence[AssignedPartition]) -> list[TopicPartition]:
    return [TopicPartition(partition.topic, partition.partition) for partition in partitions]


def parse_commit_time(metadata: str | None) -> datetime | None:
    """Return when a commit was made, as its metadata says; None where they do not."""
    try:
        at = datetime.fromisoformat(metadata or "")
    except ValueError:
        return None
    return at if at.tzinfo else None


def _offsets(partitions: Sequence[AssignedPartition]) -> list[TopicPartition]:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return [
        TopicPartition(each.topic, each.partition, each.position or 0, metadata=now) for each in partitions
    ]


def _last_allowed_offset(partition: AssignedPartition) -> float:
    """The last offset that may be handed out now."""
    return inf if partition.position is None else partition.position + _RUN_AHEAD
