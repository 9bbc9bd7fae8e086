"""Operators find payments of all merchants: by index in full or by the beginning, else within a period."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from shared.console import bounded_search
from tests.constants import UNKNOWN_ID
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.payment_rows import make_attempt, make_intent
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient

OLD = datetime.now(UTC) - timedelta(days=40)


def references(person: PageClient) -> list[str]:
    """Return the merchants' references on the page, in order."""
    return re.findall(r'data-label="Merchant.s reference"><bdi>([^<]*)</bdi>', person.response.text)


def search(person: PageClient, text: str, since: str = "") -> list[str]:
    assert person.open(f"/search?search={text}&from={since}").status_code == 200
    return references(person)


def test_payments_of_all_merchants_are_found(pages: MonitorWorld, operator: PageClient) -> None:
    _, other = pages.make_application("Benghazi Books")
    first = make_intent(pages, "order-1042")
    make_intent(pages, "order-1042", application_id=other.id)
    make_intent(pages, "another")
    assert search(operator, "order-1042") == ["order-1042", "order-1042"]
    assert {"Tripoli Coffee", "Benghazi Books"} <= set(
        re.findall(r"<bdi>([^<]*)</bdi>", operator.response.text)
    )
    ((reference,),) = pages.rows("select reference from payment_intents where uuid = %s", first)
    for text in (first, reference, reference.upper(), reference[:6]):
        assert search(operator, str(text)) == ["order-1042"], text


@pytest.mark.parametrize(
    "text",
    ["ORDER-10", "order-1042", "der-104", "two COFF", "customer-7", "25.5", "٢٥٫٥", "bank-ref-9", "k-ref"],
)
def test_parts_of_a_payment_are_found(pages: MonitorWorld, operator: PageClient, text: str) -> None:
    """Also the reference of its provider."""
    intent = make_intent(pages, "order-1042", description="Two coffees", customer="customer-77")
    attempt = make_attempt(pages, intent, "declined", provider_reference="bank-ref-9")
    assert search(operator, text) == ["order-1042"]
    assert f"/attempts/{attempt}" in operator.response.text


def test_payment_is_found_by_its_attempt_or_delivery(pages: MonitorWorld, operator: PageClient) -> None:
    intent = make_intent(pages, "order-1042")
    attempt = make_attempt(pages, intent, "declined")
    delivery = Deliveries(pages.database, pages.application.id).make(intent=intent)
    assert search(operator, str(attempt)) == search(operator, str(delivery)) == ["order-1042"]


def test_old_payment_is_found_by_index_and_its_parts_after_searching_further_back(
    pages: MonitorWorld, operator: PageClient
) -> None:
    make_intent(pages, "old-order-7", at=OLD)
    make_intent(pages, "new-order-8")
    assert search(operator, "old-ord") == ["old-order-7"]
    assert search(operator, "order") == ["new-order-8"]
    assert "Everything since" in operator.text
    further = re.findall(r'href="(/search[^"]*)">Search further back', operator.response.text)[0]
    operator.open(further.replace("&amp;", "&"))
    assert references(operator) == ["old-order-7"]
    assert "Search further back" not in operator.text


def test_first_day_that_was_chosen_excludes_older_payments(pages: MonitorWorld, operator: PageClient) -> None:
    make_intent(pages, "old-order-7", at=OLD)
    assert search(operator, "old-order-7", "2000-01-01") == ["old-order-7"]
    assert search(operator, "old-order-7", "2199-01-01") == []
    assert operator.open("/search?search=old&from=yesterday").status_code == 422
    assert "Enter a day as year-month-day" in operator.text


def test_every_match_is_on_exactly_one_page(
    pages: MonitorWorld, operator: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [f"order-{number:03}" for number in range(120)]
    for reference in made:
        make_intent(pages, reference)
    monkeypatch.setattr(bounded_search, "MOST_LOOKED_AT", 1000)
    seen: list[str] = []
    path = "/search?search=rder"
    while path:
        seen += references(operator) if operator.open(path).ok else []
        path = (
            operator.response.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        )
    assert seen == made[::-1]


@pytest.mark.parametrize("text", ["%25", "_", "'", ".*", "\\", "(", "no such", UNKNOWN_ID, "%E2%80%8F", "٪"])
def test_text_is_never_a_pattern(pages: MonitorWorld, operator: PageClient, text: str) -> None:
    make_intent(pages, "order-1042")
    assert search(operator, text) == []
    assert "No payment matches" in operator.text


@pytest.mark.parametrize("path", ["/search", "/search?search=", "/search?search=%00", "/search?search=+"])
def test_page_without_a_text_is_only_the_form(pages: MonitorWorld, operator: PageClient, path: str) -> None:
    make_intent(pages, "order-1042")
    assert operator.open(path).status_code == 200
    assert "No payment matches" not in operator.text
    assert "order-1042" not in operator.text


def test_search_needs_an_operator(pages: MonitorWorld) -> None:
    stranger = pages.person(is_operator=False)
    assert "/sign-in" in stranger.open("/search?search=order").url
