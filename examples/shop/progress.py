"""The journal of an order, which is append-only, and the progress that its page shows."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

from .orders import Order
from .payments import Payment, PaymentStatus


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
class JournalEntry:
    reference: str
    step: Step
    at: float
    detail: Mapping[str, str]


def add_entry(
    connection: sqlite3.Connection, order_id: str, reference: str, step: Step, at: float, **detail: str
) -> None:
    connection.execute(
        "insert into journal (order_id, reference, step, at, detail) values (?, ?, ?, ?, ?)",
        (order_id, reference, step, at, json.dumps(detail)),
    )


def list_entries(connection: sqlite3.Connection, order_id: str) -> list[JournalEntry]:
    rows = connection.execute("select * from journal where order_id = ? order by id", (order_id,))
    return [
        JournalEntry(row["reference"], Step(row["step"]), row["at"], json.loads(row["detail"]))
        for row in rows
    ]


SHOWN_STEPS = (
    Step.CART,
    Step.INTENT_CREATED,
    Step.AT_CHECKOUT,
    Step.PAID,
    Step.WEBHOOK,
    Step.COMPARED,
    Step.FULFILLED,
)
_PROBLEM_STEPS = frozenset({Step.REFUSED, Step.EXPIRED, Step.MISMATCH})


class OrderState(StrEnum):
    STARTING = auto()
    UNPAID = auto()
    PROCESSING = auto()
    FULFILLED = auto()
    EXPIRED = auto()
    REFUSED = auto()
    DOUBTFUL = auto()


_STATE_OF_STATUS: Mapping[PaymentStatus, OrderState] = {
    PaymentStatus.WANTED: OrderState.STARTING,
    PaymentStatus.REQUIRES_PAYMENT_METHOD: OrderState.UNPAID,
    PaymentStatus.PROCESSING: OrderState.PROCESSING,
    PaymentStatus.SUCCEEDED: OrderState.FULFILLED,
    PaymentStatus.CANCELED: OrderState.EXPIRED,
    PaymentStatus.REFUSED: OrderState.REFUSED,
    PaymentStatus.DOUBTFUL: OrderState.DOUBTFUL,
}


class StepStatus(StrEnum):
    DONE = auto()
    CURRENT = auto()
    WAITING = auto()
    PROBLEM = auto()


@dataclass(frozen=True, slots=True)
class StepProgress:
    name: Step
    status: StepStatus
    entry: JournalEntry | None


def order_state(order: Order, latest: Payment) -> OrderState:
    return OrderState.FULFILLED if order.fulfilled_at is not None else _STATE_OF_STATUS[latest.status]


def step_progress(order: Order, latest: Payment, journal: Sequence[JournalEntry]) -> list[StepProgress]:
    """Return the progress of the payment that fulfilled the order, or of the latest payment."""
    reference = order.fulfilled_by or latest.reference
    mine = [entry for entry in journal if entry.reference == reference]
    first: dict[Step, JournalEntry] = {}
    for entry in mine:
        first.setdefault(entry.step, entry)
    is_stuck = any(entry.step in _PROBLEM_STEPS for entry in mine) and order.fulfilled_at is None
    found = []
    is_next = True
    for step in SHOWN_STEPS:
        known = first.get(step)
        if known is not None:
            found.append(StepProgress(step, StepStatus.DONE, known))
        elif is_next and step is not Step.WEBHOOK:
            found.append(StepProgress(step, StepStatus.PROBLEM if is_stuck else StepStatus.CURRENT, None))
            is_next = False
        else:
            # A webhook may arrive after the order was fulfilled, or never, so it is never the current step.
            found.append(StepProgress(step, StepStatus.WAITING, None))
    return found
