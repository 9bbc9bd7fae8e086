"""End to end: a real consumer gives up on a record, the cause is fixed, an operator replays it."""

from shared.domain.deliveries.exhausted import list_exhausted
from shared.domain.deliveries.resend import resend_exhausted
from shared.domain.topics import DEAD_LETTERS, WEBHOOKS_DELIVER
from tests.shared.domain.dead_letters.dead_letter_topic import AMAL, DeadLetterTopic
from tests.waiting import eventually
from tests.webhooks.conftest import (
    Webhooks,
    make_merchant,
    merchant,
    receiver,
    webhook_settings,
    webhooks,
)
from tests.webhooks.merchants import Merchant, ids_in
from tests.webhooks.receivers import Receiver, Reply

__all__ = ["make_merchant", "merchant", "receiver", "webhook_settings", "webhooks"]

BREAK = """
create function broken() returns trigger language plpgsql as 'begin raise ''card 4242424242424242''; end';
create trigger broken before insert on webhook_deliveries for each row execute function broken()"""
MEND = "drop trigger broken on webhook_deliveries"


def test_replayed_event_is_delivered_after_the_cause_is_fixed(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, dead_letter_topic: DeadLetterTopic
) -> None:
    """Intake gave up on it. A second replay does nothing."""
    merchant.execute(BREAK)
    delivery_id = merchant.create_event()
    with webhooks.running_with_relay():
        eventually(lambda: dead_letter_topic.records(DEAD_LETTERS))
        (letter,) = dead_letter_topic.page().dead_letters
        assert (letter.topic, letter.group) == ("payment_intents.events", "webhooks.intake")
        assert "[redacted]" in letter.reason
        assert str(delivery_id) in letter.value
        merchant.execute(MEND)
        assert dead_letter_topic.replay(letter)
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
        assert not dead_letter_topic.replay(dead_letter_topic.look(letter.offset))
    assert ids_in(receiver) == [delivery_id]


def test_replayed_unreadable_record_becomes_a_new_dead_letter(
    webhooks: Webhooks, dead_letter_topic: DeadLetterTopic
) -> None:
    """It has its own id, and can be replayed again."""
    with webhooks.running("deliver"):
        dead_letter_topic.put(WEBHOOKS_DELIVER, [(b"key", b"\xffnonsense")])
        eventually(lambda: dead_letter_topic.page().dead_letters)
        (first,) = dead_letter_topic.page().dead_letters
        assert dead_letter_topic.replay(first)
        eventually(lambda: len(dead_letter_topic.page().dead_letters) == 2)
        second, again = dead_letter_topic.page().dead_letters
        assert again.replayed is not None
        assert (again.id, second.replayed) == (first.id, None)
        assert second.id != first.id


def test_exhausted_delivery_is_listed_and_succeeds_when_resent(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, dead_letter_topic: DeadLetterTopic
) -> None:
    """It is resent after the receiver has recovered."""
    receiver.answer = Reply(500, b"password=hush")
    delivery_id = merchant.create_event()
    with webhooks.with_delays((0.05,) * 8).running_with_relay():
        eventually(lambda: merchant.status(delivery_id) == "failed")

        def listed() -> list[tuple[str, str | None]]:
            with dead_letter_topic.database.transaction() as connection:
                page = list_exhausted(connection, dead_letter_topic.kafka, None, 10)
            assert {one.delivery_id for one in page.deliveries} <= {delivery_id}
            return [(one.status, one.last_answer) for one in page.deliveries]

        assert eventually(listed) == [("failed", "password=[redacted]")]
        receiver.answer = Reply(200, b"thanks")
        with dead_letter_topic.database.transaction() as connection:
            resend_exhausted(connection, delivery_id, delivery_id, AMAL)
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
        assert listed() == [("succeeded", "thanks")]
