"""Republishes the record of a dead letter to its origin, byte for byte, once.

The replay is written to the database first and committed only after Kafka has confirmed, so of two operators one
replays. A crash in between can republish a record twice, which all our consumers tolerate.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.domain.dead_letters.preview import preview_line
from shared.domain.dead_letters.queries import (
    DeadLetterNotFoundError,
    DeadLetterView,
    StoredDeadLetter,
    find_dismissals,
    find_replays,
    parse_dead_letter,
    read_dead_letter,
)
from shared.domain.dead_letters.topic_reader import TopicReader, open_topic_reader, read_record
from shared.domain.topics import ALL_TOPICS, DEAD_LETTERS
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord, raise_after
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_TIMEOUT_S = 4.0
MAX_RUN_SIZE = 50_000
_COUNT_LIMIT_S = 10.0
_PAGE_SIZE = 1000
_CONSUMED_TOPICS = {topic.name: topic for topic in ALL_TOPICS if topic.group is not None}

_RECORD_REPLAY = """
insert into dead_letter_replays (dead_letter_id, bulk_replay_id, actor) values (%(letter)s, %(run)s, %(actor)s)
on conflict (dead_letter_id) do nothing"""


class DeadLetterRecordLostError(RefusedError):
    """The record was too large for a dead letter, and its origin no longer has it."""

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"the record is lost: it was too large for a dead letter, and is no longer at its origin, {origin}"
        )


class OriginNotConsumedError(RefusedError):
    def __init__(self, origin: str) -> None:
        name = preview_line(origin, 200) or "its origin"
        super().__init__(f"no consumer reads {name}, so the record cannot be republished there")


class RecordRejectedError(RefusedError):
    def __init__(self, origin: str, why: str) -> None:
        super().__init__(f"Kafka rejects the record for {origin}: {why}")


class DeadLetterPublisher:
    """Republishes records to their origin; used by one thread."""

    def __init__(self, settings: KafkaSettings, producer: ConfirmingProducer) -> None:
        self._settings = settings
        self._producer = producer

    def republish(self, found: StoredDeadLetter) -> OutgoingRecord:
        """Republish a record and wait for Kafka's confirmation.

        Raises RecordRejectedError, OriginNotConsumedError, DeadLetterRecordLostError and KafkaUnavailableError.
        """
        origin = origin_topic(self._settings, found)
        outgoing = self._record_of(found, origin)
        try:
            self._producer.send([outgoing], on_wait=raise_after(_TIMEOUT_S))
        except KafkaUnavailableError:
            raise
        except NotConfirmedError as error:
            raise RecordRejectedError(origin.name, error.refused[0].str()) from error
        return outgoing

    def _record_of(self, found: StoredDeadLetter, origin: Topic) -> OutgoingRecord:
        message = found.message
        size = found.omitted_size
        if size is None:
            return OutgoingRecord(origin.name, message.key, message.value)
        location = f"{origin.name}/{message.partition}/{message.offset}"
        if not 0 <= message.partition < origin.partitions:
            raise DeadLetterRecordLostError(location)
        whole = read_record(self._settings, origin, message.offset, message.partition)
        # In a recreated topic another record may have its offset.
        if whole is None or len(whole.value or b"") != size or message.key not in (None, whole.key):
            raise DeadLetterRecordLostError(location)
        return OutgoingRecord(origin.name, whole.key, whole.value)


@contextmanager
def open_publisher(settings: KafkaSettings) -> Iterator[DeadLetterPublisher]:
    producer = ConfirmingProducer(
        settings, "letter-replays", message_max_bytes=DEAD_LETTERS.max_message_bytes
    )
    try:
        yield DeadLetterPublisher(settings, producer)
    finally:
        producer.close()


def replay_dead_letter(
    connection: Connection[Any], settings: KafkaSettings, letter: DeadLetterView, actor: Actor
) -> bool:
    """Replay a dead letter. Return False if it was replayed before.

    Raises a RefusedError if it cannot be replayed, KafkaUnavailableError if not now. Then nothing is written.
    """
    found = read_dead_letter(settings, letter.offset)
    if found.id != letter.id:
        raise DeadLetterNotFoundError(letter.id)
    with open_publisher(settings) as publisher:
        return replay_stored(connection, publisher, found, actor)


def replay_stored(
    connection: Connection[Any],
    publisher: DeadLetterPublisher,
    found: StoredDeadLetter,
    actor: Actor,
    run_id: UUID | None = None,
) -> bool:
    """Replay like `replay_dead_letter`. The audit log has one entry for a bulk replay, written when it starts."""
    with connection.transaction():
        noted = connection.execute(_RECORD_REPLAY, {"letter": found.id, "run": run_id, "actor": actor.name})
        if noted.rowcount == 0:
            return False
        outgoing = publisher.republish(found)
        if run_id is None:
            details: AuditDetails = {
                "letter": str(found.id),
                "topic": outgoing.topic,
                "partition": found.message.partition,
                "offset": found.message.offset,
            }
            add_audit_entry(connection, actor, Action.DEAD_LETTER_REPLAYED, details=details)
    return True


def origin_topic(settings: KafkaSettings, found: StoredDeadLetter) -> Topic:
    """Return the topic to republish to. Raises OriginNotConsumedError if no consumer reads it."""
    name = found.message.topic
    plain = name.removeprefix(settings.topic_prefix)
    if not found.is_readable or not name.startswith(settings.topic_prefix) or plain not in _CONSUMED_TOPICS:
        raise OriginNotConsumedError(plain if found.is_readable else "")
    return _CONSUMED_TOPICS[plain]


def replayable_topics() -> list[str]:
    """Return the topics whose records can be replayed."""
    return list(_CONSUMED_TOPICS)


@dataclass(frozen=True, slots=True)
class ReplayableCount:
    count: int
    last: int
    """The offset up to which they were counted; -1 if there are none."""


def count_replayable(
    connection: Connection[Any], settings: KafkaSettings, origin: str | None
) -> ReplayableCount:
    """Count dead letters neither replayed nor dismissed, oldest first, up to MAX_RUN_SIZE.

    With `origin` only those of that topic.
    """
    deadline = monotonic() + _COUNT_LIMIT_S
    count, last = 0, -1
    with open_topic_reader(settings, DEAD_LETTERS) as reader:
        for letters in _oldest_first(reader):
            count += len(select_replayable(connection, settings, letters, origin))
            last = letters[-1].offset
            if count >= MAX_RUN_SIZE or monotonic() > deadline:
                break
    return ReplayableCount(count, last)


def select_replayable(
    connection: Connection[Any],
    settings: KafkaSettings,
    letters: Sequence[StoredDeadLetter],
    origin: str | None,
) -> list[StoredDeadLetter]:
    """Return those that can be replayed and have been neither replayed nor dismissed."""
    wanted = [letter for letter in letters if _is_replayable(settings, letter, origin)]
    ids = [letter.id for letter in wanted]
    done = find_replays(connection, ids).keys() | find_dismissals(connection, ids).keys()
    return [letter for letter in wanted if letter.id not in done]


def _oldest_first(reader: TopicReader) -> Iterator[list[StoredDeadLetter]]:
    start = reader.first_offset
    while records := reader.read_from(start, reader.end_offset, _PAGE_SIZE):
        yield [parse_dead_letter(one) for one in records]
        start = records[-1].offset + 1


def _is_replayable(settings: KafkaSettings, letter: StoredDeadLetter, origin: str | None) -> bool:
    try:
        topic = origin_topic(settings, letter)
    except OriginNotConsumedError:
        return False
    return origin in (None, topic.name)
