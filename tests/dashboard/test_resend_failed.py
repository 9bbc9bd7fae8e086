"""Resending all failed deliveries of a period: count, confirmation, progress bar, and stop."""

import re
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from services.scheduler.jobs.bulk_resends import BulkResends
from shared.console.days import local_day
from shared.domain.accounts.roles import Role
from shared.domain.deliveries.bulk_selection import BATCH
from shared.platform.database.pool import fetch_scalar
from tests.clock import Clock
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

A_DAY = timedelta(days=1)
_VALUE = re.compile(r'<progress id="progress" max="1" value="([\d.]+)"')


def address_of(pages: DashboardWorld, tail: str = "/resend-failed") -> str:
    return f"/applications/{pages.application.id}/deliveries{tail}"


def resends_path(pages: DashboardWorld) -> str:
    """Return the path that the confirmation form posts to."""
    return address_of(pages, "/resends")


def begin(pages: DashboardWorld, person: PageClient, query: str = "") -> str:
    """Confirm the count of the page, and return the path it redirects to."""
    person.open(address_of(pages) + query)
    person.post(resends_path(pages))
    assert person.title == "Resending failed deliveries", person.text
    return person.response.url.removeprefix(pages.url)


def days_ago(pages: DashboardWorld, days: int) -> str:
    with pages.database.cursor() as cursor:
        now = fetch_scalar(cursor, "select mizan_now()")
    return str(local_day(now) - days * A_DAY)


def progress_on(person: PageClient) -> float:
    found = _VALUE.search(person.response.text)
    assert found is not None
    return float(found[1])


