"""The search for payments: what it finds, how far it looks, and that it finds nobody else's."""

import csv
import html
import io
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

import pytest

from shared.console import bounded_search
from shared.console.days import local_day
from shared.console.search_text import SearchText
from shared.domain.accounts.roles import Role
from shared.domain.intents.states import IntentStatus
from tests.dashboard.payment_rows import make_attempt, make_intent, make_many
from tests.dashboard.test_payments import _OLDER, listed, path
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

LONG_AGO = timedelta(days=100)


def search(person: PageClient, world: DashboardWorld, text: str, **more: str) -> list[UUID]:
    return listed(person, path(world, "?" + urlencode({"search": text, **more})))


def link(person: PageClient, label: str) -> str:
    """Return the address of the link with this label, or an empty string."""
    before = person.response.text.partition(f">{label}</a>")
    return html.unescape(before[0].rpartition('href="')[2].rpartition('"')[0]) if before[1] else ""


def test_payments_are_found_by_any_part_in_any_case(pages: DashboardWorld) -> None:
    make_many(pages, 5)
    intent = make_intent(
        pages,
        "Inv-2026/aB-٧٧",
        amount=1_234_500,
        description="قَهوة عربية، Two Bags",
        customer="Customer-5@Example.ly",
    )
    reference = pages.rows("select reference from payment_intents where uuid = %s", intent)[0][0]
    eastern = reference.translate({ord(str(digit)): chr(0x660 + digit) for digit in range(10)})
    person = pages.person(Role.VIEWER)
    for text in (
        *(str(intent), str(intent).upper(), reference, reference.upper(), reference[3:8].upper(), eastern),
        *("inv-2026/ab-77", "INV-2026", "26/AB", "ab-٧٧", " inv-2026 ", "\u200finv-2026\u200f"),
        *("customer-5@example.ly", "CUSTOMER-5", "example.LY"),
        *("قهوة", "قهوه عربيه", "عربية،  two bags", "BAGS"),
        *("1234.5", "1,234.500", "LYD 1,234.500", "١٢٣٤٫٥", "١٬٢٣٤٫٥٠٠", "1,234.500\u00a0د.ل.\u200f"),
    ):
        assert search(person, pages, text) == [intent], text
    for text in ("1234", "1234.51", "inv-2027", "قهوتي"):
        assert search(person, pages, text) == [], text


def test_characters_with_a_meaning_in_patterns_are_only_characters(pages: DashboardWorld) -> None:
    make_intent(pages, "order 1", description="plain")
    odd = make_intent(pages, r"a%b_c\d[e](f)*.+?^$|{2}", description="' or 1=1 --")
    person = pages.person(Role.VIEWER)
    for text in ("%", "_", "\\", "[e]", "(f)*", ".+?", "^$", "|", "{2}", "' or 1=1 --", r"B_C\D"):
        assert search(person, pages, text) == [odd], text
    for text in (".*", "order_1", "order%", "***:.*", "(?i)order", "[a-z]", "x" * 255, "\u200f", "ـ"):
        assert search(person, pages, text) == [], text


def test_old_references_are_found_in_full_and_by_their_beginning(pages: DashboardWorld) -> None:
    """Other texts only within the last 30 days, or the period that was chosen."""
    now = datetime.now(UTC)
    old = make_intent(pages, "ORDER-77", customer="Salma", amount=77_000, at=now - LONG_AGO)
    new = make_intent(pages, "x-order-77", customer="Salma")
    reference = pages.rows("select reference from payment_intents where uuid = %s", old)[0][0]
    person = pages.person(Role.VIEWER)
    for text in ("order-77", "Order-٧", "ord"):
        assert search(person, pages, text) == [new, old], text
    for text in (reference.upper(), reference[:4]):
        assert search(person, pages, text) == [old], text
    assert search(person, pages, "salma") == [new]
    assert search(person, pages, "77.000") == []
    first = str(local_day(now - LONG_AGO))
    assert search(person, pages, "salma", **{"from": first}) == [new, old]
    assert search(person, pages, "77.000", to=first) == [old]
    assert search(person, pages, "order-77", to=first) == [old]
    assert search(person, pages, "order-77", **{"from": str(local_day(now))}) == [new]


def test_page_says_how_far_it_searched_and_continues(pages: DashboardWorld) -> None:
    """The link leads to the 30 days before."""
    old = make_intent(pages, "a", customer="Salma", at=datetime.now(UTC) - timedelta(days=45))
    new = make_intent(pages, "b", customer="Salma")
    person = pages.person(Role.VIEWER)
    assert search(person, pages, "salma", status="requires_payment_method") == [new]
    assert "was searched" in person.text
    further = link(person, "Search further back")
    assert "status=requires_payment_method" in further
    assert listed(person, further) == [old]
    assert link(person, "Search further back") == "", "there are no older payments"
    listed(person, path(pages))
    assert "was searched" not in person.text


