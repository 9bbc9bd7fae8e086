"""Dead letters that can be put back where they came from and have not been."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from psycopg import Connection

from shared.dead.letters import Found, opened, replays_of
from shared.dead.replaying import OriginRefusedError, origin_of
from shared.dead.topic_tail import Tail, looking_into
from shared.settings import KafkaSettings
from shared.topics import DEAD_LETTERS

MOST_AT_ONCE = 50_000
_LOOKING_S = 10.0
_AT_A_TIME = 1000


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
