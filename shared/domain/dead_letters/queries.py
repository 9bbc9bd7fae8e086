"""Dead letters: records that nobody could process, as operators see them, with what became of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any
from uuid import UUID, uuid5

from psycopg import Connection

from shared.domain.dead_letters.preview import readable, readable_line
from shared.domain.dead_letters.topic_tail import Tail, looking_into
from shared.domain.messages import DeadLetter, decode
from shared.domain.topics import DEAD_LETTERS
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import UnreadableMessageError
from shared.platform.kafka.records import Record
from shared.platform.settings import KafkaSettings

_IDS = UUID("6e1f6a54-1f2b-5c0e-9d7b-6d697a616e00")
_LONGEST_LINE = 2000
_SEARCH_S = 4.0
_AT_A_TIME = 1000
# As shared.domain.dead_letters.producer says it of a record that is larger than a letter can be.
_TOO_LARGE = re.compile(r"\(its value of (\d{1,12}) bytes is too large for this topic; see its origin\)$")


@dataclass(frozen=True, slots=True)
class Replayed:
    at: datetime
    actor: str
    run_id: UUID | None
    """The replay of many that it was part of."""


@dataclass(frozen=True, slots=True)
class Letter:
    id: UUID
    offset: int
    """Its place in the dead letters."""
    at: datetime
    topic: str
    """Where its record came from, as shared.domain.topics names it."""
    partition: int
    origin_offset: int
    group: str
    """Whose consumer gave up on it."""
    reason: str
    key: str
    value: str
    """For people: laid out, without secrets, cut."""
    size: int
    """Of the record's value, in bytes."""
    is_whole: bool
    """False: it was too large for a letter; its record is at its origin, if anywhere."""
    replayed: Replayed | None


@dataclass(frozen=True, slots=True)
class LetterPage:
    letters: Sequence[Letter]
    next_before: int | None
    """Where the next page begins; None: there is nothing older."""


@dataclass(frozen=True, slots=True)
class Found:
    """A letter as it lies there, byte for byte."""

    id: UUID
    offset: int
    content: DeadLetter
    is_readable: bool
    """False: what lies there is no letter, and `content` only says so."""

    @property
    def too_large(self) -> int | None:
        """How many bytes its value had, where it was too large to be held."""
        said = _TOO_LARGE.search(self.content.reason) if self.content.value is None else None
        return int(said[1]) if said else None


class LetterNotFoundError(RefusedError):
    def __init__(self, what: UUID | int) -> None:
        name = f"{what}" if isinstance(what, UUID) else f"at offset {what}"
        super().__init__(
            f"there is no dead letter {name}; they are kept for {DEAD_LETTERS.retention.days} days"
        )


_REPLAYED = """
select dead_letter_id, replayed_at, actor, bulk_replay_id from dead_letter_replays
where dead_letter_id = any(%s)"""


def list_letters(
    connection: Connection[Any], settings: KafkaSettings, before: int | None, most: int, origin: str | None
) -> LetterPage:
    """Newest first; with `origin` only those of that topic, of which a page may hold fewer though there are more."""
    found: list[Letter] = []
    reached = -1
    with looking_into(settings, DEAD_LETTERS) as tail:
        for letter in _newest_first(tail, before, most if origin is None else _AT_A_TIME):
            reached = letter.offset
            if origin in (None, _named(settings, letter.content.topic)):
                found.append(_letter(settings, letter))  # not the letter itself, which may be large
            if len(found) == most:
                break
        next_before = reached if reached > tail.first else None
    return LetterPage(_with_replays(connection, found), next_before)


def get_letter(connection: Connection[Any], settings: KafkaSettings, offset: int) -> Letter:
    return _with_replays(connection, [_letter(settings, find(settings, offset))])[0]


def find_letter(connection: Connection[Any], settings: KafkaSettings, letter_id: UUID) -> Letter:
    """By its id, which takes a search."""
    with looking_into(settings, DEAD_LETTERS) as tail:
        before: int | None = None
        while records := tail.newest(before, _AT_A_TIME):
            before = records[-1].offset
            for record in records:
                letter = opened(record)
                if letter.id == letter_id:
                    return _with_replays(connection, [_letter(settings, letter)])[0]
    raise LetterNotFoundError(letter_id)


def find(settings: KafkaSettings, offset: int) -> Found:
    with looking_into(settings, DEAD_LETTERS) as tail:
        record = tail.at(offset)
    if record is None:
        raise LetterNotFoundError(offset)
    return opened(record)


def replays_of(connection: Connection[Any], ids: Sequence[UUID]) -> dict[UUID, Replayed]:
    rows = connection.execute(_REPLAYED, (list(ids),))
    return {letter_id: Replayed(at, actor, run_id) for letter_id, at, actor, run_id in rows}


def opened(record: Record) -> Found:
    """Whatever lies there."""
    try:
        content = decode(record.value)
        if isinstance(content, DeadLetter):
            return Found(_id(content), record.offset, content, is_readable=True)
        why = "it is a message of another kind"
    except UnreadableMessageError as error:
        why = str(error)
    content = DeadLetter(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        group="",
        reason=f"this is no dead letter: {why}",
        at=datetime.fromtimestamp(max(0.0, record.timestamp), UTC),
        key=record.key,
        value=record.value,
    )
    return Found(_id(content), record.offset, content, is_readable=False)


def _newest_first(tail: Tail, before: int | None, at_a_time: int) -> Iterator[Found]:
    """Until the beginning, or until it has taken long enough for one page."""
    deadline = monotonic() + _SEARCH_S
    while monotonic() < deadline and (records := tail.newest(before, at_a_time)):
        before = records[-1].offset
        yield from map(opened, records)


def _with_replays(connection: Connection[Any], letters: Sequence[Letter]) -> list[Letter]:
    replays = replays_of(connection, [letter.id for letter in letters])
    return [replace(letter, replayed=replays.get(letter.id)) for letter in letters]


def _letter(settings: KafkaSettings, found: Found) -> Letter:
    content = found.content
    too_large = found.too_large
    return Letter(
        id=found.id,
        offset=found.offset,
        at=in_utc(content.at),
        topic=readable_line(_named(settings, content.topic), _LONGEST_LINE),
        partition=content.partition,
        origin_offset=content.offset,
        group=readable_line(_named(settings, content.group), _LONGEST_LINE),
        reason=readable_line(content.reason, _LONGEST_LINE),
        key=readable_line(content.key or b"", _LONGEST_LINE),
        value=readable(content.value or b""),
        size=len(content.value or b"") if too_large is None else too_large,
        is_whole=too_large is None,
        replayed=None,
    )


def in_utc(at: datetime) -> datetime:
    """Whatever somebody wrote; the first and the last day of all time cannot be converted."""
    try:
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError:
        return at.replace(tzinfo=UTC)


def _named(settings: KafkaSettings, name: str) -> str:
    """Without what this installation puts before its names."""
    return name.removeprefix(settings.topic_prefix)


def _id(content: DeadLetter) -> UUID:
    at = content.at.isoformat()
    return uuid5(_IDS, f"{content.topic}/{content.partition}/{content.offset}/{content.group}/{at}")
