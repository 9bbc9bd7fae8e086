"""The overview page answers three questions at a glance, whichever source is unavailable."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest

from services.monitor.inspection.poller import Poller
from services.monitor.inspection.snapshots import (
    AttemptFigures,
    Backlog,
    BoundedCount,
    DeadLetterCounts,
    DeliveryFigures,
    PaymentFigures,
    PollResult,
    ServiceStatus,
)
from shared.platform.kafka.inspection.health import Health
from shared.platform.settings import MonitorSettings
from stack.engines import Engines
from tests.monitor.rows import make_attempt, make_delivery, make_event
from tests.monitor.snapshot_builders import figures, group, kafka, lag, service
from tests.monitor.test_inspection_services import answering, http
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient

BUSY = figures(
    payments=PaymentFigures(
        paid=BoundedCount(140), paid_in_5_minutes=12, attempts=BoundedCount(150), attempts_paid=140
    ),
    deliveries=DeliveryFigures({1: 2, 4: 3}, succeeded=300),
)
HOSTILE = "<script>alert(1)</script>\u202e"


def shows(world: MonitorWorld, *, at: datetime | None = None, **found: object) -> None:
    """Set the results of the pollers, as of now unless `at` is given."""
    for name, value in found.items():
        looker: Poller[object] = getattr(world.inspector, name)
        looker._result = (
            value if isinstance(value, PollResult) else PollResult(value, at or datetime.now(UTC))
        )


def test_healthy_system_is_shown_without_problems(pages: MonitorWorld, operator: PageClient) -> None:
    shows(pages, database=BUSY, kafka=kafka(), services=(service(),))
    operator.open("/")
    assert operator.title == "Overview"
    assert "Is money being taken? Yes 12 payments paid in the last 5 minutes" in operator.text
    assert "Are webhooks going out? Yes" in operator.text
    assert "Is anything stuck? No" in operator.text
    assert "What is wrong" not in operator.text


def test_idle_system_is_shown_as_quiet_without_problems(pages: MonitorWorld, operator: PageClient) -> None:
    shows(pages, database=figures(), kafka=kafka(), services=())
    operator.open("/")
    assert "Is money being taken? Quiet" in operator.text
    assert "Are webhooks going out? Quiet" in operator.text
    assert "What is wrong" not in operator.text


def test_problems_are_listed_with_links(pages: MonitorWorld, operator: PageClient) -> None:
    stuck = kafka(
        group("payment_intents.events", lag(records=7, seconds=99), name="webhooks.intake"),
        health=Health.STALLED,
        dead={"dead_letters": DeadLetterCounts(3, 2, 3)},
    )
    waiting = figures(attempts=AttemptFigures({"sent": 1, "unknown": 0}, 400.0, Backlog(1, 9.0)))
    down = ServiceStatus("scheduler", "http://127.0.0.1:1", False, False, ("Connection refused",), None)
    shows(pages, database=waiting, kafka=stuck, services=(down,))
    page = operator.open("/").text
    assert 'href="/topics/payment_intents.events"' in page
    assert 'href="/dead-letters"' in page
    assert 'href="/attempts"' in page
    assert '<a href="/docs/en/operations/alerts/ConsumerStalled/" hreflang="en">What to do</a>' in page
    for words in (
        "webhooks.intake is stalled: 7 records wait and none is processed.",
        "2 records could not be processed in the last hour.",
        "A payment attempt has had no outcome for 6.7 min.",
        "The service scheduler is down.",
        "Connection refused",
        "1 payment attempt waits for your decision.",
    ):
        assert words in operator.text.replace(" .", "."), words
    assert operator.text.count("Act now") == 4
    assert operator.text.count("Check soon") == 1


def test_script_gets_only_the_partial_of_the_overview(pages: MonitorWorld, operator: PageClient) -> None:
    shows(pages, database=BUSY)
    part = operator.open("/", **{"X-Part": "overview"})
    assert part.status_code == 200
    assert "<html" not in part.text
    assert "Is money being taken?" in part.text


def test_overview_before_the_first_poll_says_not_known_yet(pages: MonitorWorld, operator: PageClient) -> None:
    operator.open("/")
    assert operator.text.count("Not known yet") == 3
    assert "The database was not checked yet." in operator.text


@pytest.mark.parametrize("lang", ["en", "ar"])
def test_unavailable_kafka_is_shown_with_the_time_of_the_last_poll(pages: MonitorWorld, lang: str) -> None:
    person = pages.person(lang)
    old = PollResult(
        kafka(), datetime.now(UTC) - timedelta(minutes=7), "no answer within 5 s", datetime.now(UTC)
    )
    shows(pages, database=BUSY, kafka=old)
    assert person.open("/").status_code == 200
    if lang == "en":
        assert "Kafka does not answer. Payments continue; webhooks wait." in person.text
        assert "This information is old. It is from" in person.text
        assert "Is money being taken? Yes" in person.text


@pytest.mark.kills
@pytest.mark.timeout(300)
def test_overview_is_shown_to_a_known_operator_while_postgresql_is_down(
    pages: MonitorWorld, operator: PageClient, killable_engines: Engines
) -> None:
    pages.inspector.database.poll_once()
    operator.open("/")
    killable_engines.postgres.kill()
    pages.inspector.database.poll_once()
    away = pages.inspector.database
    away._result = replace(away.result, at=datetime.now(UTC) - timedelta(minutes=2))
    assert operator.open("/").status_code == 200
    assert "The database does not answer." in operator.text
    assert "This information is old" in operator.text
    assert "Is money being taken? In trouble" in operator.text
    assert operator.open("/topics").status_code == 200


def test_overview_shows_polled_figures_and_escapes_text_of_services(
    pages: MonitorWorld, operator: PageClient
) -> None:
    make_event(pages, "succeeded")
    make_attempt(pages, "duplicate")
    make_delivery(pages, step=2, overdue=timedelta(hours=1))
    answer = {"checks": {HOSTILE: HOSTILE}}
    with answering(http("503 Service Unavailable", json.dumps(answer).encode())) as hostile:
        targets = MonitorSettings(targets=MappingProxyType({"api": hostile}))
        pages.inspector._settings = replace(pages.settings, monitor=targets)
        pages.inspector.poll_once()
    page = operator.open("/")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<script>alert(1)</script>" in operator.text
    assert "\u202e" not in page.text
    assert "1 duplicate payment is not handled." in operator.text
    assert "A delivery is overdue by 1 h." in operator.text
