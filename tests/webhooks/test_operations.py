"""Operating the service: readiness, and refusals to start."""

from pathlib import Path

import pytest

from shared.domain.topics import PAYMENT_INTENT_EVENTS
from shared.platform.kafka.topic_setup import ensure_topics
from tests.servers import ServiceProcess
from tests.topics import delete_topic
from tests.waiting import eventually
from tests.webhooks.conftest import Webhooks

pytestmark = pytest.mark.stack


def test_service_with_a_single_consumer_reports_ready(webhooks: Webhooks, repository_root: Path) -> None:
    service = _service(webhooks, repository_root)
    with service.running("intake"):
        eventually(lambda: service.status() == 200)
        assert '"intake":"ok"' in service.page("readyz")
        assert "deliver" not in service.page("readyz")


def test_consumer_without_its_topic_is_not_ready(webhooks: Webhooks, repository_root: Path) -> None:
    kafka = webhooks.settings.kafka
    delete_topic(kafka, PAYMENT_INTENT_EVENTS)
    service = _service(webhooks, repository_root)
    with service.running("intake"):
        eventually(lambda: service.status() == 503 and "nothing to read from" in service.page("readyz"))
        ensure_topics(kafka, [PAYMENT_INTENT_EVENTS])
        eventually(lambda: service.status() == 200, 60)


@pytest.mark.parametrize(
    ("consumers", "environment"),
    [(["intaek"], {}), ([], {"MIZAN_SECRET_KEYS": ""})],
    ids=["an unknown consumer", "no keys"],
)
def test_service_refuses_to_start_with_an_unknown_consumer_or_without_keys(
    webhooks: Webhooks, repository_root: Path, consumers: list[str], environment: dict[str, str]
) -> None:
    with _service(webhooks, repository_root, **environment).running(*consumers) as process:
        assert process.wait(30) == 78


def _service(webhooks: Webhooks, root: Path, **environment: str) -> ServiceProcess:
    settings = webhooks.settings
    given = {"MIZAN_SECRET_KEYS": settings.secret_keys[0], "WEBHOOK_ALLOW_PRIVATE": "true", **environment}
    return ServiceProcess("services.webhooks", root, settings.database, settings.kafka, **given)
