"""Sends poison messages to the dead letters topic, whole, with their origin and the reason."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from shared.domain.messages import DeadLetter, encode
from shared.domain.topics import DEAD_LETTERS
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord, raise_after
from shared.platform.kafka.records import Record
from shared.platform.redaction import redact_text
from shared.platform.settings import KafkaSettings

_TIMEOUT_S = 3  # the consumer does nothing else meanwhile
_LONGEST_REASON = 2000


class KafkaDeadLetterProducer:
    """Creates a producer for each call: dead letters are rare, so an idle client is not worth keeping."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def send(self, poison: Sequence[tuple[Record, str]], group: str) -> None:
        """Send records with the reason for each. Raises KafkaUnavailableError when Kafka does not confirm in time."""
        producer = ConfirmingProducer(
            self._settings, "dead-letters", message_max_bytes=DEAD_LETTERS.max_message_bytes
        )
        try:
            self._send(producer, [_dead_letter(record, group, reason) for record, reason in poison])
        finally:
            producer.close()

    def _send(self, producer: ConfirmingProducer, letters: Sequence[DeadLetter]) -> None:
        try:
            producer.send([_outgoing(letter) for letter in letters], on_wait=raise_after(_TIMEOUT_S))
        except NotConfirmedError as error:
            # Too large for the topic: the origin still has the whole record.
            stripped = [_without_value(letters[index]) for index in error.refused]
            producer.send([_outgoing(letter) for letter in stripped], on_wait=raise_after(_TIMEOUT_S))


def _dead_letter(record: Record, group: str, reason: str) -> DeadLetter:
    return DeadLetter(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        group=group,
        reason=redact_text(reason)[:_LONGEST_REASON],
        at=datetime.now(UTC),
        key=record.key,
        value=record.value,
    )


def _without_value(letter: DeadLetter) -> DeadLetter:
    size = len(letter.value or b"")
    return msgspec.structs.replace(
        letter,
        reason=f"{letter.reason} (its value of {size} bytes is too large for this topic; see its origin)",
        key=letter.key if len(letter.key or b"") < _LONGEST_REASON else None,
        value=None,
    )


def _outgoing(letter: DeadLetter) -> OutgoingRecord:
    return OutgoingRecord(DEAD_LETTERS.name, letter.topic, encode(letter))
