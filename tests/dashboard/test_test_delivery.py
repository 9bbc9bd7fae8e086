"""Test deliveries are sent like all others, marked as tests, once for each click."""

import json
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import pytest
import requests

from services.dashboard.applications.test_delivery import send_test_delivery
from shared.domain.accounts.roles import Role
from shared.domain.applications.registry import set_webhook_url
from shared.domain.deliveries.pause import pause_webhooks
from shared.domain.messages import DeliveryDue, decode
from shared.platform.database.pool import Database
from shared.platform.outbound_url import WebhookUrl
from tests.clock import Clock
from tests.dashboard.world import WEBHOOK_URL, DashboardWorld
from tests.page_client import PageClient
from tests.waiting import eventually
from tests.webhooks.conftest import Webhooks
from tests.webhooks.merchants import is_signed
from tests.webhooks.receivers import Receiver, Reply


def page_of(world: DashboardWorld) -> str:
    return f"/applications/{world.application.id}/webhook"


def send(world: DashboardWorld, person: PageClient, **fields: str) -> requests.Response:
    person.open(page_of(world))
    return person.post(f"{page_of(world)}/test", **fields)


def count(world: DashboardWorld) -> tuple[int, int]:
    ((deliveries, records),) = world.rows(
        "select (select count(*) from webhook_deliveries), (select count(*) from outbox)"
    )
    return deliveries, records


@pytest.mark.parametrize("role", [Role.OWNER, Role.DEVELOPER])
def test_test_delivery_is_created_like_any_other_but_marked(
    pages: DashboardWorld, role: Role, clock: Clock
) -> None:
    """The row has the URL and secret version. The outbox record starts the first try."""
    clock.stop_at(datetime.fromisoformat("2026-11-15T12:00:00+00:00"))
    person = pages.person(role)
    answer = send(pages, person)
    ((delivery, intent, url, version, event, status, step, due, is_test),) = pages.rows(
        """select id, intent_uuid, url, secret_version, event, status, step, next_due_at, is_test
           from webhook_deliveries where application_id = %s""",
        pages.application.id,
    )
    assert (url, version, event, is_test) == (WEBHOOK_URL, 1, "payment_intent.succeeded", True)
    assert (status, step, due) == ("pending", 1, clock.now())
    assert (delivery.version, delivery.variant) == (7, intent.variant)
    assert pages.rows("select from payment_intents where uuid = %s", intent) == []
    ((topic, key, payload),) = pages.rows("select topic, key, payload from outbox")
    assert (topic, key) == ("webhooks.deliver", str(pages.application.id))
    assert decode(payload.encode()) == DeliveryDue(delivery, pages.application.id, 1, due)
    assert answer.history[0].status_code == 303
    assert f"/applications/{pages.application.id}/deliveries" in answer.url
    ((details,),) = pages.rows("select details from audit_log where action = 'test_delivery_sent'")
    assert details == {"delivery": str(delivery)}


@pytest.mark.usefixtures("all_topics")
def test_test_delivery_is_signed_sent_and_retried(world: DashboardWorld) -> None:
    settings = replace(world.settings.webhooks, retry_delays=(0.1,) * 8)
    world.settings = replace(world.settings, webhooks=settings)
    with Receiver() as receiver, world.serve(), Webhooks(world.settings).running_with_relay():
        codes = iter([500, 204])
        receiver.answer = lambda _: Reply(next(codes), b"")
        person = world.person(Role.DEVELOPER)
        person.open(page_of(world))
        person.post(f"{page_of(world)}/url", url=receiver.url)
        send(world, person)
        eventually(lambda: world.rows("select status from webhook_deliveries") == [("succeeded",)])
    first, again = receiver.requests
    assert first.body == again.body
    assert is_signed(first.body, first.headers["service-signature"], world.application.webhook_secret)
    ((delivery, intent, tries),) = world.rows("select id, intent_uuid, tries from webhook_deliveries")
    assert tries == 2
    assert json.loads(first.body) == {
        "id": str(delivery),
        "event": "payment_intent.succeeded",
        "data": {"uuid": str(intent)},
    }


def test_form_sent_twice_creates_one_test_delivery(pages: DashboardWorld) -> None:
    """Also if the application was paused meanwhile."""
    person = pages.person(Role.OWNER)
    form = person.open(page_of(pages))
    first = person.post(f"{page_of(pages)}/test")
    for _ in range(2):
        person.response = form
        assert person.post(f"{page_of(pages)}/test").url == first.url
        with pages.database.transaction() as connection:
            pause_webhooks(connection, pages.application.id)
    assert count(pages) == (1, 1)
    assert pages.audit().count("test_delivery_sent") == 1


def test_test_delivery_without_a_url_is_refused(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    form = person.open(page_of(pages))
    with pages.database.transaction() as connection:
        set_webhook_url(connection, pages.application.id, None)
    person.response = form
    person.post(f"{page_of(pages)}/test")
    assert "There is no webhook URL to send to. Set one first." in person.text
    assert "Send test delivery" not in person.response.text
    assert count(pages) == (0, 0)
    assert "test_delivery_sent" not in pages.audit()


def test_test_delivery_while_paused_is_refused(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    form = person.open(page_of(pages))
    with pages.database.transaction() as connection:
        pause_webhooks(connection, pages.application.id)
    person.response = form
    person.post(f"{page_of(pages)}/test")
    assert "An operator has paused the webhooks of this application. Nothing was sent." in person.text
    assert "Send test delivery" not in person.response.text
    assert count(pages) == (0, 0)


def test_test_delivery_with_an_invalid_form_token_is_refused(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    for form_token in ("", "x", "\x00", "019a8000-0000-7000-8000-000000000000"):
        send(pages, person, form_token=form_token)
        assert "open for too long" in person.text, form_token
    assert count(pages) == (0, 0)


def test_test_delivery_with_a_form_token_of_another_application_is_refused(pages: DashboardWorld) -> None:
    other = pages.make_merchant("Misrata Books")
    them = pages.person(Role.OWNER, other)
    them.open(f"/applications/{other.application.id}/webhook")
    form_token = them.hidden(f"/applications/{other.application.id}/webhook/test")["form_token"]
    assert send(pages, pages.person(Role.OWNER), form_token=form_token).status_code == 404
    assert count(pages) == (0, 0)


def test_test_delivery_with_an_expired_form_token_is_refused(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = pages.person(Role.OWNER)
    person.open(page_of(pages))
    monkeypatch.setattr("services.dashboard.applications.form_tokens._VALID_FOR_S", -1)
    person.post(f"{page_of(pages)}/test")
    assert "open for too long" in person.text
    assert count(pages) == (0, 0)


def test_test_delivery_never_replaces_another_delivery(world: DashboardWorld, database: Database) -> None:
    """Whatever its id, even that of another application."""
    other = world.make_merchant("Misrata Books").application.id
    taken = UUID("019a8000-0000-7000-8000-000000000000")
    with database.transaction() as connection:
        assert send_test_delivery(connection, other, taken)
    before = world.rows("select * from webhook_deliveries")
    with database.transaction() as connection:
        set_webhook_url(connection, world.application.id, WebhookUrl("https://new.example.ly/"))
        assert not send_test_delivery(connection, world.application.id, taken)
    assert world.rows("select * from webhook_deliveries") == before
    assert count(world) == (1, 1)
