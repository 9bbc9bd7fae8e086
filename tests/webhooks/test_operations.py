"""What operators see of the running service: it says when it is ready, and has every metric that the docs name."""

import re
from pathlib import Path

from shared.kafka.topic_check import ensure_topics
from shared.topics import PAYMENT_INTENT_EVENTS
from tests.lost_topics import delete_topic
from tests.running_service import Service
from tests.waiting import eventually
from tests.webhooks.conftest import Webhooks


def test_a_part_alone_says_when_it_is_ready(webhooks: Webhooks, repository_root: Path) -> None:
    service = _service(webhooks, repository_root)
    with service.running("intake"):
        eventually(lambda: service.status() == 200)
        assert '"intake":"ok"' in service.page("readyz")
        assert "deliver" not in service.page("readyz")


def test_a_part_whose_topic_is_missing_is_not_ready(webhooks: Webhooks, repository_root: Path) -> None:
    kafka = webhooks.settings.kafka
    delete_topic(kafka, PAYMENT_INTENT_EVENTS)
    service = _service(webhooks, repository_root)
    with service.running("intake"):
        eventually(lambda: service.status() == 503 and "nothing to read from" in service.page("readyz"))
        ensure_topics(kafka, [PAYMENT_INTENT_EVENTS])
        eventually(lambda: service.status() == 200, 60)


def test_an_unknown_part_is_refused(webhooks: Webhooks, repository_root: Path) -> None:
    with _service(webhooks, repository_root).running("intaek") as process:
        assert process.wait(30) == 78


def test_without_keys_it_refuses_to_start(webhooks: Webhooks, repository_root: Path) -> None:
    with _service(webhooks, repository_root, MIZAN_SECRET_KEYS="").running() as process:
        assert process.wait(30) == 78


def test_every_metric_that_the_docs_name_is_there(webhooks: Webhooks, repository_root: Path) -> None:
    docs = (repository_root / "docs" / "operations.md").read_text().partition("## The webhooks")[2]
    named = set(re.findall(r"`(mizan_\w+)", docs))
    assert len(named) > 10
    service = _service(webhooks, repository_root)
    with service.running():
        eventually(lambda: service.status() == 200)
        shown = service.page("metrics")
    assert {name for name in named if f"# TYPE {name.removesuffix('_total')}" not in shown} == set()


def _service(webhooks: Webhooks, root: Path, **environment: str) -> Service:
    settings = webhooks.settings
    given = {"MIZAN_SECRET_KEYS": settings.secret_keys[0], "WEBHOOK_ALLOW_PRIVATE": "true", **environment}
    return Service("services.webhooks", root, settings.database, settings.kafka, **given)
