"""Records read from Kafka: the record, the task a handler gets for it, and the assigned partition it came from."""

from collections import deque
from collections.abc import Callable
from math import inf

import confluent_kafka
import msgspec

from shared.platform.kafka.errors import UnreadableMessageError
from shared.platform.kafka.watermark import Watermark
from shared.platform.tracing.traceparent import HEADER, valid_traceparent

Decode = Callable[[bytes | None], object]
"""Turns a record's value into a message; raises UnreadableMessageError."""


class Record(msgspec.Struct, frozen=True):
    """One record as Kafka has it. A struct, because it is created 20 times as fast as a frozen dataclass."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float
    """When it was produced, in seconds since 1970."""
    trace: str | None = None
    """The valid traceparent in its headers, if there is one."""

    @classmethod
    def of(cls, message: confluent_kafka.Message) -> "Record":
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        headers = message.headers()
        return cls(
            topic,
            partition,
            offset,
            message.key(),
            message.value(),
            message.timestamp()[1] / 1000,
            _trace_in(headers) if isinstance(headers, list) else None,
        )

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class AssignedPartition:
    """A partition that this consumer owns: its backlog of read records, and how far they are finished.

    Once the partition is revoked, its tasks may still finish, but their offsets are no longer committed from here.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.backlog: deque[Task] = deque()
        self.requeued: list[tuple[Task, Exception | None]] = []
        """Tasks that the handler requeued, with the error if one failed; the loop collects them."""
        self.watermark = Watermark()
        self.paused: bool | None = None
        """None right after assignment: a partition that comes back may still be paused inside the client."""
        self.committed: int | None = None
        self.topic_id: str | None = None
        """The id of the topic it reads from; None until it is known."""
        self.finished = 0
        self.revoked = False

    def add(self, task: "Task") -> None:
        self.watermark.start(task.record.offset, task.record.timestamp)
        if self.committed is None:
            self.committed = task.record.offset
        self.backlog.append(task)

    def restart(self, topic_id: str) -> None:
        """Start over at the beginning of a recreated topic.

        Tasks of the deleted topic are still handled, but their offsets no longer count.
        """
        self.topic_id = topic_id
        self.watermark = Watermark()
        self.committed = None

    @property
    def position(self) -> int | None:
        """The offset to commit; None while nothing was read."""
        return self.watermark.position

    @property
    def ready_at(self) -> float:
        """When its next record may be handed out; infinite when none waits."""
        return self.backlog[0].held_until if self.backlog else inf


class Task:
    """A record with its decoded message. It belongs to the handler until the handler calls `done`."""

    __slots__ = (
        "_message",
        "_watermark",
        "failures",
        "finished",
        "held_until",
        "partition",
        "poison_reason",
        "record",
    )

    def __init__(self, partition: AssignedPartition, record: Record, decode: Decode) -> None:
        self.partition = partition
        self.record = record
        self._watermark = partition.watermark  # kept, because a recreated topic gets a new one
        self.failures = 0
        self.finished = False
        self.held_until = 0.0
        self.poison_reason: str | None = None
        """Why no handler can process it; set, the task goes to the dead letters."""
        self._message: object = None
        try:
            self._message = decode(record.value)
        except UnreadableMessageError as error:
            self.poison_reason = f"unreadable: {error}"

    @property
    def message(self) -> object:
        assert self._message is not None, "a poison message is never handed to a handler"
        return self._message

    def done(self) -> None:
        """Mark the record as finished, so that its offset may be committed."""
        if not self.finished:
            self.finished = True
            self.partition.finished += 1
            self._watermark.finish(self.record.offset)

    def hold_until(self, when: float) -> None:
        """Inside `Handler.handle`: get it again at `when` (seconds since 1970). Its partition waits behind it."""
        self.held_until = when

    def reject(self, reason: str) -> None:
        """Inside `Handler.handle`, or before `requeue`: send it to the dead letters, because of what it contains."""
        self.poison_reason = reason

    def requeue(self, error: Exception | None = None) -> None:
        """After `Handler.handle`, for a task that was kept: ask to get it again. `error` counts as a failure of it."""
        self.partition.requeued.append((self, error))


def _trace_in(headers: list[tuple[str, str | bytes | None]]) -> str | None:
    """Return the first traceparent header, or None where it is invalid."""
    value = next((value for name, value in headers if name == HEADER), None)
    return valid_traceparent(value.decode("ascii", "replace") if isinstance(value, bytes) else value)
