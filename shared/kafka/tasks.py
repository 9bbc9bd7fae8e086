"""A record on its way through a handler, and the lane (assigned partition) that it belongs to."""

from collections import deque
from dataclasses import dataclass

import confluent_kafka

from shared.kafka.watermark import Watermark
from shared.messages import AnyMessage, UnreadableMessageError, decode


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float
    """When it was produced, in seconds since 1970."""

    @classmethod
    def of(cls, message: confluent_kafka.Message) -> "Record":
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        return cls(topic, partition, offset, message.key(), message.value(), message.timestamp()[1] / 1000)


class Lane:
    """One assigned partition: what was read and waits, what is being worked on, and how far all is done.

    A lane ends when its partition is taken away; tasks of an ended lane may still finish, and nobody minds.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.backlog: deque[Task] = deque()
        self.watermark = Watermark()
        self.held_until = 0.0
        self.paused: bool | None = None
        """None right after assignment: a partition that comes back may still be paused inside the client."""
        self.committed: int | None = None
        self.last_timestamp: float | None = None
        """When the record that was read last had been produced."""

    def add(self, task: "Task") -> None:
        self.watermark.start(task.record.offset)
        if self.committed is None:
            self.committed = task.record.offset
        self.backlog.append(task)
        self.last_timestamp = task.record.timestamp

    @property
    def oldest_timestamp(self) -> float | None:
        """When the oldest waiting record was produced, as far as this process knows."""
        return self.backlog[0].record.timestamp if self.backlog else self.last_timestamp

    @property
    def position(self) -> int | None:
        """The offset to commit; None while nothing was read."""
        return self.watermark.position


class Task:
    """A record and its message, in the hands of a handler until it says `done`."""

    __slots__ = ("_message", "failures", "finished", "held_until", "hopeless", "lane", "record")

    def __init__(self, lane: Lane, record: Record) -> None:
        self.lane = lane
        self.record = record
        self.failures = 0
        self.finished = False
        self.held_until: float | None = None
        self.hopeless: str | None = None
        """Why no handler should see it again: it goes to the dead letters."""
        self._message: AnyMessage | None = None
        try:
            self._message = decode(record.value)
        except UnreadableMessageError as error:
            self.hopeless = f"unreadable: {error}"

    @property
    def message(self) -> AnyMessage:
        assert self._message is not None, "a hopeless task is never handed to a handler"
        return self._message

    def done(self) -> None:
        """Nothing more is to be done for this record: its offset may be committed."""
        self.finished = True
        self.lane.watermark.finish(self.record.offset)

    def hold_until(self, when: float) -> None:
        """Not now: it comes again at `when` (seconds since 1970), and its partition waits behind it."""
        self.held_until = when
