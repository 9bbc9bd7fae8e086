"""How fast records come into a topic and are done by its group, from two looks. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from shared.platform.kafka.inspection.snapshot import KafkaSnapshot


@dataclass(frozen=True, slots=True)
class Flow:
    """Records a second."""

    into: float = 0.0
    out: float | None = None
    """None where no group consumes."""


def flows_between(earlier: KafkaSnapshot | None, now: KafkaSnapshot) -> dict[str, Flow]:
    """Of each topic; none on the first look. Offsets that go back (a topic made again) count as nothing."""
    if earlier is None:
        return {}
    seconds = (now.at - earlier.at).total_seconds()
    if seconds <= 0:
        return {}
    ends_before, ends = _ends(earlier), _ends(now)
    done_before, done = _done(earlier), _done(now)
    consumed = {group.topic for group in now.groups}
    return {
        topic.name: Flow(
            into=_sum_of_steps(ends_before.get(topic.name, {}), ends[topic.name]) / seconds,
            out=_sum_of_steps(done_before.get(topic.name, {}), done.get(topic.name, {})) / seconds
            if topic.name in consumed
            else None,
        )
        for topic in now.topics
    }


def _ends(view: KafkaSnapshot) -> dict[str, dict[int, int]]:
    return {
        topic.name: {partition.partition: partition.high for partition in topic.partitions}
        for topic in view.topics
    }


def _done(view: KafkaSnapshot) -> dict[str, dict[int, int]]:
    return {
        group.topic: {
            partition.partition: partition.committed
            for partition in group.partitions
            if partition.committed is not None
        }
        for group in view.groups
    }


def _sum_of_steps(earlier: dict[int, int], now: dict[int, int]) -> int:
    return sum(_steps(earlier, now))


def _steps(earlier: dict[int, int], now: dict[int, int]) -> Iterable[int]:
    return (max(0, offset - earlier.get(partition, offset)) for partition, offset in now.items())
