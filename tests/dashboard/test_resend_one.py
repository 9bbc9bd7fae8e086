"""Resending one delivery: owners and developers may do it, once for each click."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from uuid import UUID, uuid4

import psycopg
import pytest

from shared.domain.accounts.roles import Role
from shared.domain.deliveries.pause import pause_webhooks
from shared.domain.deliveries.resend import MAX_PER_MINUTE, TooManyResendsError, request_resend
from tests.clock import Clock
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient
from tests.waiting import eventually
from tests.webhooks.conftest import Webhooks
from tests.webhooks.receivers import Receiver, Reply


def address_of(pages: DashboardWorld, delivery: UUID) -> str:
    return f"/applications/{pages.application.id}/deliveries/{delivery}"


def test_a_resend_is_requested_and_recorded_in_the_audit_log(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    delivery = deliveries.make("failed", 500)
    address = address_of(pages, delivery)
    developer.open(address)
    answer = developer.post(f"{address}/resend")
    assert answer.history[0].status_code == 303
    assert "is being resent" in developer.text
    assert "A resend was requested and is on its way." in developer.text
    assert deliveries.in_line() == [str(delivery)]
    ((action, details),) = pages.rows(
        "select action, details from audit_log where action <> 'signed_in' order by id"
    )
    assert (action, details) == ("delivery_resent", {"delivery": str(delivery)})


def test_double_click_makes_one_resend(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    """Also if both arrive at once. A page that is opened again makes another resend."""
    delivery = deliveries.make("failed", 500)
    address = address_of(pages, delivery)
    developer.open(address)
    for answer in developer.post_four_times_at_once(f"{address}/resend"):
        assert answer.status_code == 200
    assert deliveries.in_line() == [str(delivery)]
    assert pages.audit().count("delivery_resent") == 1
    developer.open(address)
    developer.post(f"{address}/resend")
    assert deliveries.in_line() == [str(delivery)] * 2


def test_delivery_is_resent_five_times_a_minute_at_most(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient, clock: Clock
) -> None:
    """Other deliveries are not affected, a second click on a button that worked is no resend, and a minute later
    the delivery can be resent again.
    """
    clock.stop_at(clock.now())
    delivery, other = deliveries.make("failed", 500), deliveries.make("failed", 500)
    address = address_of(pages, delivery)
    for _ in range(MAX_PER_MINUTE):
        developer.open(address)
        hidden = developer.hidden(f"{address}/resend")
        developer.post(f"{address}/resend")
        assert "is being resent" in developer.text
    developer.open(address)
    developer.post(f"{address}/resend")
    assert "was resent several times within a minute. Try again in a minute." in developer.text
    assert deliveries.in_line() == [str(delivery)] * MAX_PER_MINUTE
    assert pages.audit().count("delivery_resent") == MAX_PER_MINUTE
    developer.post(f"{address}/resend", **hidden)
    assert "This resend was already requested." in developer.text
    developer.open(address_of(pages, other))
    developer.post(f"{address_of(pages, other)}/resend")
    assert deliveries.in_line() == [str(delivery)] * MAX_PER_MINUTE + [str(other)]
    clock.advance(timedelta(minutes=1))
    developer.open(address)
    developer.post(f"{address}/resend")
    assert "is being resent" in developer.text


def test_concurrent_resends_do_not_exceed_the_limit(pages: DashboardWorld, deliveries: Deliveries) -> None:
    """Of twelve requests at the same moment, each with its own id, five are accepted."""
    delivery = deliveries.make("failed", 500)
    barrier = Barrier(12)

    def request(_: int) -> bool:
        with psycopg.connect(pages.settings.database.url) as connection:
            barrier.wait()
            try:
                return request_resend(connection, delivery, uuid4())
            except TooManyResendsError:
                return False

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(request, range(12))) == MAX_PER_MINUTE
    assert deliveries.in_line() == [str(delivery)] * MAX_PER_MINUTE


def test_resend_without_a_webhook_url_is_refused(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    delivery = deliveries.make("failed", 500)
    address = address_of(pages, delivery)
    developer.open(address)
    pages.run("update applications set webhook_url = null")
    developer.post(f"{address}/resend")
    assert "the application has no webhook URL" in developer.text
    assert "/resend" not in developer.response.text.replace("/resend-failed", "")
    assert deliveries.in_line() == []
    assert "delivery_resent" not in pages.audit()


def test_resend_while_an_operator_has_paused_is_refused(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    delivery = deliveries.make("failed", 500)
    address = address_of(pages, delivery)
    developer.open(address)
    with pages.database.transaction() as connection:
        pause_webhooks(connection, pages.application.id)
    developer.post(f"{address}/resend")
    assert "an operator has paused the webhooks" in developer.text
    assert deliveries.in_line() == []


def test_viewers_may_not_resend(pages: DashboardWorld, deliveries: Deliveries) -> None:
    viewer = pages.person(Role.VIEWER)
    delivery = deliveries.make("failed", 500)
    address = address_of(pages, delivery)
    viewer.open(address)
    assert ">Resend<" not in viewer.response.text
    assert viewer.post(f"{address}/resend", resend_id=str(uuid4())).status_code == 403
    assert deliveries.in_line() == []
    viewer.close()


def test_delivery_of_another_application_is_404(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    other = pages.make_merchant("Benghazi Books").application.id
    theirs = deliveries.make("failed", 500, application_id=other)
    developer.open("/account")
    for application in (pages.application.id, other):
        path = f"/applications/{application}/deliveries/{theirs}/resend"
        assert developer.post(path, resend_id=str(uuid4())).status_code == 404
    assert deliveries.in_line() == []


def test_resend_without_a_valid_id_is_refused(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    address = address_of(pages, deliveries.make("failed", 500))
    for resend_id in ("", "nonsense", "\0"):
        developer.open(address)
        assert developer.post(f"{address}/resend", resend_id=resend_id).status_code == 422, resend_id
    assert deliveries.in_line() == []


@pytest.mark.usefixtures("all_topics")
def test_resend_reaches_the_endpoint_and_its_result_is_shown(
    pages: DashboardWorld, deliveries: Deliveries, developer: PageClient
) -> None:
    delivery = deliveries.make("failed", 500, tries=1)
    deliveries.add_try(delivery, 1, 500)
    address = address_of(pages, delivery)
    with Receiver(Reply(200)) as receiver, Webhooks(pages.settings).running_with_relay():
        pages.run("update applications set webhook_url = %s", receiver.url)
        developer.open(address)
        developer.post(f"{address}/resend")
        eventually(lambda: "Try 2 · Resend 200" in _read(developer, address))
        eventually(lambda: "Status Succeeded" in _read(developer, address))
        assert "on its way" not in developer.text
        (request,) = receiver.requests
    assert request.headers["service-signature"] in developer.text


def _read(person: PageClient, address: str) -> str:
    person.open(address)
    return person.text


def test_missing_url_is_told_with_a_link_to_where_it_is_set(
    pages: DashboardWorld, developer: PageClient, deliveries: Deliveries
) -> None:
    """On the page of a delivery, of failed deliveries, of the webhook itself, and after a refused resend."""
    failed = deliveries.make("failed", 500)
    here = f"/applications/{pages.application.id}"
    developer.open(f"{here}/deliveries/{failed}")
    form = developer.response
    pages.run("update applications set webhook_url = null")
    link = f'Set one first. <a href="{here}/webhook">Webhook settings</a>'
    assert link in developer.open(f"{here}/deliveries/{failed}").text
    developer.response = form
    assert link in developer.post(f"{here}/deliveries/{failed}/resend").text
    today = pages.rows("select (now() at time zone 'Africa/Tripoli')::date")[0][0]
    assert link in developer.open(f"{here}/deliveries/resend-failed?from={today}&until={today}").text
    page = developer.open(f"{here}/webhook").text
    assert 'Set one first. <a href="#url">' in page
    assert 'id="url"' in page
