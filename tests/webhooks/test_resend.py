"""Resends (§6.6): one more try at once, to the current URL, with the current secret and the same id."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier, Thread
from uuid import UUID, uuid4

import pytest

from services.webhooks.pipeline.intake import create_deliveries
from shared.domain.deliveries.pause import SendingRefusedError
from shared.domain.deliveries.resend import DeliveryNotFoundError
from shared.domain.messages import ResendRequested, encode
from shared.domain.topics import WEBHOOKS_RESEND
from shared.platform.database.pool import Database
from shared.platform.kafka.producer import OutgoingRecord
from tests.clock import Clock
from tests.waiting import eventually
from tests.webhooks.conftest import ONE_RETRY, MakeReceiver, Webhooks
from tests.webhooks.merchants import Merchant, ids_in, is_signed, webhook_events
from tests.webhooks.receivers import Receiver, Reply

# The second try is far away, so only resends are sent meanwhile.
LATER = (600.0,) * 8
AN_HOUR = timedelta(hours=1)
SOON = (0.3,) * 8


@contextmanager
def failed_once(webhooks: Webhooks, merchant: Merchant, receiver: Receiver) -> Iterator[UUID]:
    """Yield a delivery whose first try has failed. The receiver works again afterwards."""
    receiver.answer = Reply(500)
    delivery_id = merchant.create_event()
    with webhooks.running_with_relay(*ONE_RETRY, "resend"):
        eventually(lambda: merchant.tries(delivery_id))
        receiver.answer = Reply(200)
        yield delivery_id


def test_resend_of_a_pending_delivery_makes_it_succeed(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    """It counts as a try, outside the retry schedule."""
    with failed_once(webhooks.with_delays(LATER), merchant, receiver) as delivery_id:
        resend_id = merchant.resend(delivery_id)
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
    tries = merchant.tries(delivery_id)
    assert [(one.number, one.step, one.resend_id, one.status_code) for one in tries] == [
        (1, 1, None, 500),
        (2, None, resend_id, 200),
    ]
    assert ids_in(receiver) == [delivery_id] * 2


def test_resend_uses_the_current_url_and_secret(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, make_receiver: MakeReceiver
) -> None:
    new = make_receiver()
    with failed_once(webhooks.with_delays(LATER), merchant, receiver) as delivery_id:
        merchant.set_url(new.url)
        secret = merchant.roll_secret()
        merchant.resend(delivery_id)
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
    (request,) = new.requests
    assert ids_in(new) == [delivery_id]
    assert is_signed(request.body, request.headers["service-signature"], secret)
    assert merchant.tries(delivery_id)[1].url == new.url


def test_retry_is_dropped_after_a_successful_resend(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, quick_clock: Clock
) -> None:
    """When it is due."""
    with failed_once(webhooks.with_delays(LATER), merchant, receiver) as delivery_id:
        merchant.resend(delivery_id)
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
        receiver.answer = lambda _: Reply(500 if len(receiver.requests) == 3 else 200)
        later = merchant.create_event()
        eventually(lambda: merchant.tries(later))
        quick_clock.advance(AN_HOUR)  # both retries are due, and this one is behind the other
        eventually(lambda: merchant.status(later) == "succeeded")
    assert ids_in(receiver).count(delivery_id) == 2
    delivery = merchant.delivery(delivery_id)
    assert delivery is not None
    assert (delivery.status, delivery.tries) == ("succeeded", 2)


def test_a_failed_resend_does_not_change_the_retry_schedule(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, quick_clock: Clock
) -> None:
    with failed_once(webhooks.with_delays(LATER), merchant, receiver) as delivery_id:
        due_at = merchant.delivery(delivery_id)
        receiver.answer = Reply(418)
        merchant.resend(delivery_id)
        eventually(lambda: len(merchant.tries(delivery_id)) == 2)
        after = merchant.delivery(delivery_id)
        assert due_at is not None
        assert after is not None
        assert (after.status, after.step, after.next_due_at) == ("pending", 2, due_at.next_due_at)
        assert after.last_status_code == 418
        receiver.answer = Reply(200)
        quick_clock.advance(AN_HOUR)
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
    assert [one.step for one in merchant.tries(delivery_id)] == [1, None, 2]


def test_failed_delivery_can_be_resent_until_it_succeeds(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    with failed_once(webhooks.with_delays(LATER), merchant, receiver) as delivery_id:
        merchant.execute("update webhook_deliveries set status = 'failed', next_due_at = null, step = 9")
        receiver.answer = Reply(500)
        merchant.resend(delivery_id)
        eventually(lambda: len(merchant.tries(delivery_id)) == 2)
        assert merchant.status(delivery_id) == "failed"
        receiver.answer = Reply(200)
        merchant.resend(delivery_id)
        eventually(lambda: merchant.status(delivery_id) == "succeeded")


def test_delivery_stays_succeeded_after_a_failed_resend(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    with failed_once(webhooks.with_delays(SOON), merchant, receiver) as delivery_id:
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
        receiver.answer = Reply(500)
        merchant.resend(delivery_id)
        eventually(lambda: len(merchant.tries(delivery_id)) == 3)
    assert merchant.status(delivery_id) == "succeeded"


def test_concurrent_resends_are_one_try_per_resend_id(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    """Two ids are two tries; the same id twice is one."""
    with failed_once(webhooks.with_delays(LATER), merchant, receiver) as delivery_id:
        same, barrier = uuid4(), Barrier(4)

        def request(resend_id: UUID) -> None:
            barrier.wait()
            merchant.resend(delivery_id, resend_id)

        resend_ids = [same, same, uuid4(), uuid4()]
        threads = [Thread(target=request, args=(resend_id,)) for resend_id in resend_ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        eventually(lambda: len(merchant.tries(delivery_id)) == 4)
        later = merchant.create_event()
        eventually(lambda: merchant.status(later) == "succeeded")
    tries = merchant.tries(delivery_id)
    assert {one.resend_id for one in tries} == {None, *resend_ids}
    assert [one.number for one in tries] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("update applications set webhook_url = null", "no webhook URL"),
        ("update applications set webhooks_paused_at = mizan_now()", "paused"),
    ],
)
def test_resend_without_a_url_or_while_paused_is_refused(
    merchant: Merchant, database: Database, change: str, why: str
) -> None:
    delivery_id = merchant.create_event()
    with database.cursor() as cursor:
        create_deliveries(cursor, webhook_events(database))
    merchant.execute(change)
    with pytest.raises(SendingRefusedError, match=why):
        merchant.resend(delivery_id)


def test_url_removed_after_the_resend_request_is_not_used(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    with failed_once(webhooks.with_delays(LATER), merchant, receiver) as delivery_id:
        merchant.set_url(None)
        message = ResendRequested(uuid4(), delivery_id, merchant.id)
        webhooks.publish([OutgoingRecord(WEBHOOKS_RESEND.name, str(delivery_id), encode(message))])
        eventually(
            lambda: f"delivery {delivery_id} is not resent: its application has no webhook URL" in caplog.text
        )
    assert len(merchant.tries(delivery_id)) == len(receiver.requests) == 1


def test_resend_of_an_unknown_delivery_is_refused(merchant: Merchant) -> None:
    with pytest.raises(DeliveryNotFoundError):
        merchant.resend(uuid4())


def test_bulk_resend_is_dropped_if_the_delivery_succeeded_before_its_turn(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    """Its schedule was quicker. The resend of a person is sent all the same."""
    with failed_once(webhooks.with_delays(SOON), merchant, receiver) as delivery_id:
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
        merchant.execute(
            """with asked as (insert into resend_requests (id, delivery_id, unless_succeeded)
                              select uuidv7(), id, true from webhook_deliveries returning id, delivery_id)
               insert into outbox (topic, key, payload)
               select 'webhooks.resend', d.id, resend_requested_message(asked.id, d.id, d.application_id)
               from asked join webhook_deliveries as d on d.id = asked.delivery_id"""
        )
        by_a_person = merchant.resend(delivery_id)
        eventually(lambda: len(merchant.tries(delivery_id)) == 3)
    assert [one.resend_id for one in merchant.tries(delivery_id)] == [None, None, by_a_person]
    assert len(receiver.requests) == 3
