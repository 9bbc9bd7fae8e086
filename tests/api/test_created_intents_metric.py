"""The metric of created intents."""

from prometheus_client import REGISTRY

from tests.api.conftest import Merchant


def _created() -> float:
    return REGISTRY.get_sample_value("mizan_intent_creations_total") or 0.0


def test_an_intent_counts_once_however_often_it_is_created(merchant: Merchant) -> None:
    """A repeated create and a refused one do not count."""
    before = _created()
    statuses = [
        merchant.create().status_code,
        merchant.create().status_code,
        merchant.create(merchant_reference="order-2").status_code,
        merchant.create(merchant_reference="order-3", amount=-1).status_code,
    ]
    assert statuses == [201, 200, 201, 422]
    assert _created() == before + 2
