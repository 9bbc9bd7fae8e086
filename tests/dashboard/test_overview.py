"""The overview: figures, charts and warnings, without a browser."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from services.dashboard.overview import queries
from shared.console.days import local_day, start_of_day
from shared.domain.accounts.roles import Role
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.registry import NewApplication, create_application, set_webhook_url
from shared.domain.deliveries.pause import pause_webhooks
from shared.domain.intents.states import IntentStatus
from tests.clock import Clock
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.payment_rows import deliver_all, make_delivery, make_intent, make_many
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

_FIGURE = re.compile(r"<dt>([^<]*)</dt><dd>(?:<bdi[^>]*>)?([^<]*)(?:</bdi>)?</dd>")
_FAILING = "Your endpoint is failing."


def overview(world: DashboardWorld, person: PageClient | None = None, lang: str = "en") -> PageClient:
    person = person or world.person(Role.VIEWER)
    answer = person.open(f"/applications/{world.application.id}?lang={lang}")
    assert answer.status_code == 200
    return person


def figures(person: PageClient) -> dict[str, str]:
    return {name: value.replace("\xa0", " ") for name, value in _FIGURE.findall(person.response.text)}


def test_steps_of_get_started_tick_themselves(pages: DashboardWorld) -> None:
    """For every role. A merchant's other application does not count, except that it may be the live one."""
    pages.merchant = pages.make_merchant("Benghazi Books", ApplicationMode.TEST)
    pages.application = pages.merchant.application
    people = [pages.person(role) for role in Role]
    steps = (
        "Create a payment intent",
        "Take a payment",
        "Verify a webhook",
        "Handle a payment that fails",
        "Go live",
    )

    def done() -> list[str]:
        found = {
            tuple(step for step in steps if f"{step} Done" in overview(pages, one).text) for one in people
        }
        (same_for_all,) = found
        assert f"{len(same_for_all)} of 5 steps done" in people[0].text
        is_open = 'id="get-started" open>' in people[0].response.text
        assert is_open == (len(same_for_all) < len(steps))
        return list(same_for_all)

    other = pages.make_merchant("Other").application.id
    make_intent(pages, "of another", IntentStatus.SUCCEEDED, application_id=other)
    Deliveries(pages.database, other).make("succeeded", 200)
    assert done() == []
    make_intent(pages, "order 1")
    assert done() == [steps[0]]
    make_intent(pages, "order 2", IntentStatus.SUCCEEDED)
    assert done() == list(steps[:2])
    deliveries = Deliveries(pages.database, pages.application.id)
    deliveries.make("failed", 500)
    assert done() == list(steps[:2])
    deliveries.make("succeeded", 200)
    assert done() == list(steps[:3])
    deliveries.make("succeeded", 200, event="payment_intent.canceled")
    assert done() == list(steps[:4])
    with pages.database.transaction() as connection:
        new = NewApplication("live shop", pages.merchant.id, mode=ApplicationMode.LIVE)
        create_application(connection, pages.box, new)
    assert done() == list(steps)


def test_get_started_has_the_address_and_a_call(pages: DashboardWorld) -> None:
    pages.merchant = pages.make_merchant("Benghazi Books", ApplicationMode.TEST)
    pages.application = pages.merchant.application
    text = overview(pages, pages.person(Role.VIEWER)).text
    api = pages.settings.public_urls.api
    assert f"curl -sS '{api}/api/v1/payment-intents'" in text
    assert "X-API-Key: pk_test_…" in text
    assert "Test application. Its customers pay in the sandbox, and no money moves." in text


