"""The partitions this process has now: hands out batches, and pauses those that have read far enough ahead."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import inf
from time import time

from confluent_kafka import Consumer, TopicPartition

from shared.platform.kafka.records import Lane, Task

# Far apart, because a pause makes the client throw away what it has fetched ahead.
_PAUSE_AT = 4000
_RESUME_AT = 1000
# How far a partition may run ahead of its oldest unfinished record, such as a webhook that gets no answer for ten
# seconds. It is also what a kill would repeat.
_RUN_AHEAD = 100_000


class Lanes:
    def __init__(self) -> None:
        self._lanes: dict[tuple[str, int], Lane] = {}

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._lanes[tp.topic, tp.partition] = Lane(tp.topic, tp.partition)

    def close(self, partitions: Iterable[TopicPartition]) -> list[Lane]:
        """Forgets these partitions with all that waits in them: whoever gets them reads it again."""
        gone = [self._lanes.pop((tp.topic, tp.partition), None) for tp in partitions]
        ended = [lane for lane in gone if lane is not None]
        for lane in ended:
            lane.ended = True
        return ended

    def of(self, topic: str, partition: int) -> Lane | None:
        return self._lanes.get((topic, partition))

    def all(self) -> list[Lane]:
        return list(self._lanes.values())

    def next_batch(self, limit: int) -> list[Task]:
        """Up to `limit` records whose time has come, in order within each partition, each partition in turn."""
        batch: list[Task] = []
        now = time()
        for key, lane in list(self._lanes.items()):
            taken, backlog = len(batch), lane.backlog
            # Once for all: handing out does not change how far the lane is done.
            farthest = _farthest(lane)
            while (
                backlog
                and len(batch) < limit
                and backlog[0].held_until <= now
                and backlog[0].record.offset <= farthest
            ):
                batch.append(backlog.popleft())
            if len(batch) > taken:
                self._lanes[key] = self._lanes.pop(key)  # to the end of the line
        return batch

    def put_back(self, tasks: Iterable[Task]) -> None:
        """Into their lanes, where their offsets belong; what belongs to an ended lane is let go."""
        for lane, group in groupby(tasks, key=lambda task: task.lane):
            returned = list(group)
            if lane.ended:
                continue
            if lane.backlog and returned[-1].record.offset > lane.backlog[0].record.offset:
                lane.backlog = deque(sorted([*returned, *lane.backlog], key=lambda task: task.record.offset))
            else:
                lane.backlog.extendleft(reversed(returned))

    def take_given_back(self) -> list[tuple[Task, Exception | None]]:
        returned: list[tuple[Task, Exception | None]] = []
        for lane in self._lanes.values():
            if lane.given_back:
                returned.extend(sorted(lane.given_back, key=lambda pair: pair[0].record.offset))
                lane.given_back.clear()
        return returned

    def next_ready_at(self) -> float:
        """When the next waiting record can be handed out; infinite when none waits."""
        return min(
            (
                lane.ready_at
                for lane in self._lanes.values()
                if lane.backlog and lane.backlog[0].record.offset <= _farthest(lane)
            ),
            default=inf,
        )

    def ready_count(self) -> int:
        """How many records wait for nothing but the handler."""
        now = time()
        return sum(len(lane.backlog) for lane in self._lanes.values() if lane.ready_at <= now)

    def set_pauses(self, consumer: Consumer) -> None:
        to_pause: list[Lane] = []
        to_resume: list[Lane] = []
        for lane in self._lanes.values():
            pause = len(lane.backlog) >= (_RESUME_AT if lane.paused else _PAUSE_AT)
            if pause != lane.paused:
                (to_pause if pause else to_resume).append(lane)
                lane.paused = pause
        if to_pause:
            consumer.pause(partitions_of(to_pause))
        if to_resume:
            consumer.resume(partitions_of(to_resume))


def partitions_of(lanes: Sequence[Lane]) -> list[TopicPartition]:
    return [TopicPartition(lane.topic, lane.partition) for lane in lanes]


def _farthest(lane: Lane) -> float:
    """The last offset that may be handed out."""
    return inf if lane.position is None else lane.position + _RUN_AHEAD
