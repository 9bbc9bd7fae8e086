"""Dead letters as operators see them: listed, looked up, and with their replays and dismissals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any
from uuid import UUID, uuid5

from psycopg import Connection

from shared.domain.dead_letters.preview import preview_line, preview_text
from shared.domain.dead_letters.topic_reader import TopicReader, open_topic_reader
from shared.domain.messages import DeadLetter, decode
from shared.domain.topics import DEAD_LETTERS
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import UnreadableMessageError
from shared.platform.kafka.records import Record
from shared.platform.settings import KafkaSettings

_ID_NAMESPACE = UUID("6e1f6a54-1f2b-5c0e-9d7b-6d697a616e00")
_LONGEST_LINE = 2000
_SEARCH_S = 4.0
_PAGE_SIZE = 1000
# The text that shared.domain.dead_letters.producer adds for a record that is too large for a dead letter.
_TOO_LARGE = re.compile(r"\(its value of (\d{1,12}) bytes is too large for this topic; see its origin\)$")


@dataclass(frozen=True, slots=True)
class DeadLetterReplay:
    at: datetime
    actor: str
    run_id: UUID | None
    """The bulk replay that it was part of."""


@dataclass(frozen=True, slots=True)
class DeadLetterDismissal:
    at: datetime
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeadLetterView:
    id: UUID
    offset: int
    """Its offset on the dead letters topic."""
    at: datetime
    topic: str
    """The record's origin, named as in shared.domain.topics."""
    partition: int
    origin_offset: int
    group: str
    """The consumer group that gave up on it."""
    reason: str
    key: str
    value: str
    """A preview: indented, without secrets, cut."""
    size: int
    """The size of the record's value in bytes."""
    is_whole: bool
    """False if the record was too large for a dead letter; then only its origin may still have it."""
    replayed: DeadLetterReplay | None
    dismissed: DeadLetterDismissal | None


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    dead_letters: Sequence[DeadLetterView]
    next_before: int | None
    """The offset before which the next page starts; None if there is nothing older."""


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    """A dead letter as stored on the topic."""

    id: UUID
    offset: int
    message: DeadLetter
    is_readable: bool
    """False if the record is not a dead letter; then `message` only says so."""

    @property
    def omitted_size(self) -> int | None:
        """Return the size of the value if it was too large and was left out."""
        said = _TOO_LARGE.search(self.message.reason) if self.message.value is None else None
        return int(said[1]) if said else None


class DeadLetterNotFoundError(RefusedError):
    def __init__(self, what: UUID | int) -> None:
        name = f"{what}" if isinstance(what, UUID) else f"at offset {what}"
        super().__init__(
            f"there is no dead letter {name}; dead letters are kept for {DEAD_LETTERS.retention.days} days"
        )


_FIND_REPLAYS = """
select dead_letter_id, replayed_at, actor, bulk_replay_id from dead_letter_replays
where dead_letter_id = any(%s)"""
_FIND_DISMISSALS = """
select dead_letter_id, dismissed_at, actor, reason from dead_letter_dismissals where dead_letter_id = any(%s)"""


def list_dead_letters(
    connection: Connection[Any],
    settings: KafkaSettings,
    before: int | None,
    limit: int,
    origin: str | None,
    *,
    is_dismissed: bool = False,
) -> DeadLetterPage:
    """Return a page without the dismissed ones, or only of them, newest first; with `origin` only of that topic.

    A page may be short though more follow. Raises KafkaUnavailableError.
    """
    found: list[DeadLetterView] = []
    reached = -1
    at_a_time = _PAGE_SIZE if origin or is_dismissed else limit
    with open_topic_reader(settings, DEAD_LETTERS) as reader:
        for letters in _newest_first(reader, before, at_a_time):
            dismissed = find_dismissals(connection, [letter.id for letter in letters])
            for letter in letters:
                reached = letter.offset
                is_wanted = origin in (None, _unprefixed(settings, letter.message.topic))
                if is_wanted and (letter.id in dismissed) == is_dismissed:
                    found.append(_view(settings, letter))  # the view: the dead letter itself may be large
                if len(found) == limit:
                    break
            if len(found) == limit:
                break
        next_before = reached if reached > reader.first_offset else None
    return DeadLetterPage(_with_actions(connection, found), next_before)


def get_dead_letter(connection: Connection[Any], settings: KafkaSettings, offset: int) -> DeadLetterView:
    return _with_actions(connection, [_view(settings, read_dead_letter(settings, offset))])[0]


