"""The model of a delivery can fail: each rule of the product is broken once, and the model finds what that costs."""

from collections.abc import Callable

import pytest

from services.webhooks import retry_schedule
from services.webhooks.pipeline import next_action
from services.webhooks.pipeline.next_action import (
    Drop,
    NextAction,
    PublishExhausted,
    Requeue,
    Send,
    SetAside,
)
from services.webhooks.pipeline.queries import DeliveryState
from services.webhooks.retry_schedule import DeliveryStatus, RetryDecision
from shared.domain.messages import DeliveryDue
from tests.model.delivery_model import DeliveryModel
from tests.model.delivery_state import DeliveryBounds
from tests.model.exploration import CounterexampleError, explore
from tests.model.test_delivery_model import shorten_schedule

Patch = pytest.MonkeyPatch

DELIVERY = DeliveryBounds(steps=3, workers=1, resends=1, has_faults_of_application=True)
TWO_WORKERS = DeliveryBounds(steps=3, workers=2, resends=0, has_faults_of_application=False)


def _send_before_it_is_due(patch: Patch) -> None:
    original = next_action.decide

    def decide(due: DeliveryDue, delivery: DeliveryState | None) -> NextAction:
        is_early = delivery is not None and delivery.due_in_s > 0 and delivery.step == due.step
        return Send(delivery.original) if delivery and is_early else original(due, delivery)

    patch.setattr(next_action, "decide", decide)


def _send_old_records(patch: Patch) -> None:
    original = next_action.decide

    def decide(due: DeliveryDue, delivery: DeliveryState | None) -> NextAction:
        action = original(due, delivery)
        return Send(delivery.original) if delivery and isinstance(action, Requeue) else action

    patch.setattr(next_action, "decide", decide)


def _send_while_paused(patch: Patch) -> None:
    original = next_action.decide

    def decide(due: DeliveryDue, delivery: DeliveryState | None) -> NextAction:
        action = original(due, delivery)
        return Send(delivery.original) if delivery and isinstance(action, SetAside) else action

    patch.setattr(next_action, "decide", decide)


def _forget_the_last_try(patch: Patch) -> None:
    original = next_action.decide

    def decide(due: DeliveryDue, delivery: DeliveryState | None) -> NextAction:
        action = original(due, delivery)
        return Drop() if isinstance(action, PublishExhausted) else action

    patch.setattr(next_action, "decide", decide)


def _retry(changed: Callable[[int, bool], RetryDecision | None]) -> Callable[[Patch], None]:
    """Replace what follows a try, where `changed` returns something."""

    def make(patch: Patch) -> None:
        original = retry_schedule.decide_after_try

        def decide(step: int, *, is_success: bool, retry_delays: tuple[float, ...]) -> RetryDecision:
            broken = changed(step, is_success)
            return broken or original(step, is_success=is_success, retry_delays=retry_delays)

        patch.setattr(retry_schedule, "decide_after_try", decide)

    return make


def _skip_a_step(step: int, is_success: bool) -> RetryDecision | None:
    is_first_failure = step == 1 and not is_success
    return RetryDecision(DeliveryStatus.PENDING, 3, 1.0) if is_first_failure else None


def _retry_at_once(_: int, is_success: bool) -> RetryDecision | None:
    return None if is_success else RetryDecision(DeliveryStatus.PENDING, 2, 0.0)


def _give_up_early(step: int, is_success: bool) -> RetryDecision | None:
    return None if is_success else RetryDecision(DeliveryStatus.FAILED, step)


def _stay_pending(step: int, is_success: bool) -> RetryDecision | None:
    return RetryDecision(DeliveryStatus.PENDING, step, None) if is_success else None


BROKEN_DELIVERIES = {
    "a try is sent before it is due": (DELIVERY, "early", _send_before_it_is_due),
    "an old record is sent again": (DELIVERY, "early", _send_old_records),
    "a paused application is sent to": (DELIVERY, "paused", _send_while_paused),
    "the last failure is not published": (DELIVERY, "nobody is told", _forget_the_last_try),
    "a step is skipped": (DELIVERY, "a try was skipped", _retry(_skip_a_step)),
    "a retry does not wait": (DELIVERY, "too early or too late", _retry(_retry_at_once)),
    "a delivery fails early": (TWO_WORKERS, "failed before the last try", _retry(_give_up_early)),
    "a delivery is pending without a time": (TWO_WORKERS, "too early or too late", _retry(_stay_pending)),
}


@pytest.mark.parametrize("name", BROKEN_DELIVERIES)
def test_broken_rule_of_deliveries_is_found(name: str, monkeypatch: Patch) -> None:
    bounds, problem, make = BROKEN_DELIVERIES[name]
    shorten_schedule(monkeypatch, bounds.steps)
    make(monkeypatch)
    with pytest.raises(CounterexampleError) as found:
        explore(DeliveryModel(bounds))
    assert problem in found.value.problem
