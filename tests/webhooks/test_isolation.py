"""An endpoint that hangs, is slow, or gets very many webhooks does not slow down other applications."""

from dataclasses import replace
from time import time

import pytest

from services.webhooks.pipeline import application_queues, handler
from shared.domain.topics import WEBHOOKS_SLOW
from shared.platform.settings import WebhookSettings
from tests.topics import TopicReader
from tests.waiting import eventually
from tests.webhooks.conftest import DELAYS, MakeMerchant, MakeReceiver, Webhooks
from tests.webhooks.merchants import ids_in
from tests.webhooks.receivers import Reply

MANY = 5000
CONSUMERS = ("intake", "deliver", "slow")


@pytest.fixture(autouse=True)
def _short_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop without waiting long for hanging requests."""
    monkeypatch.setattr(handler, "_DRAIN_S", 0.5)


def test_others_are_served_while_one_endpoint_hangs(
    webhooks: Webhooks, make_merchant: MakeMerchant, make_receiver: MakeReceiver
) -> None:
    """Thousands wait for an endpoint that never responds. Twelve others share its partitions, behind it."""
    silent, quick = make_receiver(), make_receiver()
    silent.answer = Reply(hangs=True)
    hanging = make_merchant(silent.url)
    others = [make_merchant(quick.url) for _ in range(12)]
    hanging.create_events(MANY)
    for other in others:
        other.create_events(5)
    with webhooks.running_with_relay(*CONSUMERS):
        eventually(lambda: all(other.statuses() == {"succeeded": 5} for other in others))
        first_try_over_at = silent.requests[0].at + 10
        assert max(request.at for request in quick.requests) < first_try_over_at
        more = [other.create_event() for other in others]
        eventually(lambda: all(o.status(one) == "succeeded" for o, one in zip(others, more, strict=True)))
        slow = TopicReader(webhooks.settings.kafka, WEBHOOKS_SLOW.name)
        assert len(slow.read(MANY // 2)) > MANY // 2
        slow.close()
        assert time() < first_try_over_at + 30
    assert len(quick.requests) == 12 * 6


def test_deliveries_moved_to_the_slow_pipeline_arrive(
    webhooks: Webhooks,
    make_merchant: MakeMerchant,
    make_receiver: MakeReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once the endpoint responds again."""
    monkeypatch.setattr(application_queues, "UNANSWERED_S", 0.2)
    monkeypatch.setattr(application_queues, "HANGING_RESPONSE_S", 0.4)
    receiver = make_receiver()
    receiver.answer = Reply(hangs=True)
    merchant = make_merchant(receiver.url)
    settings = WebhookSettings(
        retry_delays=(2.0, *DELAYS[1:]), allow_private=True, in_flight_per_application=20
    )
    recovering = Webhooks(replace(webhooks.settings, webhooks=settings))
    merchant.create_events(300)
    with recovering.running_with_relay(*CONSUMERS, "delay", response_limit_s=0.5):
        slow = TopicReader(webhooks.settings.kafka, WEBHOOKS_SLOW.name)
        slow.read(200)
        slow.close()
        receiver.answer = Reply(200)
        eventually(lambda: merchant.statuses() == {"succeeded": 300})
    assert len(set(ids_in(receiver))) == 300


def test_hanging_endpoint_in_the_slow_pipeline_delays_no_other(
    webhooks: Webhooks,
    make_merchant: MakeMerchant,
    make_receiver: MakeReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The burst of a slow endpoint moves there, while thousands of a hanging one wait."""
    monkeypatch.setattr(application_queues, "SLOW_TRIM_INTERVAL_S", 1.0)
    silent, slow_receiver = make_receiver(), make_receiver()
    silent.answer = Reply(hangs=True)
    slow_receiver.answer = Reply(200, delay_s=0.3)
    hanging, steady = make_merchant(silent.url), make_merchant(slow_receiver.url)
    patient = webhooks.with_delays((3600.0,) * 8)
    hanging.create_events(4000)
    with patient.running_with_relay(*CONSUMERS):
        slow = TopicReader(webhooks.settings.kafka, WEBHOOKS_SLOW.name)
        slow.read(3000)
        slow.close()
        steady.create_events(800)
        eventually(lambda: steady.statuses() == {"succeeded": 800}, 60)
    assert hanging.statuses()["pending"] == 4000
    assert len(slow_receiver.requests) == 800


@pytest.mark.usefixtures("every_endpoint_is_fast")
def test_fast_endpoint_does_not_use_the_slow_pipeline(
    webhooks: Webhooks, make_merchant: MakeMerchant, make_receiver: MakeReceiver
) -> None:
    """However many webhooks it gets: the detour would only cost time."""
    receiver = make_receiver()
    merchant = make_merchant(receiver.url)
    merchant.create_events(3000)
    with webhooks.running_with_relay(*CONSUMERS):
        eventually(lambda: merchant.statuses() == {"succeeded": 3000})
        slow = TopicReader(webhooks.settings.kafka, WEBHOOKS_SLOW.name)
        assert slow.read_to_end() == []
        slow.close()
    assert len(receiver.requests) == 3000