def test_search_looks_at_a_bounded_number_of_payments(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the links, all are found once. A reference in full is found at once."""
    monkeypatch.setattr(bounded_search, "MOST_LOOKED_AT", 1000)
    make_many(pages, 2500, apart=timedelta(seconds=1), statuses=list(IntentStatus))
    now = datetime.now(UTC)
    hidden = make_intent(pages, "shown at once", description="needle", at=now - timedelta(seconds=2200))
    person = pages.person(Role.VIEWER)
    assert search(person, pages, "needle") == []
    assert "so far" in person.text
    second = link(person, "Search further back")
    assert listed(person, second) == []
    assert listed(person, link(person, "Search further back")) == [hidden]
    assert "so far" not in person.text
    assert search(person, pages, "SHOWN at once".lower()) == [hidden]
    assert "so far" in person.text
    exported = person.open(path(pages, ".csv?search=needle")).content.decode("utf-8-sig")
    assert [row["uuid"] for row in csv.DictReader(io.StringIO(exported))] == [str(hidden)]


def test_search_looks_for_a_bounded_time(pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search whose time is over ends with the batch that it has read."""
    monkeypatch.setattr(bounded_search, "TIME_LIMIT_S", -1.0)
    make_many(pages, 1500, apart=timedelta(seconds=1))
    hidden = make_intent(pages, "x", description="needle", at=datetime.now(UTC) - timedelta(seconds=1400))
    person = pages.person(Role.VIEWER)
    assert search(person, pages, "needle") == []
    assert listed(person, link(person, "Search further back")) == [hidden]


def test_pages_and_the_export_of_a_search_have_each_match_once(pages: DashboardWorld) -> None:
    make_many(pages, 300, statuses=list(IntentStatus))
    expected = [
        row[0]
        for row in pages.rows(
            "select uuid from payment_intents where merchant_reference like '%%1%%' order by uuid desc"
        )
    ]
    assert len(expected) > 100
    person = pages.person(Role.VIEWER)
    address, seen = path(pages, "?search=1"), []
    while address:
        seen += listed(person, address)
        older = _OLDER.search(person.response.text)
        address = html.unescape(older[1]) if older else ""
        assert not address or "search=1" in address
    assert seen == expected
    exported = person.open(path(pages, ".csv?search=1")).content.decode("utf-8-sig")
    assert [UUID(row["uuid"]) for row in csv.DictReader(io.StringIO(exported))] == expected


def test_declined_payments_say_so_and_can_be_filtered(pages: DashboardWorld) -> None:
    """Only if the last attempt was declined, and the payment is not paid."""
    now = datetime.now(UTC)
    declined = make_intent(pages, "declined", at=now)
    make_attempt(pages, declined, "abandoned", at=now - timedelta(minutes=2))
    make_attempt(pages, declined, "declined", reason="insufficient_funds", at=now - timedelta(minutes=1))
    person = pages.person(Role.VIEWER)
    for name, status, states in (
        ("tried again", IntentStatus.REQUIRES_PAYMENT_METHOD, ["declined", "abandoned"]),
        ("paid", IntentStatus.SUCCEEDED, ["declined", "paid"]),
        ("paid late", IntentStatus.SUCCEEDED, ["paid", "declined"]),
        ("untried", IntentStatus.REQUIRES_PAYMENT_METHOD, []),
    ):
        other = make_intent(pages, name, status, at=now - timedelta(minutes=5))
        for number, state in enumerate(states):
            make_attempt(pages, other, state, at=now - timedelta(minutes=4 - number))
        person.open(path(pages, f"/{other}"))
        assert "Last attempt declined" not in person.text, name
    expired = make_intent(pages, "expired", IntentStatus.CANCELED, at=now - timedelta(days=20))
    make_attempt(pages, expired, "declined")
    listed(person, path(pages))
    assert person.text.count("Last attempt declined") == 2
    assert listed(person, path(pages, "?declined=yes")) == [declined, expired]
    assert "was searched" in person.text
    assert listed(person, path(pages, "?declined=yes&status=canceled")) == [expired]
    assert listed(person, path(pages, "?declined=yes&status=succeeded")) == []
    assert search(person, pages, "DECLINED", declined="yes") == [declined]
    exported = person.open(path(pages, ".csv?declined=yes")).text
    assert str(expired) in exported
    assert "tried again" not in exported
    person.open(path(pages, f"/{declined}"))
    assert "Last attempt declined" in person.text
    assert "There was not enough money in the account." in person.text


def test_search_never_finds_payments_of_another_merchant(pages: DashboardWorld) -> None:
    other = pages.make_merchant("Benghazi Books")
    theirs = make_intent(
        pages,
        "secret-1",
        amount=98_765,
        description="their book",
        customer="Omar",
        application_id=other.application.id,
    )
    make_attempt(pages, theirs, "declined")
    reference = pages.rows("select reference from payment_intents where uuid = %s", theirs)[0][0]
    person = pages.person(Role.OWNER)
    for text in (
        str(theirs),
        reference,
        reference[:5],
        "secret-1",
        "SECRET",
        "cret",
        "98.765",
        "book",
        "omar",
    ):
        assert search(person, pages, text) == [], text
        assert str(theirs) not in person.open(path(pages, ".csv?" + urlencode({"search": text}))).text, text
    assert listed(person, path(pages, "?declined=yes")) == []


def test_checkout_url_is_a_link_that_can_be_copied(pages: DashboardWorld) -> None:
    intent = make_intent(pages, "order 1")
    person = pages.person(Role.VIEWER)
    page = person.open(path(pages, f"/{intent}")).text
    url = f"{pages.settings.public_urls.checkout}/pay/{intent}"
    assert f'data-copied-text><a href="{url}">{url}</a></code>' in page
    assert 'aria-label="Copy: Checkout URL"' in page


def test_amounts_are_read_as_people_write_them() -> None:
    for text, amount in (
        ("25", 25_000),
        ("25.5", 25_500),
        ("25,5", 25_500),
        ("25,50", 25_500),
        ("1,234", 1_234_000),
        ("1,234,567.891", 1_234_567_891),
        ("٢٥٫٥", 25_500),
        ("۲۵٫۵", 25_500),
        ("lyd 25", 25_000),
        ("25 د.ل", 25_000),
        ("25.5000", None),
        ("-25", None),
        ("1e3", None),
        ("25.5.5", None),
        ("order 25", None),
        ("9" * 200, None),
    ):
        assert SearchText(text).amount == amount, text
