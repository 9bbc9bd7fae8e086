"""Puts records that nobody can process where operators find them, whole, with their origin and the reason."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from shared.domain.messages import DeadLetter, encode
from shared.domain.topics import DEAD_LETTERS
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, Outgoing, until
from shared.platform.kafka.records import Record
from shared.platform.redaction import redact_text
from shared.platform.settings import KafkaSettings

_PATIENCE_S = 3  # whoever waits here does nothing else
_LONGEST_REASON = 2000


class KafkaDeadLetterBox:
    """Makes a producer when one is needed: letters are rare, and an idle client is one more to look after."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def put(self, letters: Sequence[tuple[Record, str]], group: str) -> None:
        producer = ConfirmingProducer(
            self._settings, "dead-letters", message_max_bytes=DEAD_LETTERS.max_message_bytes
        )
        try:
            self._send(producer, [_letter(record, group, reason) for record, reason in letters])
        finally:
            producer.close()

    def _send(self, producer: ConfirmingProducer, letters: Sequence[DeadLetter]) -> None:
        try:
            producer.send([_outgoing(letter) for letter in letters], patience=until(_PATIENCE_S))
        except NotConfirmedError as error:
            # Larger than the topic takes: what matters is where the whole record still is.
            stripped = [_without_value(letters[place]) for place in error.refused]
            producer.send([_outgoing(letter) for letter in stripped], patience=until(_PATIENCE_S))


def _letter(record: Record, group: str, reason: str) -> DeadLetter:
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


def _outgoing(letter: DeadLetter) -> Outgoing:
    return Outgoing(DEAD_LETTERS.name, letter.topic, encode(letter))
