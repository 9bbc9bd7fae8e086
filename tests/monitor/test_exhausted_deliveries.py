"""Exhausted deliveries are shown without secrets, and resent one by one or in bulk."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from shared.domain.audit_log import list_entries
from shared.domain.deliveries.resend import MAX_PER_MINUTE
from shared.domain.messages import DeliveryExhausted, encode
from shared.domain.topics import WEBHOOKS_DEAD
from tests.dashboard.delivery_rows import Deliveries
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic

BULKS = "select application_id, found, outcome from bulk_resends order by created_at"


@pytest.fixture
def deliveries(pages: MonitorWorld) -> Deliveries:
    return Deliveries(pages.database, pages.application.id)


def tell(dead_letter_topic: DeadLetterTopic, deliveries: Sequence[UUID], application_id: UUID) -> None:
    """Publish these deliveries as exhausted, as the webhook service does after the ninth try."""
    messages = [DeliveryExhausted(one, application_id, datetime.now(UTC)) for one in deliveries]
    dead_letter_topic.put(WEBHOOKS_DEAD, [(str(one.id).encode(), encode(one)) for one in messages])


def resend(person: PageClient, delivery: UUID, **fields: str) -> int:
    answer = person.post(f"/exhausted/{delivery}/resend", **fields)
    return answer.history[0].status_code if answer.history else answer.status_code


def test_exhausted_deliveries_are_listed_once_and_newest_first(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient, deliveries: Deliveries
) -> None:
    assert "There are no exhausted deliveries" in operator.open("/exhausted").text
    made = deliveries.make_many(30, "failed", 500, tries=9)
    tell(dead_letter_topic, [*made, made[-1]], pages.application.id)
    seen: list[str] = []
    path = "/exhausted"
    while path:
        text = operator.open(path).text
        seen += [
            part.partition('"')[0] for part in text.split('data-label="Last try"><a href="/exhausted/')[1:]
        ]
        path = text.partition('rel="next" href="')[2].partition('"')[0]
    assert seen == [str(one) for one in reversed(made)]


def test_exhausted_deliveries_are_filtered_by_application(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient, deliveries: Deliveries
) -> None:
    _, other = pages.make_application("Benghazi Books")
    mine, theirs = deliveries.make("failed", 500), deliveries.make("failed", 500, application_id=other.id)
    tell(dead_letter_topic, [mine], pages.application.id)
    tell(dead_letter_topic, [theirs], other.id)
    html = operator.open(f"/exhausted?application={other.id}").text
    assert (str(theirs) in html, str(mine) in html) == (True, False)
    assert "Benghazi Books shop" in operator.text


def test_exhausted_delivery_without_a_row_is_shown_as_deleted(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    tell(dead_letter_topic, [uuid4()], pages.application.id)
    dead_letter_topic.put(WEBHOOKS_DEAD, [(None, b"nonsense"), (None, None)])
    operator.open("/exhausted")
    assert "The data of that month was deleted" in operator.text


def test_exhausted_delivery_is_shown_without_secrets(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    """The page does not need Kafka: this test creates no topics."""
    delivery = deliveries.make("failed", 500, tries=1)
    answer = b'<script>alert(1)</script> {"token": "s3cr3t-of-theirs"} 0912345678 \xff\x1b[31m'
    deliveries.add_try(delivery, 1, 500, answer=answer)
    pages.run("update webhook_deliveries set url = 'https://shop.example.ly/hooks?key=hidden1'")
    pages.run("update webhook_tries set url = 'https://shop.example.ly/hooks?key=hidden2'")
    html = operator.open(f"/exhausted/{delivery}").text
    for hidden in ("hidden1", "hidden2", "s3cr3t-of-theirs", "0912345678", "<script>alert", "\x1b"):
        assert hidden not in html
    assert pages.application.webhook_secret not in html
    assert "alert(1)" in operator.text
    assert f'"id":"{delivery}"' in operator.text
    part = operator.open(f"/exhausted/{delivery}", **{"X-Part": "delivery"}).text
    assert ("<html" in part, "Try 1" in part) == (False, True)


def test_exhausted_delivery_is_resent_once(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    delivery = deliveries.make("failed", 500, tries=9)
    form = operator.open(f"/exhausted/{delivery}")
    assert resend(operator, delivery) == 303
    assert "The delivery is being resent" in operator.text
    operator.response = form
    resend(operator, delivery)
    assert "This resend was already requested" in operator.text
    assert deliveries.in_line() == [str(delivery)]
    with pages.database.transaction() as connection:
        (entry,) = list_entries(connection, pages.merchant_id, before=None, limit=10)
    assert (entry.action, entry.address) == ("delivery_resent", None)
    assert entry.actor.startswith("operator operator-")


def test_exhausted_delivery_is_resent_five_times_a_minute_at_most(
    operator: PageClient, deliveries: Deliveries
) -> None:
    delivery = deliveries.make("failed", 500, tries=9)
    for _ in range(MAX_PER_MINUTE + 1):
        operator.open(f"/exhausted/{delivery}")
        assert resend(operator, delivery) == 303
    assert "was resent several times within a minute. Try again in a minute." in operator.text
    assert deliveries.in_line() == [str(delivery)] * MAX_PER_MINUTE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("update applications set webhook_url = null", "The application has no webhook URL"),
        ("update applications set webhooks_paused_at = now()", "are paused. Resume them first"),
        ("update webhook_deliveries set status = 'succeeded'", "this delivery is no longer failed"),
    ],
)
def test_resend_is_refused_if_the_delivery_cannot_be_sent_any_more(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries, change: str, words: str
) -> None:
    """It depends on the state when the button is pressed, not when the page was opened."""
    delivery = deliveries.make("failed", 500)
    operator.open(f"/exhausted/{delivery}")
    pages.run(change)
    resend(operator, delivery)
    assert words in operator.text
    assert deliveries.in_line() == []
    assert pages.audit() == ["signed_in"]


def test_resend_with_an_invalid_token_is_422_and_of_an_unknown_delivery_404(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    delivery = deliveries.make("failed", 500)
    operator.open(f"/exhausted/{delivery}")
    assert resend(operator, delivery, resend="x") == 422
    assert operator.open(f"/exhausted/{uuid4()}").status_code == 404
    operator.open("/account")
    assert resend(operator, uuid4(), resend=str(uuid4())) == 404
    assert deliveries.in_line() == []


def test_resending_needs_a_session_and_a_csrf_token(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    delivery = deliveries.make("failed", 500)
    guest = pages.person(is_operator=False)
    assert resend(guest, delivery, resend=str(uuid4())) in (400, 401)
    assert guest.post("/exhausted/resends", form_token=str(uuid4()), back="3d").status_code in (400, 401)
    operator.open(f"/exhausted/{delivery}")
    assert resend(operator, delivery, csrf_token="x") == 400
    assert deliveries.in_line() == []


def test_bulk_resend_covers_a_period_of_all_applications(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    """Paused applications are named and left out. A second submit starts nothing more."""
    _, paused = pages.make_application("Benghazi Books")
    _, other = pages.make_application("Misrata Music")
    pages.run("update applications set webhooks_paused_at = now() where id = %s", paused.id)
    deliveries.make_many(2, "failed", 500)
    deliveries.make("failed", 500, ago=timedelta(days=5))
    for application_id in (paused.id, other.id):
        deliveries.make("failed", 500, application_id=application_id)
    form = operator.open("/exhausted/resend-all")
    for _ in range(2):
        operator.response = form
        operator.post("/exhausted/resends", back="3d")
        assert "Failed deliveries of 2 applications are being resent" in operator.text
        assert "Benghazi Books shop" in operator.text
    assert {row[0]: row[1] for row in pages.rows(BULKS)} == {pages.application.id: 2, other.id: 1}
    assert pages.audit().count("failed_deliveries_resent") == 2
    assert "0 of 2" in operator.text


def test_concurrent_operators_start_one_bulk_resend_for_an_application(
    pages: MonitorWorld, deliveries: Deliveries
) -> None:
    deliveries.make("failed", 500)
    people = [pages.person() for _ in range(3)]
    for person in people:
        person.open("/exhausted/resend-all")
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda person: person.post("/exhausted/resends", back="3d"), people))
    assert len(pages.rows(BULKS)) == 1
    assert pages.audit().count("failed_deliveries_resent") == 1
    assert sum("already has a resend in progress" in person.text for person in people) == 2


def test_bulk_resend_without_failed_deliveries_says_so(pages: MonitorWorld, operator: PageClient) -> None:
    operator.open("/exhausted/resend-all")
    operator.post("/exhausted/resends", back="3d")
    assert "No delivery failed in this period" in operator.text
    assert pages.rows(BULKS) == []


def test_bulk_resend_of_an_unknown_period_is_422(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    deliveries.make("failed", 500)
    operator.open("/exhausted/resend-all")
    assert operator.post("/exhausted/resends", back="9000d").status_code == 422
    assert "Choose one of these periods" in operator.text
    assert pages.rows(BULKS) == []


def test_bulk_resend_is_stopped_once(
    pages: MonitorWorld, operator: PageClient, deliveries: Deliveries
) -> None:
    deliveries.make("failed", 500)
    operator.open("/exhausted/resend-all")
    operator.post("/exhausted/resends", back="3d")
    ((bulk,),) = pages.rows("select id from bulk_resends")
    form = operator.open(f"/exhausted/resends/{bulk}")
    for said in ("Stopped. Deliveries that are already queued are still sent.", "It had already ended."):
        operator.response = form
        operator.post(f"/exhausted/resends/{bulk}/stop")
        assert said in operator.text
    assert pages.audit().count("resending_stopped") == 1
    assert [row[2] for row in pages.rows(BULKS)] == ["stopped"]
    assert operator.open(f"/exhausted/resends/{uuid4()}").status_code == 404
