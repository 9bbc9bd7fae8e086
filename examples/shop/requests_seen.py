"""The last requests to the webhook endpoint, with what we thought of them, for who wants to watch."""

import json
import sqlite3
from dataclasses import dataclass
from enum import StrEnum, auto

_KEPT = 40
_MOST_OF_A_BODY, _MOST_OF_A_HEADER, _MOST_HEADERS = 2_000, 300, 30


class Verdict(StrEnum):
    ACCEPTED = auto()
    AGAIN = auto()
    BAD_SIGNATURE = auto()
    UNREADABLE = auto()
    TOO_LARGE = auto()
    SWITCHED = auto()
    """It was right; the switch made us say something else."""


@dataclass(frozen=True, slots=True)
class Seen:
    at: float
    headers: tuple[tuple[str, str], ...]
    body: str
    verdict: Verdict
    answer: int


def note_request(connection: sqlite3.Connection, seen: Seen) -> None:
    """Anybody can send requests, so what is kept of them is bounded."""
    headers = [(name, value[:_MOST_OF_A_HEADER]) for name, value in seen.headers[:_MOST_HEADERS]]
    connection.execute(
        "insert into requests_seen (at, headers, body, verdict, answer) values (?, ?, ?, ?, ?)",
        (seen.at, json.dumps(headers), seen.body[:_MOST_OF_A_BODY], seen.verdict, seen.answer),
    )
    connection.execute(
        "delete from requests_seen where id <= (select max(id) from requests_seen) - ?", (_KEPT,)
    )


def last_requests(connection: sqlite3.Connection) -> list[Seen]:
    rows = connection.execute("select * from requests_seen order by id desc")
    return [
        Seen(
            row["at"],
            tuple((name, value) for name, value in json.loads(row["headers"])),
            row["body"],
            Verdict(row["verdict"]),
            row["answer"],
        )
        for row in rows
    ]
