"""How an order stands, from its payments and its journal. Pure: the page is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

from examples.shop.journal import Entry, Step
from examples.shop.orders import Order
from examples.shop.payments import Payment, Status

STAGES = (
    Step.CART,
    Step.INTENT_CREATED,
    Step.AT_CHECKOUT,
    Step.PAID,
    Step.WEBHOOK,
    Step.COMPARED,
    Step.FULFILLED,
)
_TROUBLES = frozenset({Step.REFUSED, Step.EXPIRED, Step.MISMATCH})


class State(StrEnum):
    STARTING = auto()
    UNPAID = auto()
    PROCESSING = auto()
    FULFILLED = auto()
    EXPIRED = auto()
    REFUSED = auto()
    DOUBTFUL = auto()


_STATES: Mapping[Status, State] = {
    Status.WANTED: State.STARTING,
    Status.REQUIRES_PAYMENT_METHOD: State.UNPAID,
    Status.PROCESSING: State.PROCESSING,
    Status.SUCCEEDED: State.FULFILLED,
    Status.CANCELED: State.EXPIRED,
    Status.REFUSED: State.REFUSED,
    Status.DOUBTFUL: State.DOUBTFUL,
}


class Mark(StrEnum):
    DONE = auto()
    CURRENT = auto()
    WAITING = auto()
    TROUBLE = auto()


@dataclass(frozen=True, slots=True)
class Stage:
    step: Step
    mark: Mark
    entry: Entry | None


def state_of(order: Order, latest: Payment) -> State:
    return State.FULFILLED if order.fulfilled_at is not None else _STATES[latest.status]


def stages(order: Order, latest: Payment, journal: Sequence[Entry]) -> list[Stage]:
    """Of the payment that counts: the one that paid the order, or the latest."""
    reference = order.fulfilled_by or latest.reference
    mine = [entry for entry in journal if entry.reference == reference]
    first: dict[Step, Entry] = {}
    for entry in mine:
        first.setdefault(entry.step, entry)
    is_stuck = any(entry.step in _TROUBLES for entry in mine) and order.fulfilled_at is None
    found = []
    is_next = True
    for step in STAGES:
        known = first.get(step)
        if known is not None:
            found.append(Stage(step, Mark.DONE, known))
        elif is_next and step is not Step.WEBHOOK:
            found.append(Stage(step, Mark.TROUBLE if is_stuck else Mark.CURRENT, None))
            is_next = False
        else:
            # A webhook may come after the order was fulfilled, or never: nothing waits for it.
            found.append(Stage(step, Mark.WAITING, None))
    return found
