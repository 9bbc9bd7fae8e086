"""For experiments, not for copying: a switch that makes the webhook endpoint misbehave, and its last requests."""

import json
import sqlite3
from dataclasses import dataclass
from enum import StrEnum, auto
from threading import BoundedSemaphore, Event

from .database import Database

_MAX_REQUESTS = 40
_MAX_BODY_CHARS, _MAX_HEADER_CHARS, _MAX_HEADERS = 2_000, 300, 30


class Verdict(StrEnum):
    ACCEPTED = auto()
    AGAIN = auto()
    BAD_SIGNATURE = auto()
    UNREADABLE = auto()
    TOO_LARGE = auto()
    SWITCHED = auto()
    """The webhook was valid, but the switch determined the response."""


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    at: float
    headers: tuple[tuple[str, str], ...]
    body: str
    verdict: Verdict
    answer: int


def record_request(connection: sqlite3.Connection, received: EndpointRequest) -> None:
    """Store a request. Anyone can send them, so their number and size are bounded."""
    headers = [(name, value[:_MAX_HEADER_CHARS]) for name, value in received.headers[:_MAX_HEADERS]]
    connection.execute(
        "insert into requests_seen (at, headers, body, verdict, answer) values (?, ?, ?, ?, ?)",
        (
            received.at,
            json.dumps(headers),
            received.body[:_MAX_BODY_CHARS],
            received.verdict,
            received.answer,
        ),
    )
    connection.execute(
        "delete from requests_seen where id <= (select max(id) from requests_seen) - ?", (_MAX_REQUESTS,)
    )


def last_requests(connection: sqlite3.Connection) -> list[EndpointRequest]:
    rows = connection.execute("select * from requests_seen order by id desc")
    return [
        EndpointRequest(
            row["at"],
            tuple((name, value) for name, value in json.loads(row["headers"])),
            row["body"],
            Verdict(row["verdict"]),
            row["answer"],
        )
        for row in rows
    ]


_HANG_S = 15.0
"""Longer than Mizan's timeout of 10 seconds."""
_MAX_HANGING = 4
"""How many requests may hang. More are rejected at once, so that the shop stays usable."""


class Behaviour(StrEnum):
    GOOD = "good"
    FAIL = "fail"
    HANG = "hang"
    REDIRECT = "redirect"
    UNAUTHORIZED = "unauthorized"


class EndpointSwitch:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._hang_slots = BoundedSemaphore(_MAX_HANGING)
        self._changed = Event()

    @property
    def behaviour(self) -> Behaviour:
        with self._database.reading() as connection:
            row = connection.execute("select value from notes where name = 'endpoint'").fetchone()
        return Behaviour.GOOD if row is None else Behaviour(row["value"])

    def set_behaviour(self, behaviour: Behaviour) -> None:
        with self._database.transaction() as connection:
            connection.execute("insert or replace into notes values ('endpoint', ?)", (behaviour,))
        self.release_hanging()

    def hang(self) -> None:
        """Block until Mizan has timed out or the switch is changed. Returns at once if enough requests hang."""
        if self._hang_slots.acquire(blocking=False):
            try:
                self._changed.wait(_HANG_S)
            finally:
                self._hang_slots.release()

    def release_hanging(self) -> None:
        """Let all hanging requests continue. Called when the switch changes and when the shop stops."""
        changed, self._changed = self._changed, Event()
        changed.set()
