"""Puts a dead letter's record back where it came from, byte for byte, once.

The note of it is written first and stands only if Kafka has confirmed, so of two operators one replays. A crash in
between can put a record back twice, which every consumer of ours takes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.applications.errors import RefusedError
from shared.audit import Action, Actor, Details, record
from shared.dead.letters import Found, Letter, LetterNotFoundError, find
from shared.dead.readable import readable_line
from shared.dead.topic_tail import one_at
from shared.kafka.clients import KafkaUnavailableError
from shared.kafka.producer import ConfirmingProducer, NotConfirmedError, Outgoing, until
from shared.settings import KafkaSettings
from shared.topics import ALL_TOPICS, DEAD_LETTERS, Topic

_PATIENCE_S = 4.0
_CONSUMED = {topic.name: topic for topic in ALL_TOPICS if topic.group is not None}

_NOTE = """
insert into letter_replays (letter_id, run_id, actor) values (%(letter)s, %(run)s, %(actor)s)
on conflict (letter_id) do nothing"""


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

    def bring_back(self, found: Found) -> Outgoing:
        """Returns once Kafka has it."""
        origin = origin_of(self._settings, found)
        outgoing = self._record_of(found, origin)
        try:
            self._producer.send([outgoing], patience=until(_PATIENCE_S))
        except KafkaUnavailableError:
            raise
        except NotConfirmedError as error:
            raise RecordRefusedError(origin.name, error.refused[0].str()) from error
        return outgoing

    def _record_of(self, found: Found, origin: Topic) -> Outgoing:
        content = found.content
        size = found.too_large
        if size is None:
            return Outgoing(origin.name, content.key, content.value)
        place = f"{origin.name}/{content.partition}/{content.offset}"
        if not 0 <= content.partition < origin.partitions:
            raise LetterLostError(place)
        whole = one_at(self._settings, origin, content.offset, content.partition)
        # In a topic that was made again, another record has its place.
        if whole is None or len(whole.value or b"") != size or content.key not in (None, whole.key):
            raise LetterLostError(place)
        return Outgoing(origin.name, whole.key, whole.value)


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
