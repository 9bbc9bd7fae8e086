"""Puts a record that nobody can process where operators find it, whole, with its origin and the reason."""

from datetime import UTC, datetime
from typing import Protocol

from shared.kafka.producer import ConfirmingProducer, Outgoing, until
from shared.kafka.tasks import Record
from shared.messages import DeadLetter, encode
from shared.topics import DEAD_LETTERS

_PATIENCE_S = 10


class DeadLetterBox(Protocol):
    def put(self, record: Record, group: str, reason: str) -> None:
        """Returns when the letter is safe; raises KafkaUnavailableError when it is not."""


class KafkaDeadLetterBox:
    def __init__(self, producer: ConfirmingProducer) -> None:
        self._producer = producer

    def put(self, record: Record, group: str, reason: str) -> None:
        letter = DeadLetter(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            group=group,
            reason=reason,
            at=datetime.now(UTC),
            key=record.key,
            value=record.value,
        )
        outgoing = Outgoing(DEAD_LETTERS.name, record.topic, encode(letter))
        self._producer.send([outgoing], patience=until(_PATIENCE_S))
