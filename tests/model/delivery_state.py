"""The state of the delivery model: the row of one delivery, its records in Kafka, and the workers on them."""

from typing import NamedTuple
from uuid import UUID

from services.webhooks.pipeline.queries import DeliveryState, DeliveryTarget
from services.webhooks.retry_schedule import DeliveryStatus

DELIVERY_ID = UUID(int=1)
_TARGET = DeliveryTarget("https://shop.example.ly/hook", 1)
DELAYS = (1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Ticks after each failed try except the last."""


class Record(NamedTuple):
    """A record on webhooks.deliver, or on a delay topic while it is not due."""

    step: int
    due_in: int = 0


class Try(NamedTuple):
    """A worker's work on a record. Only when it is done is the record done."""

    step: int
    """0 for a resend."""
    result: str
    """What the worker has: looked up, failed, succeeded, or written."""
    publishes: Record | str | None = None
    """What it still has to publish: a record, or that all tries failed."""


class Delivery(NamedTuple):
    status: DeliveryStatus = DeliveryStatus.PENDING
    step: int = 1
    due_in: int | None = 0
    scheduled_tries: int = 0
    ended_without_url: bool = False
    is_set_aside: bool = False
    has_url: bool = True
    is_paused: bool = False
    is_exhausted_published: bool = False
    resends_left: int = 0
    """How often a developer may still click on resend."""
    resend_requested: bool = False
    records: frozenset[Record] = frozenset({Record(1)})
    """Records that are not done."""
    workers: tuple[Try, ...] = ()
    is_topic_lost: bool = False
    """Whether records were lost with their topic at some time."""


class DeliveryBounds(NamedTuple):
    steps: int
    """Tries in all: 9, unless the product is patched to have fewer."""
    workers: int
    resends: int
    has_faults_of_application: bool
    """Whether the application is paused and resumed, and its URL removed and set again."""
    records: int = 2
    """Records of the delivery that are not done at once, if old ones are read again."""


def describe(state: Delivery) -> str:
    records = ", ".join(f"step {one.step} in {one.due_in}" for one in sorted(state.records)) or "none"
    workers = ", ".join(f"step {one.step} {one.result}" for one in state.workers) or "none"
    return (
        f"{state.status}, step {state.step}, due in {state.due_in}, {state.scheduled_tries} tries, "
        f"url {state.has_url}, paused {state.is_paused}, records: {records}; workers: {workers}"
    )


def as_row(state: Delivery) -> DeliveryState:
    return DeliveryState(
        str(DELIVERY_ID),
        str(DELIVERY_ID),
        str(DELIVERY_ID),
        "payment_intent.succeeded",
        state.status,
        state.step,
        None,
        _TARGET,
        _TARGET if state.has_url else None,
        state.is_paused,
        float(state.due_in or 0),
        state.ended_without_url,
    )


def add_worker(state: Delivery, one: Try) -> Delivery:
    return state._replace(workers=tuple(sorted((*state.workers, one), key=repr)))


def replace_worker(state: Delivery, before: Try, after: Try | None) -> Delivery:
    workers = list(state.workers)
    workers.remove(before)
    left = state._replace(workers=tuple(workers))
    return left if after is None else add_worker(left, after)


def publish(state: Delivery, record: Record) -> Delivery:
    return state._replace(records=state.records | {record})


def done(state: Delivery, step: int) -> Delivery:
    return state._replace(records=state.records - {Record(step)})
