"""From an event to the merchant's endpoint (§6), through the real topics: signed, retried and recorded."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from services.webhooks.pipeline import handler
from shared.domain.intents.states import IntentTrigger
from shared.domain.messages import DeliveryExhausted
from shared.domain.topics import WEBHOOKS_DEAD
from tests.clock import Clock
from tests.topics import TopicReader
from tests.waiting import eventually
from tests.webhooks.conftest import (
    DELAYS,
    FIRST_TRY,
    ONE_RETRY,
    TWO_RETRIES,
    MakeMerchant,
    MakeReceiver,
    Webhooks,
)
from tests.webhooks.merchants import Merchant, ids_in, is_signed
from tests.webhooks.receivers import Received, Receiver, Reply


@pytest.mark.parametrize(
    ("trigger", "event"),
    [
        (IntentTrigger.PAYMENT_CONFIRMED, "payment_intent.succeeded"),
        (IntentTrigger.EXPIRE, "payment_intent.canceled"),
    ],
)
def test_a_merchant_receives_a_signed_event(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, trigger: IntentTrigger, event: str
) -> None:
    """§2.2, §6.3, §6.4: a POST with this body, these headers, and a signature over the raw body."""
    receiver.answer = Reply(202, b"thanks")
    delivery_id = merchant.create_event(trigger)
    with webhooks.running_with_relay(*FIRST_TRY):
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
    (request,) = receiver.requests
    body = json.loads(request.body)
    assert body == {"id": str(delivery_id), "event": event, "data": {"uuid": body["data"]["uuid"]}}
    assert request.headers["content-type"] == "application/json"
    assert is_signed(request.body, request.headers["service-signature"], merchant.secret)
    assert request.path == "/hooks"
    (one,) = merchant.tries(delivery_id)
    assert (one.number, one.step, one.status_code, one.failure, one.response_body) == (
        1,
        1,
        202,
        None,
        b"thanks",
    )
    assert one.url == receiver.url


def test_other_state_changes_are_not_sent(webhooks: Webhooks, merchant: Merchant, receiver: Receiver) -> None:
    """§6.2: for example that an attempt was sent."""
    delivery_ids = [
        merchant.create_event(trigger)
        for trigger in (IntentTrigger.ATTEMPT_SENT, IntentTrigger.PAYMENT_CONFIRMED)
    ]
    with webhooks.running_with_relay(*FIRST_TRY):
        eventually(lambda: merchant.status(delivery_ids[1]) == "succeeded")
    assert ids_in(receiver) == [delivery_ids[1]]
    assert merchant.delivery(delivery_ids[0]) is None


def test_failures_are_retried_until_a_success(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    """§6.6: everything but a 2xx is retried, never early, with the same id and the same bytes."""
    codes = iter([500, 302, 404, 410, 200])
    receiver.answer = lambda _: Reply(next(codes), b"answer")
    delivery_id = merchant.create_event()
    with webhooks.running_with_relay():
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
    tries = merchant.tries(delivery_id)
    assert [(one.number, one.step, one.status_code) for one in tries] == [
        (1, 1, 500),
        (2, 2, 302),
        (3, 3, 404),
        (4, 4, 410),
        (5, 5, 200),
    ]
    assert len({request.body for request in receiver.requests}) == 1
    assert ids_in(receiver) == [delivery_id] * 5
    for earlier, later in pairwise(receiver.requests):
        assert later.at - earlier.at >= DELAYS[0]


def test_delivery_fails_after_the_ninth_failure(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    """§6.6: until then it is pending with the last response. Then it is failed and published."""
    receiver.answer = Reply(503, b"busy")
    delivery_id = merchant.create_event()
    seen_pending = []

    def has_failed() -> bool:
        delivery = merchant.delivery(delivery_id)
        if delivery is not None and delivery.status == "pending" and delivery.tries:
            seen_pending.append((delivery.last_status_code, delivery.next_due_at is not None))
        return delivery is not None and delivery.status == "failed"

    with webhooks.with_delays((0.1,) * 8).running_with_relay():
        eventually(has_failed)
        dead = TopicReader(webhooks.settings.kafka, WEBHOOKS_DEAD.name)
        (exhausted,) = dead.read(1)
        dead.close()
    assert isinstance(exhausted, DeliveryExhausted)
    assert exhausted.id == delivery_id
    assert [one.step for one in merchant.tries(delivery_id)] == list(range(1, 10))
    assert len(receiver.requests) == 9
    assert set(seen_pending) == {(503, True)}


def test_each_kind_of_failure_is_recorded(
    webhooks: Webhooks, make_merchant: MakeMerchant, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _without_dns_server(socket.getaddrinfo))
    receiver.answer = Reply(hangs=True)
    silent = make_merchant(receiver.url)
    refusing = make_merchant("http://127.0.0.1:9/")
    nowhere = make_merchant("http://no-such-host.invalid/")
    expected = {silent: "timeout", refusing: "refused", nowhere: "dns"}
    delivery_ids = {merchant: merchant.create_event() for merchant in expected}
    with webhooks.running_with_relay(*FIRST_TRY, response_limit_s=2):
        for merchant, kind in expected.items():
            first = eventually(lambda m=merchant: m.tries(delivery_ids[m]))[0]  # type: ignore[misc]
            assert (first.status_code, first.failure, first.response_body) == (None, kind, b"")


def _without_dns_server(getaddrinfo_of_system: Callable[..., Any]) -> Callable[..., Any]:
    """Fail at once for that host, also on a machine whose DNS server is slow or unavailable."""

    def getaddrinfo(host: str | bytes | None, *others: Any, **options: Any) -> Any:
        if host == b"no-such-host.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return getaddrinfo_of_system(host, *others, **options)

    return getaddrinfo


def test_long_response_body_is_truncated(webhooks: Webhooks, merchant: Merchant, receiver: Receiver) -> None:
    receiver.answer = Reply(200, b"x" * 100_000)
    delivery_id = merchant.create_event()
    with webhooks.running_with_relay(*FIRST_TRY):
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
    (one,) = merchant.tries(delivery_id)
    assert one.response_body == b"x" * 16 * 1024


def test_hundreds_of_deliveries_arrive_once_each(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    delivery_ids = {merchant.create_event() for _ in range(200)}
    with webhooks.running_with_relay(*FIRST_TRY):
        eventually(lambda: merchant.statuses() == {"succeeded": 200})
    assert sorted(ids_in(receiver)) == sorted(delivery_ids)


def test_nothing_is_sent_without_a_url(
    webhooks: Webhooks, make_merchant: MakeMerchant, receiver: Receiver
) -> None:
    """§6.1"""
    without_url, with_url = make_merchant(None), make_merchant(receiver.url)
    without_url.create_event()
    last = with_url.create_event()
    with webhooks.running_with_relay(*FIRST_TRY):
        eventually(lambda: with_url.status(last) == "succeeded")
    assert ids_in(receiver) == [last]
    assert without_url.statuses() == {}


class TestChangesWhileRetriesWait:
    """§6.6 and DESIGN §3: which changes apply to waiting retries, and which end them."""

    def test_retries_use_the_old_secret_after_a_roll(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        """New deliveries use the new one."""
        old, rolled = merchant.secret, []

        def answer(_: Received) -> Reply:
            if len(receiver.requests) == 2:
                rolled.append(merchant.roll_secret())
            return Reply(500 if len(receiver.requests) < 3 else 200)

        receiver.answer = answer
        delivery_id = merchant.create_event()
        with webhooks.running_with_relay(*TWO_RETRIES):
            eventually(lambda: merchant.status(delivery_id) == "succeeded")
            after = merchant.create_event()
            eventually(lambda: merchant.status(after) == "succeeded")
        *earlier, last = receiver.requests
        assert [is_signed(r.body, r.headers["service-signature"], old) for r in earlier] == [True] * 3
        assert is_signed(last.body, last.headers["service-signature"], rolled[0])

    def test_retries_use_the_old_url_after_a_change(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, make_receiver: MakeReceiver
    ) -> None:
        """New deliveries use the new one."""
        new = make_receiver()
        receiver.answer = lambda _: Reply(500 if len(receiver.requests) < 3 else 200)
        delivery_id = merchant.create_event()
        with webhooks.running_with_relay(*TWO_RETRIES):
            eventually(lambda: len(receiver.requests) == 1)
            merchant.set_url(new.url)
            after = merchant.create_event()
            eventually(lambda: merchant.status(delivery_id) == merchant.status(after) == "succeeded")
        assert ids_in(receiver) == [delivery_id] * 3
        assert ids_in(new) == [after]
        assert {one.url for one in merchant.tries(delivery_id)} == {receiver.url}

    def test_retries_end_as_failed_after_the_url_was_removed(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        """When they are due. Nothing is sent any more."""
        receiver.answer = Reply(500)
        delivery_id = merchant.create_event()
        with webhooks.running_with_relay():
            eventually(lambda: merchant.tries(delivery_id))
            sent = len(receiver.requests)
            merchant.set_url(None)
            eventually(lambda: merchant.status(delivery_id) == "failed")
        delivery = merchant.delivery(delivery_id)
        assert delivery is not None
        assert (delivery.last_failure, delivery.next_due_at) == ("no_url", None)
        assert len(receiver.requests) <= sent + 1
        assert delivery.tries == len(receiver.requests)

    def test_queued_try_is_not_sent_after_the_url_was_removed(
        self,
        webhooks: Webhooks,
        merchant: Merchant,
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A try that waits long for a slot is looked up again before it is sent."""
        monkeypatch.setattr(handler, "_LOOKUP_VALID_S", 0.3)
        receiver.answer = Reply(hangs=True)
        one_at_a_time = replace(webhooks.settings.webhooks, in_flight_per_application=1)
        narrow = Webhooks(replace(webhooks.settings, webhooks=one_at_a_time)).with_delays((3600.0,) * 8)
        delivery_ids = [merchant.create_event() for _ in range(3)]
        with narrow.running_with_relay(*FIRST_TRY, response_limit_s=2.0):
            # the first try hangs, the others move to slow
            eventually(lambda: any(merchant.tries(one) for one in delivery_ids))
        with narrow.running(
            "slow", response_limit_s=4.0
        ):  # the second hangs, and the third waits for its slot
            eventually(lambda: len(receiver.requests) == 2)
            merchant.set_url(None)
            eventually(lambda: merchant.statuses() == {"pending": 2, "failed": 1})
        assert len(receiver.requests) == 2
        assert sum(len(merchant.tries(one)) for one in delivery_ids) == 2

    def test_delivery_of_a_paused_application_is_set_aside(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        """Nothing is sent, and nothing fails."""
        merchant.execute("update applications set webhooks_paused_at = mizan_now()")
        delivery_id = merchant.create_event()
        with webhooks.running_with_relay(*FIRST_TRY):
            eventually(
                lambda: (d := merchant.delivery(delivery_id)) is not None and d.set_aside_at is not None
            )
        assert receiver.requests == []
        assert merchant.status(delivery_id) == "pending"


def test_tries_have_the_time_of_the_database_clock(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, clock: Clock
) -> None:
    clock.advance(timedelta(hours=5))
    receiver.answer = lambda _: Reply(500 if len(receiver.requests) < 2 else 200)
    delivery_id = merchant.create_event()
    with webhooks.running_with_relay(*ONE_RETRY):
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
        now = clock.now()
    for one in merchant.tries(delivery_id):
        assert timedelta() <= now - one.at < timedelta(seconds=30)
