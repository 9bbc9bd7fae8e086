"""Intake: what it creates from events, and when the record of an event is done."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from services.webhooks.pipeline.intake import take_in
from services.webhooks.pipeline.tries import TryInProgress
from shared.domain.messages import DeliveryDue, IntentEvent, decode, encode
from shared.domain.topics import PAYMENT_INTENT_EVENTS, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.database.pool import Database
from shared.platform.kafka import clients
from shared.platform.kafka.producer import OutgoingRecord
from shared.platform.kafka.records import AssignedPartition, Record, Task
from tests.topics import TopicReader
from tests.waiting import eventually
from tests.webhooks.conftest import DELAYS, FIRST_TRY, MakeMerchant, Webhooks
from tests.webhooks.merchants import Merchant, first_tries, ids_in, webhook_events
from tests.webhooks.receivers import Receiver, Reply
from tests.webhooks.test_forged_records import event_record, read_dead_letters

URL = "https://shop.example/hooks"


def tries(events: Sequence[IntentEvent]) -> list[TryInProgress]:
    partition = AssignedPartition(PAYMENT_INTENT_EVENTS.name, 0)
    return [
        TryInProgress(event, Task(partition, Record(partition.topic, 0, 1, None, encode(event), 0.0), decode))
        for event in events
    ]


@pytest.mark.parametrize("forged_first", [True, False])
def test_a_forged_event_is_rejected_and_the_true_one_of_the_same_batch_is_not(
    make_merchant: MakeMerchant, database: Database, *, forged_first: bool
) -> None:
    shop, without_url = make_merchant(URL), make_merchant(None)
    shop.create_event()
    without_url.create_event()
    (event,) = (one for one in webhook_events(database) if one.application_id == shop.id)
    (silent,) = (one for one in webhook_events(database) if one.application_id == without_url.id)
    forged = msgspec.structs.replace(event, seq=event.seq + 1)
    batch = tries([silent, *([forged, event] if forged_first else [event, forged])])
    with database.cursor() as cursor:
        created, rejected = take_in(cursor, batch)
    assert list(created) == [str(event.id)]
    assert [one.event for one in batch if one.key in rejected] == [forged]
    assert len({one.key for one in batch}) == 3


def test_an_event_that_was_taken_in_before_is_neither_created_again_nor_rejected(
    make_merchant: MakeMerchant, database: Database
) -> None:
    shop = make_merchant(URL)
    shop.create_event()
    batch = tries(webhook_events(database))
    with database.cursor() as cursor:
        assert len(take_in(cursor, batch)[0]) == 1
        assert take_in(cursor, batch) == ({}, {})
    assert shop.statuses() == {"pending": 1}


def test_a_number_that_no_column_can_hold_is_rejected(
    make_merchant: MakeMerchant, database: Database
) -> None:
    shop = make_merchant(URL)
    shop.create_event()
    (event,) = webhook_events(database)
    (one,) = batch = tries([msgspec.structs.replace(event, seq=2**63)])
    with database.cursor() as cursor:
        assert take_in(cursor, batch)[1].keys() == {one.key}


def test_the_first_try_needs_no_second_record(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    """The record of the event is done when the try is recorded: nothing is published for a webhook that succeeds."""
    delivery_ids = [merchant.create_event() for _ in range(20)]
    with webhooks.running_with_relay(*FIRST_TRY):
        eventually(lambda: merchant.statuses() == {"succeeded": 20})
    assert sorted(ids_in(receiver)) == sorted(delivery_ids)
    reader = TopicReader(webhooks.settings.kafka, WEBHOOKS_DELIVER.name)
    assert reader.read(0) == []
    reader.close()


def test_a_replayed_event_whose_try_was_recorded_publishes_its_delay_record_and_sends_nothing(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
) -> None:
    """The process was killed after it had recorded the failed try and before it published what follows."""
    receiver.answer = Reply(500)
    merchant.create_event()
    (event,) = webhook_events(database)
    delayed = webhooks.with_delays((3600.0, *DELAYS[1:]))
    with delayed.running_with_relay(*FIRST_TRY):
        eventually(lambda: len(receiver.requests) == 1)
    webhooks.publish([event_record(event)])
    reader = TopicReader(webhooks.settings.kafka, "webhooks.delay.1")
    with delayed.running(*FIRST_TRY):
        messages = reader.read(2)
    reader.close()
    assert [isinstance(one, DeliveryDue) and one.step for one in messages] == [2, 2]
    assert len(receiver.requests) == 1


def test_what_exceeds_the_queue_of_a_hanging_endpoint_moves_to_the_slow_pipeline(
    webhooks: Webhooks, make_merchant: MakeMerchant, receiver: Receiver
) -> None:
    """Its events count as done, so that events of others are not held up behind them."""
    receiver.answer = Reply(hangs=True)
    hanging = make_merchant(receiver.url)
    hanging.create_events(300)
    reader = TopicReader(webhooks.settings.kafka, WEBHOOKS_SLOW.name)
    with webhooks.running_with_relay(*FIRST_TRY, response_limit_s=2.0):
        moved = reader.read(100)
    reader.close()
    assert {isinstance(one, DeliveryDue) and one.application_id for one in moved} == {hanging.id}


@pytest.mark.usefixtures("every_endpoint_is_fast")
def test_what_a_fast_endpoint_has_too_much_of_moves_to_webhooks_deliver(
    webhooks: Webhooks, make_merchant: MakeMerchant, receiver: Receiver
) -> None:
    """More than it answers within a second would hold up the events of others, which share its partitions."""
    receiver.answer = Reply(200, delay_s=0.02)
    busy = make_merchant(receiver.url)
    busy.create_events(600)
    two_at_a_time = replace(webhooks.settings.webhooks, in_flight_per_application=2)
    narrow = Webhooks(replace(webhooks.settings, webhooks=two_at_a_time))
    reader = TopicReader(webhooks.settings.kafka, WEBHOOKS_DELIVER.name)
    with narrow.running_with_relay(*FIRST_TRY):
        moved = reader.read(100)
    reader.close()
    assert {isinstance(one, DeliveryDue) and (one.application_id, one.step) for one in moved} == {
        (busy.id, 1)
    }
    with webhooks.running_with_relay(*FIRST_TRY, "deliver"):
        eventually(lambda: busy.statuses() == {"succeeded": 600})


def test_a_record_of_another_kind_among_the_events_is_a_dead_letter(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
) -> None:
    """Only webhooks.deliver and the topics behind it may ask for a try."""
    merchant.create_event()
    with database.cursor() as cursor:
        (due,) = first_tries(cursor, webhook_events(database))
    webhooks.publish([OutgoingRecord(PAYMENT_INTENT_EVENTS.name, str(due.id), encode(due))])
    with webhooks.running(*FIRST_TRY):
        (letter,) = read_dead_letters(webhooks, 1)
    assert letter.topic == clients.topic_name(webhooks.settings.kafka, PAYMENT_INTENT_EVENTS.name)
    assert "DeliveryDue requests no try" in letter.reason
    assert receiver.requests == []
