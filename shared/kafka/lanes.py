"""The partitions this process has now: hands out batches, and pauses those that must not read on."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import inf
from time import time

from confluent_kafka import Consumer, TopicPartition

from shared.kafka.tasks import Lane, Task

_READ_AHEAD = 1000


class Lanes:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._lanes: dict[tuple[str, int], Lane] = {}

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._lanes[tp.topic, tp.partition] = Lane(tp.topic, tp.partition)

    def close(self, partitions: Iterable[TopicPartition]) -> list[Lane]:
        """Forgets these partitions with all that waits in them: whoever gets them reads it again."""
        gone = [self._lanes.pop((tp.topic, tp.partition), None) for tp in partitions]
        return [lane for lane in gone if lane is not None]

    def of(self, topic: str, partition: int) -> Lane | None:
        return self._lanes.get((topic, partition))

    def all(self) -> list[Lane]:
        return list(self._lanes.values())

    def next_batch(self, limit: int) -> list[Task]:
        """Up to `limit` records whose time has come, in order within each partition, each partition in turn."""
        batch: list[Task] = []
        now = time()
        for key, lane in list(self._lanes.items()):
            if len(batch) >= limit:
                break
            if not lane.backlog or lane.held_until > now:
                continue
            while lane.backlog and len(batch) < limit:
                batch.append(lane.backlog.popleft())
            self._lanes[key] = self._lanes.pop(key)  # to the end of the line
        return batch

    def put_back(self, tasks: Iterable[Task]) -> None:
        """To the front of their lanes, in their order; a held one also holds its lane."""
        for lane, group in groupby(tasks, key=lambda task: task.lane):
            returned = list(group)
            lane.backlog.extendleft(reversed(returned))
            lane.held_until = returned[0].held_until or 0.0
            for task in returned:
                task.held_until = None

    def next_ready_at(self) -> float:
        """When the next waiting record can be handed out; infinite when none waits."""
        return min((lane.held_until for lane in self._lanes.values() if lane.backlog), default=inf)

    def set_pauses(self) -> None:
        now = time()
        to_pause: list[Lane] = []
        to_resume: list[Lane] = []
        for lane in self._lanes.values():
            pause = len(lane.backlog) >= _READ_AHEAD or (bool(lane.backlog) and lane.held_until > now)
            if pause != lane.paused:
                (to_pause if pause else to_resume).append(lane)
                lane.paused = pause
        if to_pause:
            self._consumer.pause(_partitions(to_pause))
        if to_resume:
            self._consumer.resume(_partitions(to_resume))


def _partitions(lanes: Sequence[Lane]) -> list[TopicPartition]:
    return [TopicPartition(lane.topic, lane.partition) for lane in lanes]
