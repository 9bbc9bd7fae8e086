"""A record on its way through a handler, and the lane (assigned partition) that it belongs to."""

from collections import deque
from collections.abc import Callable
from math import inf

import confluent_kafka
import msgspec

from shared.platform.kafka.errors import UnreadableMessageError
from shared.platform.kafka.watermark import Watermark
from shared.platform.tracing.traceparent import HEADER, sane

Decode = Callable[[bytes | None], object]
"""Turns a record's value into a message; raises UnreadableMessageError."""


class Record(msgspec.Struct, frozen=True):
    """A struct, because it is made twenty times as fast as a frozen dataclass, and once for each record."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float
    """When it was produced, in seconds since 1970."""
    trace: str | None = None
    """The traceparent in its headers, if there is a sane one."""

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


class Lane:
    """One assigned partition: what was read and waits, what is being worked on, and how far all is done.

    A lane ends when its partition is taken away; tasks of an ended lane may still finish, and nobody minds.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.backlog: deque[Task] = deque()
        self.given_back: list[tuple[Task, Exception | None]] = []
        self.watermark = Watermark()
        self.paused: bool | None = None
        """None right after assignment: a partition that comes back may still be paused inside the client."""
        self.committed: int | None = None
        self.topic_id: str | None = None
        """Of the topic that it reads from; None until it is known."""
        self.finished = 0
        self.ended = False

    def add(self, task: "Task") -> None:
        self.watermark.start(task.record.offset, task.record.timestamp)
        if self.committed is None:
            self.committed = task.record.offset
        self.backlog.append(task)

    def begin_again(self, topic_id: str) -> None:
        """In another topic of the same name. What is left of the old one is still done, and no offset tells of it."""
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
    """A record and its message, in the hands of a handler until it says `done`."""

    __slots__ = ("_message", "_watermark", "failures", "finished", "held_until", "hopeless", "lane", "record")

    def __init__(self, lane: Lane, record: Record, decode: Decode) -> None:
        self.lane = lane
        self.record = record
        self._watermark = lane.watermark  # of its own topic: the lane may begin again in another
        self.failures = 0
        self.finished = False
        self.held_until = 0.0
        self.hopeless: str | None = None
        """Why no handler should see it again: it goes to the dead letters."""
        self._message: object = None
        try:
            self._message = decode(record.value)
        except UnreadableMessageError as error:
            self.hopeless = f"unreadable: {error}"

    @property
    def message(self) -> object:
        assert self._message is not None, "a hopeless task is never handed to a handler"
        return self._message

    def done(self) -> None:
        """Nothing more is to be done for this record: its offset may be committed."""
        if not self.finished:
            self.finished = True
            self.lane.finished += 1
            self._watermark.finish(self.record.offset)

    def hold_until(self, when: float) -> None:
        """Inside `take`: not now. It comes again at `when` (seconds since 1970); its partition waits behind it."""
        self.held_until = when

    def give_back(self, error: Exception | None = None) -> None:
        """Outside `take`, for a task that was kept: it comes again, and `error` counts as its failure."""
        self.lane.given_back.append((self, error))


def _trace_in(headers: list[tuple[str, str | bytes | None]]) -> str | None:
    """The first; whoever writes several, or nonsense, is not followed."""
    value = next((value for name, value in headers if name == HEADER), None)
    return sane(value.decode("ascii", "replace") if isinstance(value, bytes) else value)
