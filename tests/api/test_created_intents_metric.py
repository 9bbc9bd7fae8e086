"""The metric of created intents."""

from prometheus_client import REGISTRY

from tests.api.conftest import Merchant


def _created() -> float:
    return REGISTRY.get_sample_value("mizan_intent_creations_total") or 0.0


def test_metric_counts_each_intent_once(merchant: Merchant) -> None:
    """Repeated and refused creates do not count."""
    before = _created()
    statuses = [
        merchant.create().status_code,
        merchant.create().status_code,
        merchant.create(merchant_reference="order-2").status_code,
        merchant.create(merchant_reference="order-3", amount=-1).status_code,
    ]
    assert statuses == [201, 200, 201, 422]
    assert _created() == before + 2
