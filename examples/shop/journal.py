"""What happened to an order, step by step: shown on its page, and never changed."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto


class Step(StrEnum):
    CART = auto()
    INTENT_CREATED = auto()
    MIZAN_AWAY = auto()
    REFUSED = auto()
    AT_CHECKOUT = auto()
    RETURNED = auto()
    PAID = auto()
    WEBHOOK = auto()
    WEBHOOK_AGAIN = auto()
    COMPARED = auto()
    FULFILLED = auto()
    EXPIRED = auto()
    MISMATCH = auto()
    PAID_TWICE = auto()


@dataclass(frozen=True, slots=True)
class Entry:
    reference: str
    step: Step
    at: float
    detail: Mapping[str, str]


def enter(
    connection: sqlite3.Connection, order_id: str, reference: str, step: Step, at: float, **detail: str
) -> None:
    connection.execute(
        "insert into journal (order_id, reference, step, at, detail) values (?, ?, ?, ?, ?)",
        (order_id, reference, step, at, json.dumps(detail)),
    )


def entries_of(connection: sqlite3.Connection, order_id: str) -> list[Entry]:
    rows = connection.execute("select * from journal where order_id = ? order by id", (order_id,))
    return [Entry(row["reference"], Step(row["step"]), row["at"], json.loads(row["detail"])) for row in rows]
