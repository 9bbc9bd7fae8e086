"""What is to be done about a record, given what the database knows of its delivery. Pure.

A record may be read twice, late, or by two processes: the delivery's status and step decide, never the record.
"""

from dataclasses import dataclass

import msgspec

from services.webhooks.pipeline.queries import DeliveryState, DeliveryTarget
from services.webhooks.retry_schedule import LAST_STEP, DeliveryStatus
from shared.domain.messages import DeliveryDue


class Send(msgspec.Struct, frozen=True):
    target: DeliveryTarget


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing: it has been done, or was never ours to do. `why` is for people where it was their wish."""

    why: str | None = None


@dataclass(frozen=True, slots=True)
class Requeue:
    """It stands at another step, or is early: whoever moved it on may have died before it said so."""


@dataclass(frozen=True, slots=True)
class PublishExhausted:
    """Its ladder is used up: whoever saw that may have died before it said so."""


@dataclass(frozen=True, slots=True)
class FailWithoutUrl:
    """The application's URL was removed: nothing is sent any more."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """The application is paused."""


NextAction = Send | Drop | Requeue | PublishExhausted | FailWithoutUrl | SetAside


def decide(due: DeliveryDue, delivery: DeliveryState | None) -> NextAction:
    if delivery is None:
        return Drop()
    if delivery.status is not DeliveryStatus.PENDING:
        return PublishExhausted() if _is_used_up(due, delivery) else Drop()
    if delivery.step < due.step:
        return Drop()
    # A first try is due at once; if it seems early, the clock was set back.
    if delivery.step > due.step or (delivery.due_in_s > 0 and due.step > 1):
        return Requeue()
    if delivery.current is None:
        return FailWithoutUrl()
    return SetAside() if delivery.is_paused else Send(delivery.frozen)


def decide_resend(delivery: DeliveryState | None, *, is_met: bool) -> Send | Drop:
    """`is_met`: this wish has been met already."""
    if delivery is None or is_met:
        return Drop()
    if delivery.current is None:
        return Drop("its application has no webhook URL")
    if delivery.is_paused:
        return Drop("an operator has paused its application's webhooks")
    return Send(delivery.current)


def _is_used_up(due: DeliveryDue, delivery: DeliveryState) -> bool:
    return (
        delivery.status is DeliveryStatus.FAILED and due.step == LAST_STEP and not delivery.ended_without_url
    )
