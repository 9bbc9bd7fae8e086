"""Exhausted deliveries: listed with their current status, and resent."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from shared.domain.deliveries.bulk_resend import resend_all_exhausted
from shared.domain.deliveries.exhausted import GONE, ExhaustedPage, get_exhausted, list_exhausted
from shared.domain.deliveries.resend import DeliveryNotFoundError, resend_exhausted
from shared.domain.messages import DeliveryExhausted, encode
from shared.domain.topics import WEBHOOKS_DEAD
from shared.platform.database.pool import Database
from shared.platform.errors import RefusedError
from tests.dashboard.delivery_rows import Deliveries
from tests.shared.domain.dead_letters.dead_letter_topic import AMAL, BEGINNING, DeadLetterTopic

HOUR = timedelta(hours=1)


@pytest.fixture
def deliveries(database: Database, application_id: UUID) -> Deliveries:
    made = Deliveries(database, application_id)
    made.run("update applications set webhook_url = 'https://shop.example.ly/hooks'")
    return made


def told(dead_letter_topic: DeadLetterTopic, deliveries: Deliveries, *ids: UUID) -> None:
    """Publish that these deliveries are exhausted, as the webhook service does."""
    records = [
        (str(id_).encode(), encode(DeliveryExhausted(id_, deliveries.application_id, BEGINNING)))
        for id_ in ids
    ]
    dead_letter_topic.put(WEBHOOKS_DEAD, records)


def page(dead_letter_topic: DeadLetterTopic, before: int | None = None, most: int = 50) -> ExhaustedPage:
    with dead_letter_topic.database.transaction() as connection:
        return list_exhausted(connection, dead_letter_topic.kafka, before, most)


def listed(dead_letter_topic: DeadLetterTopic, most: int = 50) -> list[UUID]:
    """Return the deliveries of all pages."""
    seen: list[UUID] = []
    shown = page(dead_letter_topic, None, most)
    seen += [one.delivery_id for one in shown.deliveries]
    while shown.next_before is not None:
        shown = page(dead_letter_topic, shown.next_before, most)
        seen += [one.delivery_id for one in shown.deliveries]
    return seen


def test_exhausted_delivery_is_the_same_in_the_list_and_by_id(
    dead_letter_topic: DeadLetterTopic, deliveries: Deliveries
) -> None:
    """Its time comes from the record in the list, and from its last try by id."""
    failed = deliveries.make("failed", 500, tries=9)
    deliveries.add_try(failed, 8, 503, answer=b"earlier")
    deliveries.add_try(failed, 9, 500, answer=b"token=hushhush \x1b[2J <b>")
    told(dead_letter_topic, deliveries, failed)
    (one,) = page(dead_letter_topic).deliveries
    assert (one.delivery_id, one.offset, one.at) == (failed, 0, BEGINNING)
    assert (one.application, one.merchant) == ("shop", "Tripoli Coffee")
    assert (one.event, one.status, one.tries) == ("payment_intent.succeeded", "failed", 9)
    assert (one.last_status_code, one.last_failure, one.resent_at) == (500, None, None)
    assert one.last_answer == "token=[redacted] ␛[2J <b>"
    with dead_letter_topic.database.transaction() as connection:
        alone = get_exhausted(connection, failed)
    assert (alone.offset, alone.last_answer, alone.application_id) == (
        None,
        one.last_answer,
        one.application_id,
    )
    assert abs(alone.at - datetime.now(UTC)) < HOUR


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://shop.example.ly/hooks?hushhush", "https://shop.example.ly/hooks"),
        ("https://shop.example.ly/hooks#hushhush", "https://shop.example.ly/hooks"),
        ("https://shop.example.ly/at_hushHush1234?x", "https://shop.example.ly/at_[redacted]"),
    ],
)
def test_url_is_shown_without_query_fragment_and_tokens(
    dead_letter_topic: DeadLetterTopic, deliveries: Deliveries, url: str, shown: str
) -> None:
    failed = deliveries.make("failed", 500, tries=9)
    deliveries.run("update webhook_deliveries set url = %s", (url,))
    with dead_letter_topic.database.transaction() as connection:
        assert get_exhausted(connection, failed).url == shown


def test_list_shows_the_current_status_of_each_delivery(
    dead_letter_topic: DeadLetterTopic, deliveries: Deliveries
) -> None:
    """One was resent and succeeded, one has a resend request, one is in a month that was dropped."""
    well = deliveries.make("succeeded", 200, tries=9)
    deliveries.add_try(well, 10, 200, is_resend=True)
    asked = deliveries.make("failed", None, failure="timeout", tries=9)
    gone = uuid4()
    told(dead_letter_topic, deliveries, well, asked, gone)
    with dead_letter_topic.database.transaction() as connection:
        assert resend_exhausted(connection, asked, uuid4(), AMAL)
    by_id = {one.delivery_id: one for one in page(dead_letter_topic).deliveries}
    assert (by_id[well].status, by_id[well].last_answer) == ("succeeded", "ok")
    assert by_id[well].resent_at is not None
    assert (by_id[asked].status, by_id[asked].last_failure) == ("failed", "timeout")
    assert by_id[asked].resent_at is not None
    assert (by_id[gone].status, by_id[gone].url, by_id[gone].offset) == (GONE, None, 2)


@pytest.mark.parametrize("most", [1, 2, 3, 50])
def test_delivery_published_twice_is_listed_once(
    dead_letter_topic: DeadLetterTopic, deliveries: Deliveries, most: int
) -> None:
    """On one page or on two, and with malformed records in between."""
    first, second, third = deliveries.make_many(3, "failed", 500, tries=9)
    told(dead_letter_topic, deliveries, first, second, first)
    dead_letter_topic.put(WEBHOOKS_DEAD, [(None, b"\xff"), (None, None)])
    told(dead_letter_topic, deliveries, third, second, third)
    assert listed(dead_letter_topic, most) == [third, second, first]


def test_empty_topic_has_no_exhausted_deliveries(dead_letter_topic: DeadLetterTopic) -> None:
    assert page(dead_letter_topic) == ExhaustedPage([], None)
    with dead_letter_topic.database.transaction() as connection, pytest.raises(DeliveryNotFoundError):
        get_exhausted(connection, uuid4())


def test_repeated_request_resends_once(dead_letter_topic: DeadLetterTopic, deliveries: Deliveries) -> None:
    """It is in the audit log of the merchant once."""
    failed, request_id = deliveries.make("failed", 500, tries=9), uuid4()
    for is_new in (True, False):
        with dead_letter_topic.database.transaction() as connection:
            assert resend_exhausted(connection, failed, request_id, AMAL) is is_new
    assert deliveries.in_line() == [str(failed)]
    log = dead_letter_topic.rows("select action, actor, details, merchant_id is not null from audit_log")
    assert log == [("delivery_resent", AMAL.name, {"delivery": str(failed)}, True)]


def test_resend_without_a_webhook_url_is_refused(
    dead_letter_topic: DeadLetterTopic, deliveries: Deliveries
) -> None:
    failed = deliveries.make("failed", 500, tries=9)
    deliveries.run("update applications set webhook_url = null")
    with (
        pytest.raises(RefusedError, match="no webhook URL"),
        dead_letter_topic.database.transaction() as connection,
    ):
        resend_exhausted(connection, failed, uuid4(), AMAL)
    assert not dead_letter_topic.actions()


class TestResendingAll:
    """One bulk resend starts for each application with failed deliveries in the period that can be sent."""

    def test_paused_applications_and_those_without_a_url_are_refused(
        self, dead_letter_topic: DeadLetterTopic, deliveries: Deliveries
    ) -> None:
        paused, without_url, well, long_ago = (self._application(deliveries, name) for name in "pwlo")
        deliveries.run("update applications set webhooks_paused_at = now() where name = 'p'")
        deliveries.run("update applications set webhook_url = null where name = 'w'")
        deliveries.make_many(3, "failed", 500, tries=9)
        for application in (paused, without_url):
            deliveries.make("failed", 500, tries=9, application_id=application)
        deliveries.make("succeeded", application_id=well)
        deliveries.make("failed", 500, is_test=True, application_id=well)
        deliveries.make("failed", 500, ago=10 * HOUR, application_id=long_ago)
        begun, refused = self._resend(dead_letter_topic)
        assert [(found, name) for found, name in begun] == [(3, "shop")]
        assert {name: why.split(";")[0] for name, why in refused} == {
            "p": "an operator has paused this application's webhooks",
            "w": "the application has no webhook URL",
        }
        assert dead_letter_topic.rows("select application_id, found from bulk_resends") == [
            (deliveries.application_id, 3)
        ]
        assert [action for action, _ in dead_letter_topic.actions()] == ["failed_deliveries_resent"]

    def test_repeated_request_starts_one_bulk_resend(
        self, dead_letter_topic: DeadLetterTopic, deliveries: Deliveries
    ) -> None:
        """Another request is refused while it is running."""
        deliveries.make("failed", 500, tries=9)
        request_id = uuid4()
        assert (
            self._resend(dead_letter_topic, request_id)
            == self._resend(dead_letter_topic, request_id)
            == ([(1, "shop")], [])
        )
        begun, ((name, why),) = self._resend(dead_letter_topic)
        assert (begun, name) == ([], "shop")
        assert "being resent already" in why
        assert (
            len(dead_letter_topic.actions()) == len(dead_letter_topic.rows("select from bulk_resends")) == 1
        )

    def test_repeated_calls_continue_after_the_time_limit(
        self, dead_letter_topic: DeadLetterTopic, deliveries: Deliveries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After an outage thousands of applications may have failed deliveries; each call starts some more."""
        monkeypatch.setattr("shared.domain.deliveries.bulk_resend._TIME_LIMIT_S", -1.0)
        for application in (deliveries.application_id, self._application(deliveries, "another")):
            deliveries.make("failed", 500, tries=9, application_id=application)
        now = datetime.now(UTC)
        answers = []
        for _ in range(2):
            with dead_letter_topic.database.transaction() as connection:
                answers.append(resend_all_exhausted(connection, now - HOUR, now + HOUR, AMAL))
        assert [[one.application for one in answer.started] for answer in answers] == [["shop"], ["another"]]
        assert [answer.is_all for answer in answers] == [False, True]

    def test_nothing_is_started_without_failed_deliveries(
        self, dead_letter_topic: DeadLetterTopic, deliveries: Deliveries
    ) -> None:
        deliveries.make("succeeded")
        assert self._resend(dead_letter_topic) == ([], [])

    def _resend(
        self, dead_letter_topic: DeadLetterTopic, request_id: UUID | None = None
    ) -> tuple[list[tuple[int, str]], list[tuple[str, str]]]:
        now = datetime.now(UTC)
        with dead_letter_topic.database.transaction() as connection:
            answer = resend_all_exhausted(connection, now - HOUR, now + HOUR, AMAL, request_id)
        return (
            [(one.bulk.found, one.application) for one in answer.started],
            [(one.application, one.why) for one in answer.refused],
        )

    def _application(self, deliveries: Deliveries, name: str) -> UUID:
        ((made,),) = deliveries.run(
            """insert into applications (merchant_id, name, webhook_url)
               select merchant_id, %s, webhook_url from applications where name = 'shop' returning id""",
            (name,),
        )
        return UUID(str(made))