def test_page_counts_failed_deliveries_of_a_period_before_resending(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    """By default of the last seven days."""
    for days in (0, 1, 5, 9, 40):
        deliveries.make("failed", 500, ago=days * A_DAY)
    deliveries.make("pending", 500)
    developer.open(address_of(pages))
    assert "3 deliveries of these days have failed." in developer.text
    developer.open(address_of(pages) + f"?from={days_ago(pages, 45)}&until={days_ago(pages, 9)}")
    assert "2 deliveries of these days have failed." in developer.text
    developer.open(address_of(pages) + f"?from={days_ago(pages, 30)}&until={days_ago(pages, 20)}")
    assert "No delivery of these days has failed." in developer.text
    assert "Resend all of them" not in developer.text
    assert deliveries.in_line() == []


def test_a_bulk_resend_runs_in_the_background_and_shows_its_progress(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient, clock: Clock
) -> None:
    made = deliveries.make_many(BATCH + 10, "failed", 500)
    progress = begin(pages, developer)
    assert progress_on(developer) == 0
    assert f"0 of {len(made)}" in developer.text
    job = BulkResends(pages.database)
    job.run_once()
    developer.open(progress)
    assert progress_on(developer) == pytest.approx(BATCH / len(made), abs=0.001)
    assert "In progress" in developer.text
    part = developer.open(progress, **{"X-Part": "progress"}).text
    assert "<html" not in part
    assert "data-final" not in part
    clock.advance(timedelta(seconds=1))
    job.run_once()
    developer.open(progress)
    assert progress_on(developer) == 1
    assert "Done" in developer.text
    assert ">Stop<" not in developer.response.text
    assert "data-final" in developer.open(progress, **{"X-Part": "progress"}).text
    assert deliveries.in_line() == [str(delivery) for delivery in made]


def test_audit_log_has_count_and_period_of_a_bulk_resend(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make_many(3, "failed", 500)
    bulk_id = begin(pages, developer).rpartition("/")[2]
    ((details,),) = pages.rows("select details from audit_log where action = 'failed_deliveries_resent'")
    assert details == {
        "resend": bulk_id,
        "count": 3,
        "from": days_ago(pages, 6),
        "until": days_ago(pages, 0),
    }


def test_a_double_click_starts_one_bulk_resend(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient, clock: Clock
) -> None:
    """Both clicks lead to it, also after it has ended."""
    deliveries.make_many(2, "failed", 500)
    developer.open(address_of(pages))
    hidden = developer.hidden(resends_path(pages))
    led_to = [answer.url for answer in developer.post_four_times_at_once(resends_path(pages))]
    assert set(led_to) == {f"{pages.url}{address_of(pages, '/resends/' + hidden['resend'])}"}
    job = BulkResends(pages.database)
    while job.run_once() == 0:
        clock.advance(timedelta(seconds=1))
    developer.session.post(f"{pages.url}{resends_path(pages)}", data=hidden, timeout=30)
    assert job.run_once() > 0
    assert len(deliveries.in_line()) == 2
    assert pages.audit().count("failed_deliveries_resent") == 1


def test_only_one_bulk_resend_runs_at_a_time(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make("failed", 500)
    developer.open(address_of(pages))
    stale = developer.hidden(resends_path(pages))
    first = begin(pages, developer)
    developer.open(address_of(pages))
    assert "Resend all of them" not in developer.text
    assert first in developer.response.text
    answer = developer.session.post(f"{pages.url}{resends_path(pages)}", data=stale, timeout=30)
    assert answer.url == f"{pages.url}{first}"
    assert "are already being resent" in answer.text


def test_bulk_resend_can_be_stopped_once(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make_many(BATCH + 1, "failed", 500)
    progress = begin(pages, developer)
    job = BulkResends(pages.database)
    job.run_once()
    developer.open(progress)
    developer.post(f"{progress}/stop")
    assert "Stopped" in developer.text
    assert job.run_once() > 0
    assert len(deliveries.in_line()) == BATCH
    ((details,),) = pages.rows("select details from audit_log where action = 'resending_stopped'")
    assert details == {"resend": progress.rpartition("/")[2], "resent": BATCH}
    developer.open(progress)
    developer.post(f"{progress}/stop")
    assert pages.audit().count("resending_stopped") == 1


def test_page_says_why_a_bulk_resend_has_ended(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make_many(BATCH + 1, "failed", 500)
    progress = begin(pages, developer)
    pages.run("update applications set webhook_url = null")
    BulkResends(pages.database).run_once()
    developer.open(progress)
    assert "The webhook URL was removed, so nothing more was resent." in developer.text
    developer.open(address_of(pages))
    assert "the application has no webhook URL" in developer.text
    assert "Resend all of them" not in developer.text
    developer.post(resends_path(pages), resend=str(uuid4()))
    assert "the application has no webhook URL" in developer.text


def test_bulk_resend_of_more_deliveries_than_are_counted(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    """The progress bar shows the completed share of the period."""
    deliveries.run(
        """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, step)
           select uuidv7(make_interval(hours => -1)), uuidv7(), %s, 'payment_intent.succeeded', 'https://s.example', 1,
                  'failed', 9 from generate_series(1, 10001)""",
        (pages.application.id,),
    )
    developer.open(address_of(pages))
    assert "More than 10,000 deliveries of these days have failed." in developer.text
    progress = begin(pages, developer)
    assert "0 of more than 10000" in developer.text
    assert progress_on(developer) == 0
    BulkResends(pages.database).run_once()
    developer.open(progress)
    assert 0.5 < progress_on(developer) < 1


def test_invalid_days_are_reported_and_refused(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make("failed", 500)
    for query, word in (
        ("?from=nonsense", "Enter a day"),
        ("?until=%00", "Enter a day"),
        ("?from=2026-03-02&until=2026-03-01", "before the first"),
    ):
        assert developer.open(address_of(pages) + query).status_code == 200, query
        assert word in developer.text, query
        fields = dict(pair.split("=") for pair in query[1:].split("&"))
        answer = developer.post(resends_path(pages), resend=str(uuid4()), **fields)
        assert answer.status_code == 422, query
    assert pages.rows("select from bulk_resends") == []


def test_viewers_can_read_but_not_change_bulk_resends(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make("failed", 500)
    progress = begin(pages, developer)
    viewer = pages.person(Role.VIEWER)
    assert viewer.open(progress).status_code == 200
    assert ">Stop<" not in viewer.response.text
    assert viewer.post(f"{progress}/stop").status_code == 403
    assert viewer.open(address_of(pages)).status_code == 403
    viewer.open(progress)
    assert viewer.post(resends_path(pages), resend=str(uuid4())).status_code == 403
    viewer.close()


def test_bulk_resend_of_another_merchant_is_404(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make("failed", 500)
    theirs = UUID(begin(pages, developer).rpartition("/")[2])
    other = pages.make_merchant("Benghazi Books")
    stranger = pages.person(Role.OWNER, other)
    for application in (pages.application.id, other.application.id):
        path = f"/applications/{application}/deliveries/resends/{theirs}"
        assert stranger.open(path).status_code == 404
        stranger.open("/account")
        assert stranger.post(f"{path}/stop").status_code == 404
    deliveries.make("failed", 500, application_id=other.application.id)
    stranger.open("/account")
    path = f"/applications/{other.application.id}/deliveries/resends"
    assert stranger.post(path, resend=str(theirs)).status_code == 404
    stranger.close()