def test_overview_sums_payments_of_the_last_fourteen_days(pages: DashboardWorld) -> None:
    """By the Libyan day of creation. Older payments and those of others do not count."""
    first = start_of_day(local_day(datetime.now(UTC)) - timedelta(days=13))
    make_intent(pages, "a", IntentStatus.SUCCEEDED, amount=10_000, at=first + timedelta(seconds=2))
    make_intent(pages, "b", IntentStatus.SUCCEEDED, amount=2_500)
    make_intent(pages, "c", IntentStatus.CANCELED, amount=7_000)
    make_intent(pages, "d", IntentStatus.REQUIRES_PAYMENT_METHOD)
    make_intent(pages, "e", IntentStatus.PROCESSING)
    make_intent(pages, "too old", IntentStatus.SUCCEEDED, amount=99_000, at=first - timedelta(seconds=2))
    other = pages.make_merchant("Other").application.id
    make_intent(pages, "not ours", IntentStatus.SUCCEEDED, amount=99_000, application_id=other)
    person = overview(pages)
    shown = figures(person)
    assert shown["Amount paid"] == "LYD 12.500"
    assert shown["Payments paid"] == "2"
    assert shown["Payments created"] == "5"
    page = person.response.text
    assert page.count('<rect class="paid"') == 2
    assert page.count('<rect class="open"') == 1
    assert page.count('<rect class="expired"') == 1


def test_counts_of_deliveries_exclude_test_deliveries(pages: DashboardWorld) -> None:
    intent = make_intent(pages, "a", IntentStatus.SUCCEEDED)
    for status, code in (("succeeded", 200), ("succeeded", 200), ("pending", 500), ("failed", 404)):
        make_delivery(pages, intent, status, status_code=code)
    make_delivery(pages, None, "failed", status_code=500, is_test=True)
    person = overview(pages)
    assert figures(person)["Share of deliveries that arrived"] == "50%"
    assert "Deliveries of each day: 2 succeeded, 4 in all." in person.text
    assert "Of the newest 5 deliveries that were tried, 40% arrived." in person.text


def test_time_to_delivery_is_from_the_event_to_the_first_success(pages: DashboardWorld) -> None:
    intent = make_intent(pages, "a", IntentStatus.SUCCEEDED)
    at = datetime.now(UTC) - timedelta(hours=1)
    for seconds in (0.25, 5, 90):
        made = make_delivery(pages, intent, at=at, took=timedelta(seconds=seconds))
        pages.run(
            """insert into webhook_tries (delivery_id, number, resend_id, at, duration_ms, url, status_code)
               values (%s, 2, uuidv7(), now(), 100, 'https://shop.example.ly/hooks', 200)""",
            made,
        )
    make_delivery(pages, None, at=at, took=timedelta(hours=5), is_test=True)
    shown = figures(overview(pages))
    assert shown["Median"] == "5 s"
    assert shown["95 of 100 within"] == "1.5 min"


def test_a_failing_endpoint_is_reported_until_it_recovers(pages: DashboardWorld) -> None:
    """Since when, with which response, and a link. One successful test delivery ends it."""
    intent = make_intent(pages, "a", IntentStatus.SUCCEEDED)
    now = datetime.now(UTC)
    make_delivery(pages, intent, at=now - timedelta(minutes=9))
    for minutes in (3, 2):
        make_delivery(pages, intent, "pending", at=now - timedelta(minutes=minutes), status_code=500)
    # Deliveries that were not tried, or that ended without a URL, do not count.
    make_delivery(pages, intent, "pending", tries=0, status_code=None)
    make_delivery(pages, intent, "failed", tries=1, status_code=None, failure="no_url")
    person = overview(pages)
    assert _FAILING not in person.text
    make_delivery(pages, intent, "failed", at=now - timedelta(minutes=1), status_code=None, failure="timeout")
    overview(pages, person)
    assert f"{_FAILING} The newest 3 deliveries did not arrive." in person.text
    assert "The last answer was: No answer in time." in person.text
    for link in ("deliveries", "webhook"):
        assert f'href="/applications/{pages.application.id}/{link}"' in person.response.text
    make_delivery(pages, None, is_test=True)
    assert _FAILING not in overview(pages, person).text


