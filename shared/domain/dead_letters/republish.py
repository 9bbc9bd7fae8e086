"""Puts a dead letter's record back where it came from, byte for byte, once.

The note of it is written first and stands only if Kafka has confirmed, so of two operators one replays. A crash in
between can put a record back twice, which every consumer of ours takes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.audit_log import Action, Actor, Details, record
from shared.domain.dead_letters.preview import readable_line
from shared.domain.dead_letters.queries import Found, Letter, LetterNotFoundError, find, opened, replays_of
from shared.domain.dead_letters.topic_tail import Tail, looking_into, one_at
from shared.domain.topics import ALL_TOPICS, DEAD_LETTERS
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord, raise_after
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_PATIENCE_S = 4.0
MOST_AT_ONCE = 50_000
_LOOKING_S = 10.0
_AT_A_TIME = 1000
_CONSUMED = {topic.name: topic for topic in ALL_TOPICS if topic.group is not None}

_NOTE = """
insert into dead_letter_replays (dead_letter_id, bulk_replay_id, actor) values (%(letter)s, %(run)s, %(actor)s)
on conflict (dead_letter_id) do nothing"""


class LetterLostError(RefusedError):
    """The record was too large for a letter, and its origin has it no longer."""

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"the record is lost: it was too large for a dead letter, and is no longer at its origin, {origin}"
        )


class OriginRefusedError(RefusedError):
    def __init__(self, origin: str) -> None:
        name = readable_line(origin, 200) or "its origin"
        super().__init__(f"nobody here consumes {name}, so the record cannot be put back there")


class RecordRefusedError(RefusedError):
    def __init__(self, origin: str, why: str) -> None:
        super().__init__(f"Kafka does not take the record back into {origin}: {why}")


class Postman:
    """Brings records back; for one thread."""

    def __init__(self, settings: KafkaSettings, producer: ConfirmingProducer) -> None:
        self._settings = settings
        self._producer = producer

    def bring_back(self, found: Found) -> OutgoingRecord:
        """Returns once Kafka has it."""
        origin = origin_of(self._settings, found)
        outgoing = self._record_of(found, origin)
        try:
            self._producer.send([outgoing], on_wait=raise_after(_PATIENCE_S))
        except KafkaUnavailableError:
            raise
        except NotConfirmedError as error:
            raise RecordRefusedError(origin.name, error.refused[0].str()) from error
        return outgoing

    def _record_of(self, found: Found, origin: Topic) -> OutgoingRecord:
        content = found.content
        size = found.too_large
        if size is None:
            return OutgoingRecord(origin.name, content.key, content.value)
        place = f"{origin.name}/{content.partition}/{content.offset}"
        if not 0 <= content.partition < origin.partitions:
            raise LetterLostError(place)
        whole = one_at(self._settings, origin, content.offset, content.partition)
        # In a topic that was made again, another record has its place.
        if whole is None or len(whole.value or b"") != size or content.key not in (None, whole.key):
            raise LetterLostError(place)
        return OutgoingRecord(origin.name, whole.key, whole.value)


@contextmanager
def postman(settings: KafkaSettings) -> Iterator[Postman]:
    producer = ConfirmingProducer(
        settings, "letter-replays", message_max_bytes=DEAD_LETTERS.max_message_bytes
    )
    try:
        yield Postman(settings, producer)
    finally:
        producer.close()


def replay(connection: Connection[Any], settings: KafkaSettings, letter: Letter, actor: Actor) -> bool:
    """False: it has been replayed before. Raises a RefusedError where it cannot be, KafkaUnavailableError where not
    now; then nothing is written."""
    found = find(settings, letter.offset)
    if found.id != letter.id:
        raise LetterNotFoundError(letter.id)
    with postman(settings) as one:
        return replay_found(connection, one, found, actor)


def replay_found(
    connection: Connection[Any], one: Postman, found: Found, actor: Actor, run_id: UUID | None = None
) -> bool:
    """As `replay`. What a run replays is told in the audit log once, where the run begins."""
    with connection.transaction():
        noted = connection.execute(_NOTE, {"letter": found.id, "run": run_id, "actor": actor.name})
        if noted.rowcount == 0:
            return False
        outgoing = one.bring_back(found)
        if run_id is None:
            details: Details = {
                "letter": str(found.id),
                "topic": outgoing.topic,
                "partition": found.content.partition,
                "offset": found.content.offset,
            }
            record(connection, actor, Action.LETTER_REPLAYED, details=details)
    return True


def origin_of(settings: KafkaSettings, found: Found) -> Topic:
    """The topic that it goes back to; raises where nobody would read it there."""
    name = found.content.topic
    plain = name.removeprefix(settings.topic_prefix)
    if not found.is_readable or not name.startswith(settings.topic_prefix) or plain not in _CONSUMED:
        raise OriginRefusedError(plain if found.is_readable else "")
    return _CONSUMED[plain]


def origins() -> list[str]:
    """The topics whose records can be put back."""
    return list(_CONSUMED)


@dataclass(frozen=True, slots=True)
class Open:
    count: int
    last: int
    """The offset up to which they were looked for; -1 where there is nothing."""


def look_for_open(connection: Connection[Any], settings: KafkaSettings, origin: str | None) -> Open:
    """From the oldest on: of very many, only so many as one run takes. With `origin` only those of that topic."""
    deadline = monotonic() + _LOOKING_S
    count, last = 0, -1
    with looking_into(settings, DEAD_LETTERS) as tail:
        for letters in _oldest_first(tail):
            count += len(open_ones(connection, settings, letters, origin))
            last = letters[-1].offset
            if count >= MOST_AT_ONCE or monotonic() > deadline:
                break
    return Open(count, last)


def open_ones(
    connection: Connection[Any], settings: KafkaSettings, letters: Sequence[Found], origin: str | None
) -> list[Found]:
    """Those of them."""
    wanted = [letter for letter in letters if _goes_back(settings, letter, origin)]
    replayed = replays_of(connection, [letter.id for letter in wanted])
    return [letter for letter in wanted if letter.id not in replayed]


def _oldest_first(tail: Tail) -> Iterator[list[Found]]:
    start = tail.first
    while records := tail.following(start, tail.behind, _AT_A_TIME):
        yield [opened(one) for one in records]
        start = records[-1].offset + 1


def _goes_back(settings: KafkaSettings, letter: Found, origin: str | None) -> bool:
    try:
        topic = origin_of(settings, letter)
    except OriginRefusedError:
        return False
    return origin in (None, topic.name)
