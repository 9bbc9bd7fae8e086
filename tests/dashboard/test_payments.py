"""The list of payments: its content, filters and search."""

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from shared.console.days import local_day, start_of_day
from shared.domain.accounts.roles import Role
from shared.domain.intents.states import IntentStatus
from tests.constants import UNKNOWN_ID
from tests.dashboard.payment_rows import make_attempt, make_intent, make_many
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

_ROW = re.compile(r'<a href="[^"]*/payments/([0-9a-f-]{36})">')
_OLDER = re.compile(r'rel="next" href="([^"]*)"')


def path(world: DashboardWorld, tail: str = "") -> str:
    return f"/applications/{world.application.id}/payments{tail}"


def listed(person: PageClient, address: str) -> list[UUID]:
    answer = person.open(address)
    assert answer.status_code == 200
    return [UUID(found) for found in _ROW.findall(answer.text)]


def test_every_role_sees_the_merchants_payments_newest_first(pages: DashboardWorld) -> None:
    now = datetime.now(UTC)
    older = make_intent(pages, "order 1", at=now - timedelta(minutes=2))
    newer = make_intent(pages, "طلب 2", IntentStatus.SUCCEEDED, amount=1_234_567, at=now)
    make_attempt(pages, newer, "declined", method="card")
    make_attempt(pages, newer, "paid", method="sadad")
    reference = pages.rows("select reference from payment_intents where uuid = %s", newer)[0][0]
    for role in Role:
        person = pages.person(role)
        assert listed(person, path(pages)) == [newer, older], role
        for text in (
            "طلب 2",
            reference.upper(),
            "LYD 1,234.567",
            "Paid",
            "Sadad",
            "order 1",
            "Waiting for payment",
        ):
            assert text in person.text, role
        assert "Paid twice" not in person.text, role


def test_duplicate_payment_is_marked(pages: DashboardWorld) -> None:
    intent = make_intent(pages, "order 1", IntentStatus.SUCCEEDED)
    make_attempt(pages, intent, "paid")
    duplicate = make_attempt(pages, intent, "awaiting_redirect")
    person = pages.person(Role.VIEWER)
    listed(person, path(pages))
    assert "Paid twice" not in person.text
    pages.run("update payment_attempts set state = 'duplicate' where id = %s", duplicate)
    listed(person, path(pages))
    assert "Paid twice" in person.text


def test_every_payment_is_on_exactly_one_page(pages: DashboardWorld) -> None:
    """50 on each page. Payments that are created meanwhile do not shift them."""
    make_many(pages, 120, statuses=list(IntentStatus))
    expected = [row[0] for row in pages.rows("select uuid from payment_intents order by uuid desc")]
    person = pages.person(Role.VIEWER)
    address, seen = path(pages), []
    while address:
        found = listed(person, address)
        assert len(found) <= 50
        seen += found
        older = _OLDER.search(person.response.text)
        address = older[1].replace("&amp;", "&") if older else ""
        make_intent(pages, f"created meanwhile {len(seen)}")
    assert seen == expected


def test_payments_are_filtered_by_status_day_and_duplicates(pages: DashboardWorld) -> None:
    """Each alone, and together. Days are Libyan."""
    today = local_day(datetime.now(UTC))
    midnight = start_of_day(today)
    last_of_yesterday = make_intent(
        pages, "a", IntentStatus.CANCELED, at=midnight - timedelta(milliseconds=1500)
    )
    first_of_today = make_intent(
        pages, "b", IntentStatus.SUCCEEDED, at=midnight + timedelta(milliseconds=1500)
    )
    twice = make_intent(pages, "c", IntentStatus.SUCCEEDED, at=midnight - timedelta(days=3))
    for state in ("paid", "duplicate", "duplicate"):
        make_attempt(pages, twice, state)
    open_one = make_intent(pages, "d", at=midnight - timedelta(days=5))
    yesterday = today - timedelta(days=1)
    person = pages.person(Role.VIEWER)
    for query, expected in (
        ("", [first_of_today, last_of_yesterday, twice, open_one]),
        ("?status=succeeded", [first_of_today, twice]),
        ("?status=canceled", [last_of_yesterday]),
        ("?status=processing", []),
        (f"?from={today}", [first_of_today]),
        (f"?to={yesterday}", [last_of_yesterday, twice, open_one]),
        (f"?from={yesterday}&to={yesterday}", [last_of_yesterday]),
        ("?duplicates=yes", [twice]),
        ("?duplicates=yes&status=succeeded", [twice]),
        ("?duplicates=yes&status=canceled", []),
        (f"?duplicates=yes&from={yesterday}", []),
        (f"?status=requires_payment_method&to={today}", [open_one]),
    ):
        assert listed(person, path(pages, query)) == expected, query


