"""End to end in a real browser and on a real stack: every service is a process, as in `make run`."""

import hmac
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from shared.platform.settings import DatabaseSettings, KafkaSettings
from tests.browser import Visitors
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.engines import TestEngines
from tests.stack.running_stack import RunningStack, whole_stack
from tests.stack_payments import StackPayments
from tests.waiting import eventually
from tests.webhooks.receivers import Received, Receiver, Reply

pytestmark = [pytest.mark.stack, pytest.mark.browser]

CHOSEN = "seven small boats at sea"


@pytest.fixture
def stack(
    tmp_path: Path, engines: TestEngines, database_settings: DatabaseSettings, kafka_settings: KafkaSettings
) -> Iterator[RunningStack]:
    places = engines, database_settings.url, kafka_settings.topic_prefix
    with whole_stack(tmp_path / "stack", *places, WEBHOOK_RETRY_DELAYS="3,1,1,1,1,1,1,1") as running:
        yield running


@pytest.mark.timeout(240)
def test_dashboard_from_the_first_sign_in_to_a_resend(stack: RunningStack, visitors: Visitors) -> None:
    facts = stack.read()
    colleagues = Colleagues(facts["dashboard_url"], visitors)
    owner = colleagues.come()
    owner.sign_in(facts["demo"]["owner_email"], facts["demo"]["owner_password"])
    with Receiver(Reply(503, b"<script>document.title = 'hacked'</script>not yet")) as shop:
        credentials = _make_application(owner, shop.url)
        payments = StackPayments(facts["api_base_url"], visitors)
        payments.pay(payments.create_intent(credentials["API key"], credentials["Access token"]))

        owner.link("Deliveries").click()
        owner.sees("Deliveries")
        # The page is not reloaded: it updates itself, from the first failed try to the success.
        expect(owner.main).to_contain_text("503", timeout=30_000)
        shop.answer = Reply(200, b"thank you")
        expect(owner.main.get_by_role("table")).to_contain_text("Succeeded", timeout=30_000)

        owner.main.get_by_role("row").nth(1).get_by_role("link").first.click()
        expect(owner.main).to_contain_text("Try 2")
        owner.main.locator("summary", has_text="Try 1").click()
        expect(owner.main).to_contain_text("<script>document.title = 'hacked'</script>not yet")
        assert "hacked" not in owner.page.title()
        first = shop.requests[-1]
        assert first.headers["service-signature"] == _signature(first, credentials["Webhook secret"])
        expect(owner.main).to_contain_text(first.headers["service-signature"])

        delivery = owner.page.url
        new_secret = _roll_secret(owner)
        assert new_secret != credentials["Webhook secret"]
        seen = len(shop.requests)
        owner.page.goto(delivery)
        owner.button("Resend").dblclick()
        resent = eventually(lambda: shop.requests[seen:])[0]
        assert resent.body == first.body
        assert resent.headers["service-signature"] == _signature(resent, new_secret)
        expect(owner.main).to_contain_text("Try 3", timeout=30_000)

        developer = _join(owner, colleagues, "developer", "developer@demo.example")
        developer.page.goto(delivery)
        developer.button("Resend").click()
        eventually(lambda: len(shop.requests) == seen + 2)
        viewer = _join(owner, colleagues, "viewer", "viewer@demo.example")
        viewer.page.goto(delivery)
        viewer.reads("Try 4")
        expect(viewer.button("Resend")).to_have_count(0)
        viewer.link("Webhook").click()
        viewer.sees("Webhook")
        expect(viewer.button("Roll secret")).to_have_count(0)
        assert len(shop.requests) == seen + 2, "a double click resends once"

    stranger = colleagues.come(expected_statuses=frozenset({404}))
    new = ("--email", "x@y.ly", "--role", "owner", "--merchant", "Other", "--json")
    made = stack.mizan("user", "create", *new)
    stranger.sign_in(made["email"], made["password"])
    stranger.page.goto(delivery)
    stranger.sees("There is no such page")
    expect(stranger.page.get_by_role("link", name="Coffee")).to_have_count(0)


def _make_application(owner: Colleague, webhook_url: str) -> dict[str, str]:
    owner.link("Create an application").click()
    owner.field("Name").fill("Coffee")
    owner.field("Webhook URL (optional)").fill(webhook_url)
    owner.button("Create application").click()
    owner.sees("The application was created")
    copied = {name: owner.copy(name) for name in ("API key", "Access token", "Webhook secret")}
    owner.link("I have copied them: to the application").click()
    return copied


def _roll_secret(owner: Colleague) -> str:
    owner.link("Webhook").click()
    owner.confirm("Roll secret")
    owner.sees("The new webhook secret")
    return owner.copy("Webhook secret")


def _join(owner: Colleague, colleagues: Colleagues, role: str, email: str) -> Colleague:
    owner.link("Team").click()
    owner.field("Email").fill(email)
    owner.field("Role").select_option(role)
    owner.button("Invite").click()
    link = owner.copy("Invitation link")
    invited = colleagues.come(link.removeprefix(colleagues.url))
    invited.field("Password").fill(CHOSEN)
    invited.button("Join").click()
    invited.sees("Applications")
    return invited


def _signature(request: Received, secret: str) -> str:
    return hmac.new(secret.encode(), request.body, "sha256").hexdigest()
