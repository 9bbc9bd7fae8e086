"""How many intents are made, as operators see it."""

from prometheus_client import REGISTRY

from tests.api.conftest import Merchant


def _made() -> float:
    return REGISTRY.get_sample_value("mizan_intent_creations_total") or 0.0


def test_an_intent_counts_once_however_often_it_is_created(merchant: Merchant) -> None:
    """A repeat, and a create that is refused, make none."""
    before = _made()
    statuses = [
        merchant.create().status_code,
        merchant.create().status_code,
        merchant.create(merchant_reference="order-2").status_code,
        merchant.create(merchant_reference="order-3", amount=-1).status_code,
    ]
    assert statuses == [201, 200, 201, 422]
    assert _made() == before + 2