def test_search_finds_payments_by_uuid_reference_and_merchant_reference(pages: DashboardWorld) -> None:
    make_many(pages, 5)
    intent = make_intent(pages, "order 7/ب", IntentStatus.SUCCEEDED)
    reference = pages.rows("select reference from payment_intents where uuid = %s", intent)[0][0]
    person = pages.person(Role.VIEWER)
    for text in (str(intent), str(intent).upper(), reference, reference.upper(), "order 7/ب", " order 7/ب "):
        person.session.params = {"search": text}
        assert listed(person, path(pages)) == [intent], text
    for text in (f"{reference}x", "order 7/ت", str(uuid4()), "%", "' or 1=1 --"):
        person.session.params = {"search": text}
        assert listed(person, path(pages)) == [], text
    person.session.params = {"search": reference, "status": "canceled"}
    assert listed(person, path(pages)) == []


def test_invalid_filters_are_reported(pages: DashboardWorld) -> None:
    make_intent(pages, "order 1")
    person = pages.person(Role.VIEWER)
    for query, told in (
        ("?status=paid", "There is no such status."),
        ("?from=yesterday", "Enter a day"),
        ("?from=0001-01-01", "Enter a day"),
        ("?to=99999-01-01", "Enter a day"),
        ("?from=2026-05-02&to=2026-05-01", "The last day is before the first."),
        ("?search=" + "x" * 256, "at most 255"),
        ("?search=a%00b", "A reference cannot contain this text"),
    ):
        answer = person.open(path(pages, query))
        assert answer.status_code == 422, query
        assert told in person.text, query
        assert "order 1" not in person.text, query
        assert person.open(path(pages, f".csv{query}")).status_code == 422, query


def test_unusual_query_strings_are_accepted(pages: DashboardWorld) -> None:
    person = pages.person(Role.VIEWER)
    for query in ("?before=x", "?search=%ED%A0%80", "?search=%20", "?status=", "?unknown=1"):
        assert person.open(path(pages, query)).status_code == 200, query


def test_payments_of_another_application_are_not_shown(pages: DashboardWorld) -> None:
    """Neither under its address nor under that of one's own application."""
    other = pages.make_merchant("Benghazi Books")
    theirs = make_intent(pages, "secret order", IntentStatus.SUCCEEDED, application_id=other.application.id)
    make_attempt(pages, theirs, "duplicate")
    reference = pages.rows("select reference from payment_intents where uuid = %s", theirs)[0][0]
    person = pages.person(Role.OWNER)
    base = f"/applications/{other.application.id}"
    for address in (base, f"{base}/payments", f"{base}/payments/{theirs}", f"{base}/payments.csv"):
        assert person.open(address).status_code == 404
    assert person.open(path(pages, f"/{theirs}")).status_code == 404
    for query in ("", f"?search={theirs}", f"?search={reference}", "?search=secret+order", "?duplicates=yes"):
        assert listed(person, path(pages, query)) == []
    assert str(theirs) not in person.open(path(pages, ".csv")).text
    assert pages.audit().count("payments_exported") == 1


def test_unknown_payment_is_404(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    for tail in ("/x", "/01a1e06b", f"/{UNKNOWN_ID}", "/%00", "/" + "9" * 300):
        assert person.open(path(pages, tail)).status_code == 404, tail