def test_failures_of_a_previous_url_do_not_count(pages: DashboardWorld) -> None:
    intent = make_intent(pages, "a", IntentStatus.SUCCEEDED)
    for _ in range(4):
        make_delivery(pages, intent, "failed", status_code=500, url="https://old.example.ly/hooks")
    assert _FAILING not in overview(pages).text


def test_many_untried_deliveries_do_not_hide_a_failing_endpoint(pages: DashboardWorld) -> None:
    """As when many deliveries are due at once."""
    make_many(pages, 3_000, apart=timedelta(milliseconds=10), statuses=[IntentStatus.SUCCEEDED])
    deliver_all(pages)
    pages.run(
        """update webhook_deliveries set status = 'pending', tries = 0, last_status_code = null, next_due_at = now()"""
    )
    for minutes in (10, 11, 12):
        at = datetime.now(UTC) - timedelta(minutes=minutes)
        make_delivery(pages, None, "pending", at=at, status_code=503)
    assert "The newest 3 deliveries did not arrive." in overview(pages).text


def test_a_missing_url_and_a_pause_are_reported(pages: DashboardWorld) -> None:
    make_intent(pages, "a")
    person = overview(pages)
    for sentence in ("No webhook URL is set.", "Your webhooks are paused."):
        assert sentence not in person.text
    with pages.database.transaction() as connection:
        set_webhook_url(connection, pages.application.id, None)
        pause_webhooks(connection, pages.application.id)
    overview(pages, person)
    for sentence in ("No webhook URL is set.", "Your webhooks are paused. An operator paused them on"):
        assert sentence in person.text


def test_overview_uses_the_days_of_the_databases_clock(pages: DashboardWorld, clock: Clock) -> None:
    make_intent(pages, "a", IntentStatus.SUCCEEDED)
    assert figures(overview(pages))["Payments paid"] == "1"
    clock.advance(timedelta(days=20))
    assert figures(overview(pages))["Payments paid"] == "0"


def test_truncated_counts_are_reported(pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    make_many(pages, 50, statuses=[IntentStatus.SUCCEEDED])
    for name in ("PAYMENTS_SQL", "DELIVERIES_SQL"):
        monkeypatch.setattr(queries, name, getattr(queries, name).replace("limit 100001", "limit 21"))
    monkeypatch.setattr(queries, "MAX_PER_DAY", 20)
    person = overview(pages)
    assert int(figures(person)["Payments paid"]) <= 40
    assert "more than is counted" in person.text


def test_complete_counts_are_not_marked_as_truncated(pages: DashboardWorld) -> None:
    make_many(pages, 50, statuses=[IntentStatus.SUCCEEDED])
    person = overview(pages)
    assert figures(person)["Payments paid"] == "50"
    assert "more than is counted" not in person.text


def test_charts_have_text_alternatives(pages: DashboardWorld) -> None:
    """A title, and the numbers as a table. There is no inline style or script."""
    make_many(pages, 40, apart=timedelta(hours=2))
    deliver_all(pages)
    page = overview(pages).response.text
    charts = re.findall(r"<svg class=\"chart.*?</svg>", page, re.DOTALL)
    assert len(charts) == 4
    for chart in charts:
        assert 'role="img"' in chart
        assert "<title>" in chart
    assert page.count("<details") >= 4
    assert " style=" not in page
    assert "<style" not in page


def test_charts_run_from_right_to_left_in_arabic(pages: DashboardWorld) -> None:
    make_many(pages, 40, apart=timedelta(hours=6))
    names = re.compile(r'<text class="name" x="([0-9.]+)"')
    charts = [overview(pages, lang=lang).response.text.split("</svg>") for lang in ("en", "ar")]
    english, arabic = (
        [float(x) for x in names.findall(next(part for part in parts if 'class="name"' in part))]
        for parts in charts
    )
    assert english == sorted(english)
    assert arabic == sorted(arabic, reverse=True)
