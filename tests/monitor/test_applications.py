"""Operators find applications, and pause and resume their webhooks, once and with an audited reason."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest

from services.monitor.applications.queries import PAGE
from shared.domain.audit_log import list_entries
from tests.constants import UNKNOWN_ID
from tests.dashboard.delivery_rows import Deliveries
from tests.monitor.concurrency import act_at_once
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient

REASON = "Their server asked us to wait"


@pytest.fixture
def deliveries(pages: MonitorWorld) -> Deliveries:
    return Deliveries(pages.database, pages.application.id)


def change(person: PageClient, path: str, reason: str = REASON, **more: str) -> int:
    answer = person.post(path, reason=reason, **more)
    return answer.history[0].status_code if answer.history else answer.status_code


def names(person: PageClient) -> list[str]:
    """Return the names of the applications on the page, in order."""
    return re.findall(r'<th scope="row"[^>]*><a [^>]*><bdi>([^<]*)', person.response.text)


def test_applications_are_found_by_name_merchant_or_id(pages: MonitorWorld, operator: PageClient) -> None:
    merchant_id, other = pages.make_application("Benghazi Books")
    for search in ("benghazi", "BOOKS shop", "ghazi b", merchant_id, other.id):
        operator.open(f"/applications?search={search}")
        assert names(operator) == ["Benghazi Books shop"], search


def test_search_for_wildcards_or_unknown_text_finds_no_application(operator: PageClient) -> None:
    for search in ("%25", "_", "'", "%00", "\\", "no such", UNKNOWN_ID):
        assert operator.open(f"/applications?search={search}").status_code == 200, search
        assert names(operator) == ([] if search != "%00" else ["Tripoli Coffee shop"]), search


def test_every_application_is_on_exactly_one_page_of_the_list(
    pages: MonitorWorld, operator: PageClient
) -> None:
    for number in range(PAGE + 3):
        pages.make_application(f"Number {number}")
    seen: list[str] = []
    path = "/applications"
    while path:
        text = operator.open(path).text
        seen += names(operator)
        path = text.partition('rel="next" href="')[2].partition('"')[0]
    assert len(seen) == len(set(seen)) == PAGE + 4


def test_application_list_shows_pending_deliveries_and_failing_endpoints(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    deliveries.make_many(2, "pending", None, tries=0)
    operator.open("/applications")
    assert "shop.example.ly" in operator.text
    assert "Endpoint failing" not in operator.text
    deliveries.make_many(3, "pending", 500)
    assert "Endpoint failing" in operator.open("/applications").text
    deliveries.make("succeeded", 200)
    assert "Endpoint failing" not in operator.open("/applications").text
    deliveries.make_many(101, "pending", 500)
    operator.open("/applications")
    assert "over 100" in operator.text
    assert "Endpoint failing" in operator.text


def test_endpoint_with_a_corrected_url_is_no_longer_shown_as_failing(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    deliveries.make_many(3, "failed", 500)
    pages.run("update applications set webhook_url = 'https://new.example.ly/hooks'")
    assert "Endpoint failing" not in operator.open("/applications").text


def test_application_page_shows_pending_deliveries_by_step_and_those_set_aside(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    deliveries.make_many(2, "pending", 500, tries=3)
    deliveries.make("pending", None, tries=0, ago=timedelta(minutes=1))
    pages.run("update webhook_deliveries set set_aside_at = now() where tries = 0")
    operator.open(f"/applications/{pages.application.id}")
    assert "Step 1 of 9 1" in operator.text
    assert "Step 3 of 9 2" in operator.text
    assert "1 of them fell due during the pause" in operator.text
    assert f"/exhausted?application={pages.application.id}" in operator.response.text


def test_no_credential_and_no_secret_is_shown(pages: MonitorWorld, operator: PageClient) -> None:
    made = pages.application
    pages.run("update applications set webhook_url = 'https://user.example.ly/hooks/T0KEN?key=s3cret'")
    for path in ("/applications", f"/applications/{made.id}"):
        html = operator.open(path).text
        for secret in (made.api_key, made.access_token, made.webhook_secret, "T0KEN", "s3cret"):
            assert secret not in html


def test_webhooks_are_paused_and_resumed_with_a_reason_in_the_audit_log(
    pages: MonitorWorld, operator: PageClient
) -> None:
    path = f"/applications/{pages.application.id}"
    operator.open(path)
    assert change(operator, f"{path}/pause") == 303
    assert "Paused. Deliveries that fall due are kept" in operator.text
    assert pages.rows("select webhooks_paused_at is not null from applications") == [(True,)]
    assert change(operator, f"{path}/resume") == 303
    assert pages.rows("select webhooks_paused_at from applications") == [(None,)]
    with pages.database.transaction() as connection:
        resumed, paused = list_entries(connection, pages.merchant_id, before=None, limit=10)
    assert (paused.action, resumed.action) == ("webhooks_paused", "webhooks_resumed")
    assert paused.details == {"reason": REASON}
    assert paused.actor.startswith("operator operator-")
    assert paused.address is None
    assert pages.rows("select distinct address from audit_log where application_id is not null") == [
        ("127.0.0.1",)
    ]


def test_concurrent_operators_pause_webhooks_once(pages: MonitorWorld) -> None:
    path = f"/applications/{pages.application.id}"
    people = [pages.person() for _ in range(4)]
    for person in people:
        person.open(path)
    act_at_once(pages, "select from applications", people, lambda person: change(person, f"{path}/pause"))
    assert pages.audit().count("webhooks_paused") == 1
    assert (
        sum("The webhooks were already paused. Nothing was changed." in person.text for person in people) == 3
    )


def test_pausing_webhooks_needs_a_reason(pages: MonitorWorld, operator: PageClient) -> None:
    path = f"/applications/{pages.application.id}"
    for reason in ("", "1234", "x" * 501):
        operator.open(path)
        assert change(operator, f"{path}/pause", reason) == 422, reason
        assert "Write 5 to 500 characters" in operator.text, reason
    assert pages.rows("select webhooks_paused_at from applications") == [(None,)]


def test_pausing_webhooks_needs_a_session_and_a_csrf_token(pages: MonitorWorld, operator: PageClient) -> None:
    path = f"/applications/{pages.application.id}"
    guest = pages.person(is_operator=False)
    assert change(guest, f"{path}/pause") in (400, 401)
    operator.open(path)
    assert change(operator, f"{path}/pause", csrf_token="x") == 400
    assert pages.rows("select webhooks_paused_at from applications") == [(None,)]


def test_unknown_application_is_404(operator: PageClient) -> None:
    path = f"/applications/{uuid4()}"
    assert operator.open(path).status_code == 404
    assert operator.open("/applications").status_code == 200
    assert change(operator, f"{path}/pause") == 404


def test_hostile_application_names_are_escaped(pages: MonitorWorld, operator: PageClient) -> None:
    hostile = "\"'><script>alert(1)</script>"
    pages.run("update applications set name = %s", hostile)
    pages.run("update merchants set name = %s", hostile)
    for path in ("/applications", f"/applications/{pages.application.id}", f"/applications?search={hostile}"):
        assert "<script>alert" not in operator.open(path).text
