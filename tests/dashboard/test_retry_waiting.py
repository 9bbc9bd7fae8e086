"""The button of the delivery list that resends all deliveries that wait for their next try (§6.6)."""

from datetime import timedelta
from uuid import uuid4

from services.scheduler.jobs.bulk_resends import BulkResends
from shared.domain.accounts.roles import Role
from tests.clock import Clock
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient


def list_path(pages: DashboardWorld, tail: str = "") -> str:
    return f"/applications/{pages.application.id}/deliveries{tail}"


def retry_path(pages: DashboardWorld) -> str:
    return list_path(pages, "/retry-waiting")


def test_button_resends_all_that_waits_and_shows_the_progress(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient, clock: Clock
) -> None:
    made = deliveries.make_many(26, "pending", 500)
    deliveries.make("pending", None, tries=0)
    developer.open(list_path(pages))
    assert "Retry all waiting now (26)" in developer.text
    developer.post(retry_path(pages))
    assert developer.title == "Retrying all waiting deliveries"
    assert "0 of 26" in developer.text
    progress = developer.response.url.removeprefix(pages.url)
    developer.open(list_path(pages))
    assert "Retry all waiting now" not in developer.text
    assert progress in developer.response.text
    job = BulkResends(pages.database)
    while job.run_once() == 0:
        clock.advance(timedelta(seconds=1))
    assert deliveries.in_line() == list(map(str, made))
    developer.open(progress)
    assert "26 of 26" in developer.text
    assert "See what still waits" in developer.text
    ((details,),) = pages.rows("select details from audit_log where action = 'waiting_deliveries_resent'")
    assert details == {"resend": progress.rpartition("/")[2], "count": 26}
    developer.open(list_path(pages, "/resend-failed"))
    assert "All that waited" in developer.text


def test_double_click_retries_once(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make_many(2, "pending", 500)
    developer.open(list_path(pages))
    hidden = developer.hidden(retry_path(pages))
    led_to = [answer.url for answer in developer.post_four_times_at_once(retry_path(pages))]
    assert set(led_to) == {f"{pages.url}{list_path(pages, '/resends/' + hidden['resend'])}"}
    assert pages.audit().count("waiting_deliveries_resent") == 1
    developer.open("/account")
    developer.post(retry_path(pages), resend=str(uuid4()))
    assert "already being resent" in developer.text
    assert pages.rows("select count(*) from bulk_resends") == [(1,)]


def test_count_of_what_waits_is_bounded(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.run(
        """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, tries, step,
                                           next_due_at, last_status_code)
           select uuidv7(), uuidv7(), %s, 'payment_intent.succeeded', 'https://s.example', 1, 1, 2, mizan_now(), 500
           from generate_series(1, 10001)""",
        (pages.application.id,),
    )
    developer.open(list_path(pages))
    assert "Retry all waiting now (10,000+)" in developer.text
    developer.post(retry_path(pages))
    assert "0 of more than 10000" in developer.text


def test_retry_of_nothing_or_without_url_is_refused_with_a_reason(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    developer.open(list_path(pages))
    assert "Retry all waiting now" not in developer.text
    developer.post(retry_path(pages), resend=str(uuid4()))
    assert "No delivery waits for its next try." in developer.text
    deliveries.make("pending", 500)
    pages.run("update applications set webhook_url = null")
    developer.open(list_path(pages))
    developer.post(retry_path(pages))
    assert "the application has no webhook URL" in developer.text
    assert developer.post(retry_path(pages), resend="nonsense").status_code == 422
    assert pages.rows("select from bulk_resends") == []


def test_viewers_and_strangers_cannot_retry(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    deliveries.make("pending", 500)
    viewer = pages.person(Role.VIEWER)
    viewer.open(list_path(pages))
    assert "Retry all waiting now" not in viewer.text
    viewer.open("/account")
    assert viewer.post(retry_path(pages), resend=str(uuid4())).status_code == 403
    viewer.close()
    stranger = pages.person(Role.OWNER, pages.make_merchant("Benghazi Books"))
    stranger.open("/account")
    assert stranger.post(retry_path(pages), resend=str(uuid4())).status_code == 404
    stranger.close()
    assert pages.rows("select from bulk_resends") == []


def test_resend_that_is_no_longer_needed_is_not_shown_as_waiting(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    """The delivery succeeded before its turn in the bulk resend, so nothing is sent."""
    waiting, succeeded = deliveries.make("pending", 500), deliveries.make("succeeded", 200)
    for delivery in (waiting, succeeded):
        pages.run(
            "insert into resend_requests (id, delivery_id, unless_succeeded) values (uuidv7(), %s, true)",
            delivery,
        )
    shown = []
    for delivery in (waiting, succeeded):
        developer.open(list_path(pages, f"/{delivery}"))
        shown.append("A resend was requested" in developer.text)
    assert shown == [True, False]
