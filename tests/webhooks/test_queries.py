"""The statements of the webhook service on a real database: what they change, and what they do not."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from psycopg import Cursor

from services.webhooks.http.client import TryResult
from services.webhooks.pipeline.intake import create_deliveries
from services.webhooks.pipeline.queries import (
    DeliveryTarget,
    ResendTry,
    ScheduledTry,
    fail_without_url,
    fetch_deliveries,
    find_recorded_resends,
    record_resends,
    record_tries,
    set_aside,
)
from services.webhooks.retry_schedule import DeliveryStatus, RetryDecision, decide_after_try
from shared.domain.deliveries.try_results import TryFailure
from shared.domain.intents.states import IntentTrigger
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings, WebhookSettings
from tests.clock import Clock
from tests.database_roles import as_role
from tests.webhooks.conftest import MakeMerchant
from tests.webhooks.merchants import Merchant, webhook_events

URL = "https://shop.example/hooks?a=1,2"
DELAYS = WebhookSettings().retry_delays


@pytest.fixture
def shop(make_merchant: MakeMerchant) -> Merchant:
    return make_merchant(URL)


@pytest.fixture
def cursor(database_settings: DatabaseSettings) -> Iterator[Cursor[Any]]:
    """A database session with the service's settings."""
    database = Database(
        as_role("mizan_webhooks", replace(database_settings, statement_timeout_s=110)),
        "webhooks",
        **STABLE_PLANS,
    )
    with database.cursor() as cursor:
        yield cursor
    database.close()


def result_of(code: int | None = 200, failure: TryFailure | None = None, body: bytes = b"ok") -> TryResult:
    return TryResult(1_000_000_000.0, 12, code, failure, body)


def scheduled_try(delivery_id: UUID, step: int, result: TryResult) -> ScheduledTry:
    decision = decide_after_try(step, is_success=result.is_success, retry_delays=DELAYS)
    return ScheduledTry(str(delivery_id), step, result, 20, decision)


class TestIntake:
    def test_an_event_becomes_a_delivery(
        self, shop: Merchant, database: Database, cursor: Cursor[Any]
    ) -> None:
        """§6.1, §6.2: with the current URL and secret version."""
        delivery_id = shop.create_event()
        created = create_deliveries(cursor, webhook_events(database))
        (stored,) = fetch_deliveries(cursor, {str(delivery_id)}).values()
        assert created == {str(delivery_id): msgspec.structs.replace(stored, due_in_s=0.0)}
        assert stored.original == DeliveryTarget(URL, 1)
        delivery = shop.delivery(delivery_id)
        assert delivery is not None
        assert (delivery.status, delivery.step, delivery.tries) == ("pending", 1, 0)
        assert (delivery.url, delivery.secret_version, delivery.event) == (URL, 1, "payment_intent.succeeded")
        assert delivery.next_due_at == created[str(delivery_id)].next_due_at

    def test_event_without_a_url_creates_no_delivery(
        self, make_merchant: MakeMerchant, database: Database, cursor: Cursor[Any]
    ) -> None:
        """§6.1. It counts as taken in, so that its month can be dropped."""
        shop = make_merchant(None)
        delivery_id = shop.create_event()
        assert create_deliveries(cursor, webhook_events(database)) == {}
        assert shop.delivery(delivery_id) is None
        assert _not_taken_in(cursor) == 0

    def test_a_url_that_is_set_later_does_not_send_old_events(
        self, make_merchant: MakeMerchant, database: Database, cursor: Cursor[Any]
    ) -> None:
        shop = make_merchant(None)
        delivery_id = shop.create_event()
        create_deliveries(cursor, webhook_events(database))
        shop.set_url(URL)
        assert create_deliveries(cursor, webhook_events(database)) == {}
        assert shop.delivery(delivery_id) is None

    def test_repeated_event_is_one_delivery(
        self, shop: Merchant, database: Database, cursor: Cursor[Any]
    ) -> None:
        delivery_id = shop.create_event()
        create_deliveries(cursor, webhook_events(database))
        shop.set_url("https://shop.example/other")
        assert create_deliveries(cursor, webhook_events(database)) == {}
        assert shop.statuses() == {"pending": 1}
        delivery = shop.delivery(delivery_id)
        assert delivery is not None
        assert delivery.url == URL

    def test_batch_of_several_applications_creates_their_deliveries(
        self, make_merchant: MakeMerchant, database: Database, cursor: Cursor[Any]
    ) -> None:
        shops = [make_merchant(URL), make_merchant(None), make_merchant("https://other.example/")]
        delivery_ids = [
            (shop, shop.create_event(trigger))
            for shop in shops
            for trigger in (IntentTrigger.EXPIRE, IntentTrigger.PAYMENT_CONFIRMED)
        ]
        created = create_deliveries(cursor, webhook_events(database))
        assert {(one.application_id, id_) for id_, one in created.items()} == {
            (str(shop.id), str(one)) for shop, one in delivery_ids if shop is not shops[1]
        }
        for shop, one in delivery_ids:
            delivery = shop.delivery(one)
            assert (delivery and delivery.url) == {0: URL, 1: None, 2: "https://other.example/"}[
                shops.index(shop)
            ]

    def test_event_that_is_not_in_the_database_is_ignored(
        self, shop: Merchant, database: Database, cursor: Cursor[Any]
    ) -> None:
        """As after restoring a backup."""
        shop.create_event()
        events = webhook_events(database)
        with database.cursor() as owner:
            owner.execute("delete from intent_events")
        assert create_deliveries(cursor, events) == {}
        assert shop.statuses() == {}


