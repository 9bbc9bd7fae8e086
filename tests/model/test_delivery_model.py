"""Every state of a webhook delivery keeps the retry schedule (§6.6), whatever is repeated, lost or killed."""

from collections.abc import Callable

import pytest

from services.webhooks import retry_schedule
from services.webhooks.pipeline import next_action
from tests.model.delivery_model import DeliveryModel
from tests.model.delivery_state import DeliveryBounds
from tests.model.exploration import explore
from tests.progress import SUMMARY_LINE

FAST = {
    "all 9 tries": DeliveryBounds(steps=9, workers=1, resends=0, has_faults_of_application=False, records=1),
    "3 tries, resends, pauses, no URL": DeliveryBounds(
        steps=3, workers=1, resends=1, has_faults_of_application=True
    ),
}
LONG = {
    "all 9 tries, pauses, no URL": DeliveryBounds(
        steps=9, workers=1, resends=0, has_faults_of_application=True
    ),
    "3 tries, two workers, pauses, no URL": DeliveryBounds(
        steps=3, workers=2, resends=0, has_faults_of_application=True
    ),
    "2 tries, two workers, resends, pauses, no URL": DeliveryBounds(
        steps=2, workers=2, resends=1, has_faults_of_application=True
    ),
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def test_every_state_of_a_delivery(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    bounds = {**FAST, **LONG}[name]
    shorten_schedule(monkeypatch, bounds.steps)
    explored = explore(DeliveryModel(bounds))
    record_property(SUMMARY_LINE, f"Model of a delivery, {name}: {explored}")


def shorten_schedule(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Let the product make fewer tries, so that more of everything else can be explored."""
    for module in (retry_schedule, next_action):
        monkeypatch.setattr(module, "LAST_STEP", steps)
    monkeypatch.setattr(retry_schedule, "decide_after_try", retry_schedule.decide_after_try.__wrapped__)
