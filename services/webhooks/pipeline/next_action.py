"""Decides what to do with a record, given the current state of its delivery in the database. Pure.

A record may be read twice, late, or by two processes. Status and step of the delivery decide, never the record alone.
"""

from dataclasses import dataclass

import msgspec

from services.webhooks.pipeline.queries import DeliveryState, DeliveryTarget
from services.webhooks.retry_schedule import FIRST_STEP, LAST_STEP, DeliveryStatus
from shared.domain.messages import DeliveryDue


class Send(msgspec.Struct, frozen=True):
    target: DeliveryTarget


@dataclass(frozen=True, slots=True)
class Drop:
    """Do nothing: the try was made already, or there is nothing to send. `why` is logged if somebody asked for it."""

    why: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """Send the record to the dead letters: it contradicts the database."""

    reason: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """Publish the delivery again for its current step: it is at a later step, or it is not due yet.

    The process that moved it to that step may have died before it published the record for it.
    """


@dataclass(frozen=True, slots=True)
class PublishExhausted:
    """Publish that all tries have failed: the process that recorded the last one may have died before it did."""


@dataclass(frozen=True, slots=True)
class FailWithoutUrl:
    """End the delivery as failed: the application's URL was removed."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """Keep the delivery pending until its application is resumed."""


NextAction = Send | Drop | Reject | Requeue | PublishExhausted | FailWithoutUrl | SetAside


def decide(due: DeliveryDue, delivery: DeliveryState | None) -> NextAction:
    """Return what to do with a scheduled try; `delivery` is None if there is no such delivery."""
    if delivery is None:
        return Drop()
    if delivery.status is not DeliveryStatus.PENDING:
        return PublishExhausted() if _is_exhausted(due, delivery) else Drop()
    if delivery.step < due.step:
        return Drop()
    # A first try is due at once. If it seems early, the clock was set back.
    if delivery.step > due.step or (delivery.due_in_s > 0 and due.step > FIRST_STEP):
        return Requeue()
    if delivery.current is None:
        return FailWithoutUrl()
    return SetAside() if delivery.is_paused else Send(delivery.original)


def decide_resend(
    delivery: DeliveryState | None, *, is_recorded: bool, is_unless_succeeded: bool = False
) -> Send | Drop:
    """Return what to do with a resend; `is_recorded` says that it was sent and recorded before.

    With `is_unless_succeeded` it is one of a bulk resend, which is for deliveries that have not succeeded.
    """
    if delivery is None or is_recorded:
        return Drop()
    if is_unless_succeeded and delivery.status is DeliveryStatus.SUCCEEDED:
        return Drop()
    if delivery.current is None:
        return Drop("its application has no webhook URL")
    if delivery.is_paused:
        return Drop("an operator has paused its application's webhooks")
    return Send(delivery.current)


def _is_exhausted(due: DeliveryDue, delivery: DeliveryState) -> bool:
    return (
        delivery.status is DeliveryStatus.FAILED and due.step == LAST_STEP and not delivery.ended_without_url
    )
