"""The list of an application's deliveries: all of them, newest first, with filters."""

import html
import re
from datetime import UTC, datetime, timedelta
from itertools import product
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest

from services.dashboard.deliveries.queries import PAGE_SIZE
from shared.console import bounded_search
from shared.console.days import first_uuid_at, start_of_day
from shared.domain.deliveries.try_results import EVENTS, STATUSES
from shared.platform.database.pool import fetch_scalar
from tests.dashboard.delivery_rows import CANCELED, Deliveries
from tests.dashboard.payment_rows import make_intent
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

_ROW = re.compile(r"/deliveries/([0-9a-f-]{36})\"")
_OLDER = re.compile(r'rel="next" href="([^"]*)"')


def listed(person: PageClient, application: UUID, query: str = "", **headers: str) -> list[UUID]:
    """Return the deliveries on the page, in order."""
    answer = person.open(f"/applications/{application}/deliveries{query}", **headers)
    assert answer.status_code == 200, answer.text
    return [UUID(found) for found in _ROW.findall(answer.text)]


def test_each_delivery_is_listed_with_its_details(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    intents = [uuid4() for _ in range(5)]
    oldest_first = [
        deliveries.make("failed", None, failure="no_url", tries=0, intent=intents[0]),
        deliveries.make("failed", None, failure="timeout", tries=9, intent=intents[1]),
        deliveries.make("pending", 404, tries=3, event=CANCELED, intent=intents[2]),
        deliveries.make("pending", None, tries=0, intent=intents[3]),
        deliveries.make("succeeded", 200, is_test=True, intent=intents[4]),
    ]
    assert listed(viewer, pages.application.id) == oldest_first[::-1]
    rows = viewer.response.text.split("<tr ")[2:]
    assert len(rows) == 5
    texts = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
    for text, intent in zip(texts, reversed(intents), strict=True):
        assert str(intent) in text
    test, untried, canceled, silent, without_url = texts
    assert "Succeeded" in test
    assert "Test" in test
    assert "200" in test
    assert "Not tried yet" in untried
    assert "Payment expired" in canceled
    assert "404 3" in canceled
    assert re.search(r"404 3 \d+ \w+ \d{4}, \d\d:\d\d:\d\d", canceled), "when the next try is due"
    assert "No answer in time 9 –" in silent
    assert "No webhook URL 0 –" in without_url


def test_every_delivery_is_on_exactly_one_page(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    made = deliveries.make_many(2 * PAGE_SIZE + 7)
    found, query, counts = [], "", []
    while True:
        page = listed(viewer, pages.application.id, query)
        found += page
        counts.append(len(page))
        older = _OLDER.search(viewer.response.text)
        if older is None:
            break
        query = "?" + older[1].partition("?")[2]
    assert counts == [PAGE_SIZE, PAGE_SIZE, 7]
    assert found == made[::-1]


def test_a_full_last_page_has_no_next_page(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    deliveries.make_many(PAGE_SIZE)
    assert len(listed(viewer, pages.application.id)) == PAGE_SIZE
    assert not _OLDER.search(viewer.response.text)


def test_filters_find_all_matching_deliveries_and_no_others(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    """Every combination of filters, compared with filtering in the test."""
    made: dict[UUID, dict[str, str]] = {}
    answers = {None: "nothing", 204: "2xx", 301: "3xx", 410: "4xx", 503: "5xx", 700: ""}
    for status, event, (code, answer) in product(STATUSES, EVENTS, answers.items()):
        delivery = deliveries.make(status, code, event=event, failure="tls" if code is None else None)
        made[delivery] = {"status": status, "event": event, "answer": answer}
    untried = deliveries.make("pending", None, tries=0)
    made[untried] = {"status": "pending", "event": EVENTS[0], "answer": "not_tried"}
    wanted = ([*STATUSES, ""], [*EVENTS, ""], ["nothing", "2xx", "5xx", "not_tried", ""])
    for chosen in product(*wanted):
        asked = dict(zip(("status", "event", "answer"), chosen, strict=True))
        query = "&".join(f"{name}={value}" for name, value in asked.items())
        expected = [
            delivery
            for delivery, known in made.items()
            if all(not value or known[name] == value for name, value in asked.items())
        ]
        assert listed(viewer, pages.application.id, f"?{query}") == expected[::-1], query


def test_filtered_list_has_pages_newest_first(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    """Also with several kinds of responses."""
    failed = []
    for number in range(PAGE_SIZE + 5):
        deliveries.make()
        failed.append(deliveries.make("failed", (400, 500)[number % 2]))
    first = listed(viewer, pages.application.id, "?status=failed")
    older = _OLDER.search(viewer.response.text)
    assert older is not None
    assert "status=failed" in older[1]
    rest = listed(viewer, pages.application.id, "?" + older[1].partition("?")[2].replace("&amp;", "&"))
    assert first + rest == failed[::-1]


def test_filter_by_day_uses_libyan_days(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    """From midnight to midnight at UTC+2."""
    moments = {
        "before": datetime(2026, 3, 9, 21, 59, 59, tzinfo=UTC),
        "first": datetime(2026, 3, 9, 22, 0, 0, tzinfo=UTC),
        "last": datetime(2026, 3, 11, 21, 59, 59, tzinfo=UTC),
        "after": datetime(2026, 3, 11, 22, 0, 0, tzinfo=UTC),
    }
    made = {name: deliveries.make("failed", 500, at=at) for name, at in moments.items()}
    within = [made["last"], made["first"]]
    assert listed(viewer, pages.application.id, "?from=2026-03-10&until=2026-03-11") == within
    assert listed(viewer, pages.application.id, "?from=2026-03-10&until=2026-03-11&status=failed") == within
    assert listed(viewer, pages.application.id, "?from=2026-03-12") == [made["after"]]
    assert listed(viewer, pages.application.id, "?until=2026-03-09") == [made["before"]]
    assert listed(viewer, pages.application.id, "?until=2026-03-09&status=pending") == []


def test_deliveries_are_found_by_their_id_or_their_payments_id(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    intent = uuid4()
    canceled = deliveries.make("failed", 500, event=CANCELED, intent=intent)
    paid = deliveries.make(intent=intent)
    deliveries.make()
    application = pages.application.id
    assert listed(viewer, application, f"?id={intent}") == [paid, canceled]
    assert listed(viewer, application, f"?id=%20{str(paid).upper()}%20") == [paid]
    assert listed(viewer, application, f"?id={intent}&status=failed") == [canceled]
    assert listed(viewer, application, f"?id={uuid4()}") == []
    assert "No delivery matches" in viewer.text


def test_deliveries_show_and_are_found_by_reference_and_amount(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    """Together with other filters. References in full also of old deliveries, the rest of the last 30 days."""
    application, long_ago = pages.application.id, timedelta(days=40)
    intent = make_intent(pages, "Order-77/ب", amount=1_234_500)
    paid = deliveries.make(intent=intent)
    failed = deliveries.make("failed", 500, intent=intent)
    old = make_intent(pages, "old-77", amount=1_234_500, at=datetime.now(UTC) - long_ago)
    deliveries.make_many(3, is_test=True)
    old_one = deliveries.make(intent=old, ago=long_ago)
    reference = pages.rows("select reference from payment_intents where uuid = %s", intent)[0][0].upper()
    for text in ("order-77/ب", "ORDER-٧٧", "er-77", reference, reference[2:7].lower(), "1234.5", "١٬٢٣٤٫٥٠٠"):
        query = urlencode({"id": text})
        assert listed(viewer, application, f"?{query}") == [failed, paid], text
        assert listed(viewer, application, f"?{query}&status=succeeded") == [paid], text
    for text in ("Order-77/ب", reference, "LYD 1,234.500"):
        assert viewer.text.count(text) == 1, text
        assert viewer.open(f"/applications/{application}/deliveries/{paid}").status_code == 200
        assert text in viewer.text
        listed(viewer, application, "?id=order&status=succeeded")
    assert listed(viewer, application, "?id=OLD-77") == [old_one]
    assert listed(viewer, application, "?id=ld-77") == []
    further = (
        viewer.response.text.partition(">Search further back</a>")[0].rpartition('href="')[2].rstrip('"')
    )
    assert listed(viewer, application, "?" + html.unescape(further).partition("?")[2]) == [old_one]
    assert listed(viewer, application, "?id=%25") == []
    assert "data-live" not in viewer.response.text, "a search is not repeated every few seconds"


def test_search_for_deliveries_looks_at_a_bounded_number_of_them(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_search, "MOST_LOOKED_AT", 1000)
    intent = make_intent(pages, "order-77", amount=7_000)
    made = deliveries.make(intent=intent, ago=timedelta(hours=2))
    pages.run(
        """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status)
           select uuidv7(make_interval(secs => -n)), uuidv7(), %s, 'payment_intent.succeeded', '-', 1, 'succeeded'
           from generate_series(1, 1500) as n""",
        pages.application.id,
    )
    assert listed(viewer, pages.application.id, "?id=7") == []
    assert "so far" in viewer.text
    further = (
        viewer.response.text.partition(">Search further back</a>")[0].rpartition('href="')[2].rstrip('"')
    )
    assert listed(viewer, pages.application.id, "?" + html.unescape(further).partition("?")[2]) == [made]
    assert listed(viewer, pages.application.id, "?id=order-77") == [made]


def test_unknown_filter_values_are_ignored(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    made = deliveries.make()
    for query in (
        "?status=%00&event=x&answer=%F0%28",
        "?before=nonsense&status=' or 1=1 --",
        "?before=%ED%A0%80",
        "?page=-1&from=&until=&id=",
    ):
        assert listed(viewer, pages.application.id, query) == [made], query


def test_invalid_filters_are_reported(pages: DashboardWorld, viewer: PageClient) -> None:
    for query, word in (
        ("?id=a%00b", "A reference cannot contain this text"),
        (f"?id={'a' * 3000}", "at most 255"),
        ("?from=2026-02-30", "Enter a day"),
        ("?from=0001-01-01", "Enter a day"),
        ("?until=9999-12-31", "Enter a day"),
        ("?until=%ED%A0%80", "Enter a day"),
        ("?from=2026-03-10&until=2026-03-01", "before the first"),
    ):
        listed(viewer, pages.application.id, query)
        assert word in viewer.text, query
        assert 'aria-invalid="true"' in viewer.response.text, query


def test_deliveries_of_another_application_are_404(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    other = pages.make_merchant("Benghazi Books")
    intent = make_intent(pages, "secret-1", amount=98_765, application_id=other.application.id)
    theirs = deliveries.make("failed", 500, application_id=other.application.id, intent=intent)
    application = pages.application.id
    searches = [f"?id={searched}" for searched in (theirs, intent, "secret-1", "cret", "98.765")]
    for query in ("", "?status=failed", "?from=2020-01-01", *searches):
        assert listed(viewer, application, query) == []
    for address in ("", f"/{theirs}"):
        assert viewer.open(f"/applications/{other.application.id}/deliveries{address}").status_code == 404
    assert viewer.open(f"/applications/{application}/deliveries/{theirs}").status_code == 404


def test_script_gets_only_the_partial_of_the_list(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    """It is identical if nothing has changed, so nothing is replaced on the page."""
    made = deliveries.make()
    assert listed(viewer, pages.application.id, **{"X-Part": "list"}) == [made]
    first = viewer.response.text
    assert "<html" not in first
    listed(viewer, pages.application.id, **{"X-Part": "list"})
    assert viewer.response.text == first
    deliveries.make()
    listed(viewer, pages.application.id, **{"X-Part": "list"})
    assert viewer.response.text != first


def test_only_the_newest_page_updates_itself(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    made = deliveries.make_many(2)
    listed(viewer, pages.application.id)
    assert 'data-live="list"' in viewer.response.text
    listed(viewer, pages.application.id, f"?before={made[1]}")
    assert "data-live" not in viewer.response.text


def test_python_and_sql_agree_on_the_first_uuid_of_a_day(world: DashboardWorld) -> None:
    for day in (datetime(2026, 1, 1, tzinfo=UTC).date() + timedelta(days=n) for n in range(0, 400, 37)):
        with world.database.cursor() as cursor:
            found = fetch_scalar(cursor, "select uuid7_floor(%s)", (start_of_day(day),))
        assert found == first_uuid_at(start_of_day(day))