def find_dead_letter(connection: Connection[Any], settings: KafkaSettings, letter_id: UUID) -> DeadLetterView:
    """Search for a dead letter by its id. Raises DeadLetterNotFoundError."""
    with open_topic_reader(settings, DEAD_LETTERS) as reader:
        before: int | None = None
        while records := reader.read_newest(before, _PAGE_SIZE):
            before = records[-1].offset
            for record in records:
                letter = parse_dead_letter(record)
                if letter.id == letter_id:
                    return _with_actions(connection, [_view(settings, letter)])[0]
    raise DeadLetterNotFoundError(letter_id)


def read_dead_letter(settings: KafkaSettings, offset: int) -> StoredDeadLetter:
    with open_topic_reader(settings, DEAD_LETTERS) as reader:
        record = reader.read_at(offset)
    if record is None:
        raise DeadLetterNotFoundError(offset)
    return parse_dead_letter(record)


def find_replays(connection: Connection[Any], ids: Sequence[UUID]) -> dict[UUID, DeadLetterReplay]:
    rows = connection.execute(_FIND_REPLAYS, (list(ids),))
    return {letter_id: DeadLetterReplay(at, actor, run_id) for letter_id, at, actor, run_id in rows}


def find_dismissals(connection: Connection[Any], ids: Sequence[UUID]) -> dict[UUID, DeadLetterDismissal]:
    rows = connection.execute(_FIND_DISMISSALS, (list(ids),))
    return {letter_id: DeadLetterDismissal(at, actor, reason) for letter_id, at, actor, reason in rows}


def parse_dead_letter(record: Record) -> StoredDeadLetter:
    """Parse a record; one that is not a dead letter is described as such."""
    try:
        message = decode(record.value)
        if isinstance(message, DeadLetter):
            return StoredDeadLetter(_id(message), record.offset, message, is_readable=True)
        why = "it is another kind of message"
    except UnreadableMessageError as error:
        why = str(error)
    message = DeadLetter(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        group="",
        reason=f"this is not a dead letter: {why}",
        at=datetime.fromtimestamp(max(0.0, record.timestamp), UTC),
        key=record.key,
        value=record.value,
    )
    return StoredDeadLetter(_id(message), record.offset, message, is_readable=False)


def _newest_first(
    reader: TopicReader, before: int | None, at_a_time: int
) -> Iterator[list[StoredDeadLetter]]:
    """Yield lists of dead letters until the first one, or until the time for one page is over."""
    deadline = monotonic() + _SEARCH_S
    while monotonic() < deadline and (records := reader.read_newest(before, at_a_time)):
        before = records[-1].offset
        yield [parse_dead_letter(record) for record in records]


def _with_actions(connection: Connection[Any], letters: Sequence[DeadLetterView]) -> list[DeadLetterView]:
    """Return the dead letters with what operators did with them."""
    ids = [letter.id for letter in letters]
    replays, dismissals = find_replays(connection, ids), find_dismissals(connection, ids)
    return [
        replace(letter, replayed=replays.get(letter.id), dismissed=dismissals.get(letter.id))
        for letter in letters
    ]


def _view(settings: KafkaSettings, found: StoredDeadLetter) -> DeadLetterView:
    message = found.message
    omitted_size = found.omitted_size
    return DeadLetterView(
        id=found.id,
        offset=found.offset,
        at=to_utc(message.at),
        topic=preview_line(_unprefixed(settings, message.topic), _LONGEST_LINE),
        partition=message.partition,
        origin_offset=message.offset,
        group=preview_line(_unprefixed(settings, message.group), _LONGEST_LINE),
        reason=preview_line(message.reason, _LONGEST_LINE),
        key=preview_line(message.key or b"", _LONGEST_LINE),
        value=preview_text(message.value or b""),
        size=len(message.value or b"") if omitted_size is None else omitted_size,
        is_whole=omitted_size is None,
        replayed=None,
        dismissed=None,
    )


def to_utc(at: datetime) -> datetime:
    """Return the time in UTC; one that is out of range keeps its digits."""
    try:
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError:
        return at.replace(tzinfo=UTC)


def _unprefixed(settings: KafkaSettings, name: str) -> str:
    """Return the name without the topic prefix."""
    return name.removeprefix(settings.topic_prefix)


def _id(message: DeadLetter) -> UUID:
    at = message.at.isoformat()
    return uuid5(_ID_NAMESPACE, f"{message.topic}/{message.partition}/{message.offset}/{message.group}/{at}")
