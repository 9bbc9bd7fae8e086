"""Every state of a payment within the bounds keeps all promises (§3): customers, crashes, time, bank and operators.

Nothing but attempts, requests and methods is bounded: notifications, inquiries and crashes repeat without end.
"""

from collections.abc import Callable

import pytest

from services.checkout.payments import one_time_codes
from tests.model.exploration import explore
from tests.model.payment_model import PaymentModel
from tests.model.payment_state import Bounds, Method
from tests.progress import SUMMARY_LINE

EVERY_METHOD = tuple(Method)
FAST = {
    "one attempt by any method": Bounds(attempts=1, requests=2, ticks=2, methods=EVERY_METHOD),
    "two attempts by card or page": Bounds(
        attempts=2, requests=1, ticks=2, methods=(Method.CARD, Method.PAGE), has_operators=False
    ),
    "one attempt, and the clock is set": Bounds(
        attempts=1, requests=2, ticks=1, methods=(Method.CARD, Method.WALLET), clock_is_set=True
    ),
}
LONG = {
    "one attempt with three requests": Bounds(attempts=1, requests=3, ticks=3, methods=EVERY_METHOD),
    "two attempts with codes": Bounds(
        attempts=2, requests=2, ticks=3, methods=(Method.CARD, Method.PAGE), has_operators=False
    ),
    "two attempts by wallet": Bounds(
        attempts=2,
        requests=1,
        ticks=2,
        methods=(Method.WALLET, Method.WALLET_WITHOUT_STATUS),
        has_operators=False,
    ),
    "two attempts, and the clock is set": Bounds(
        attempts=2,
        requests=1,
        ticks=2,
        methods=(Method.CARD, Method.WALLET),
        has_operators=False,
        clock_is_set=True,
    ),
    "two attempts and operators": Bounds(attempts=2, requests=1, ticks=3, methods=(Method.CARD, Method.PAGE)),
}


@pytest.fixture(autouse=True)
def few_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last code that the customer may enter is within the bounds."""
    monkeypatch.setattr(one_time_codes, "MAX_CODE_TRIES", 2)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def test_every_state_of_a_payment(name: str, record_property: Callable[[str, object], None]) -> None:
    explored = explore(PaymentModel({**FAST, **LONG}[name]))
    record_property(SUMMARY_LINE, f"Model of a payment, {name}: {explored}")