class TestRecording:
    @pytest.fixture
    def pending(self, shop: Merchant, database: Database, cursor: Cursor[Any]) -> UUID:
        delivery_id = shop.create_event()
        create_deliveries(cursor, webhook_events(database))
        return delivery_id

    def test_success_is_recorded(self, shop: Merchant, pending: UUID, cursor: Cursor[Any]) -> None:
        assert record_tries(cursor, [scheduled_try(pending, 1, result_of(204, body=b""))]) == {
            str(pending): None
        }
        delivery = shop.delivery(pending)
        assert delivery is not None
        assert (delivery.status, delivery.step, delivery.tries) == ("succeeded", 1, 1)
        assert (delivery.next_due_at, delivery.last_status_code) == (None, 204)

    def test_failure_moves_the_delivery_to_the_next_step_and_keeps_the_response(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any], clock: Clock
    ) -> None:
        """§6.6: pending, with the last response."""
        body = bytes(range(256)) + b'"},{\\'
        advanced = record_tries(cursor, [scheduled_try(pending, 1, result_of(503, body=body))])
        delivery, (one,) = shop.delivery(pending), shop.tries(pending)
        assert delivery is not None
        assert (delivery.status, delivery.step, delivery.last_status_code) == ("pending", 2, 503)
        assert advanced == {str(pending): delivery.next_due_at}
        assert delivery.next_due_at is not None
        assert abs(delivery.next_due_at - clock.now() - timedelta(seconds=10)) < timedelta(seconds=5)
        assert (one.number, one.step, one.resend_id, one.duration_ms, one.url) == (1, 1, None, 12, URL)
        assert (one.status_code, one.failure, one.response_body) == (503, None, body)

    def test_failure_without_a_response_is_recorded(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any]
    ) -> None:
        record_tries(cursor, [scheduled_try(pending, 1, result_of(None, TryFailure.TIMEOUT, b""))])
        delivery, (one,) = shop.delivery(pending), shop.tries(pending)
        assert delivery is not None
        assert (delivery.last_status_code, delivery.last_failure) == (None, "timeout")
        assert (one.status_code, one.failure, one.response_body) == (None, "timeout", b"")

    def test_the_same_step_is_recorded_once(self, shop: Merchant, pending: UUID, cursor: Cursor[Any]) -> None:
        """Two processes sent the same try. The second one changes nothing."""
        record_tries(cursor, [scheduled_try(pending, 1, result_of(500))])
        assert record_tries(cursor, [scheduled_try(pending, 1, result_of(200))]) == {}
        assert shop.status(pending) == "pending"
        assert len(shop.tries(pending)) == 1

    @pytest.mark.parametrize("step", [2, 9])
    def test_a_try_of_another_step_changes_nothing(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any], step: int
    ) -> None:
        assert record_tries(cursor, [scheduled_try(pending, step, result_of(200))]) == {}
        assert shop.status(pending) == "pending"
        assert shop.tries(pending) == []

    def test_the_ninth_failure_is_the_last(self, shop: Merchant, pending: UUID, cursor: Cursor[Any]) -> None:
        for step in range(1, 10):
            assert str(pending) in record_tries(cursor, [scheduled_try(pending, step, result_of(500))])
        delivery = shop.delivery(pending)
        assert delivery is not None
        assert (delivery.status, delivery.step, delivery.tries, delivery.next_due_at) == (
            "failed",
            9,
            9,
            None,
        )
        assert [one.step for one in shop.tries(pending)] == list(range(1, 10))

    def test_each_delivery_of_a_batch_gets_its_own_values(
        self, shop: Merchant, database: Database, cursor: Cursor[Any]
    ) -> None:
        """Values are matched by position, in any order."""
        ids = [shop.create_event() for _ in range(7)]
        create_deliveries(cursor, webhook_events(database))
        results = [
            result_of(200 + n, body=b"%d" % n) if n % 2 else result_of(None, TryFailure.DNS, b"")
            for n in range(7)
        ]
        mixed = [scheduled_try(one, 1, result) for one, result in zip(ids, results, strict=True)]
        mixed = mixed[3:] + mixed[:3]
        mixed.append(
            ScheduledTry(
                str(UUID(int=2**127)), 1, result_of(200), 1, RetryDecision(DeliveryStatus.SUCCEEDED, 1)
            )
        )
        record_tries(cursor, mixed)
        for number, delivery_id in enumerate(ids):
            (one,) = shop.tries(delivery_id)
            expected = (200 + number, None, b"%d" % number) if number % 2 else (None, "dns", b"")
            assert (one.status_code, one.failure, one.response_body) == expected
            assert shop.status(delivery_id) == ("succeeded" if number % 2 else "pending")

    def test_ended_delivery_records_nothing_more(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any]
    ) -> None:
        assert fail_without_url(cursor, {str(pending)}) == 1
        assert fail_without_url(cursor, {str(pending)}) == 0
        assert record_tries(cursor, [scheduled_try(pending, 1, result_of(200))]) == {}
        delivery = shop.delivery(pending)
        assert delivery is not None
        assert (delivery.status, delivery.last_failure, delivery.tries) == ("failed", "no_url", 0)

    def test_delivery_that_is_set_aside_stays_pending(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any]
    ) -> None:
        assert set_aside(cursor, {str(pending)}) == 1
        delivery = shop.delivery(pending)
        assert delivery is not None
        assert delivery.status == "pending"
        assert delivery.set_aside_at is not None

    def test_successful_resend_counts_as_a_try_and_succeeds(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any]
    ) -> None:
        resend_id = UUID(int=1)
        record_tries(cursor, [scheduled_try(pending, 1, result_of(500))])
        resend = ResendTry(str(pending), str(resend_id), result_of(200), 5, 'https://new.example/ünï,{}"\\')
        record_resends(cursor, [resend])
        record_resends(cursor, [resend])
        delivery, tries = shop.delivery(pending), shop.tries(pending)
        assert delivery is not None
        assert (delivery.status, delivery.tries, delivery.step, delivery.next_due_at) == (
            "succeeded",
            2,
            2,
            None,
        )
        assert [(one.number, one.step, one.resend_id) for one in tries] == [
            (1, 1, None),
            (2, None, resend_id),
        ]
        assert tries[1].url == resend.url
        assert find_recorded_resends(
            cursor, [(str(pending), str(resend_id)), (str(pending), str(UUID(int=2)))]
        ) == {(str(pending), str(resend_id))}

    @pytest.mark.parametrize("before", ["pending", "failed", "succeeded"])
    def test_failed_resend_leaves_the_delivery_unchanged(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any], before: str
    ) -> None:
        if before != "pending":
            cursor.execute("update webhook_deliveries set status = %s, next_due_at = null", (before,))
        due_at = _due_at(shop, pending)
        record_resends(cursor, [ResendTry(str(pending), str(UUID(int=1)), result_of(500), 5, URL)])
        delivery = shop.delivery(pending)
        assert delivery is not None
        assert (delivery.status, delivery.tries, delivery.next_due_at) == (before, 1, due_at)

    def test_a_delivery_has_its_original_and_its_current_target(
        self, shop: Merchant, pending: UUID, cursor: Cursor[Any]
    ) -> None:
        shop.set_url("https://new.example/")
        shop.roll_secret()
        delivery = fetch_deliveries(cursor, {str(pending)})[str(pending)]
        assert (delivery.original.url, delivery.original.secret_version) == (URL, 1)
        assert delivery.current is not None
        assert (delivery.current.url, delivery.current.secret_version) == ("https://new.example/", 2)
        assert delivery.due_in_s <= 0
        assert fetch_deliveries(cursor, {str(UUID(int=5))}) == {}


def _due_at(shop: Merchant, delivery_id: UUID) -> object:
    delivery = shop.delivery(delivery_id)
    assert delivery is not None
    return delivery.next_due_at


def _not_taken_in(cursor: Cursor[Any]) -> int:
    cursor.execute(
        """select from intent_events where taken_in_at is null
           and type in ('payment_intent.succeeded', 'payment_intent.canceled')"""
    )
    return cursor.rowcount
