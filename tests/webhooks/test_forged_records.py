"""Records that contradict the database: nobody receives another application's event, and nothing true is lost."""

from uuid import UUID, uuid4

import msgspec
import pytest

from services.webhooks.outgoing import to_deliver
from shared.domain.intents.states import EventType, IntentTrigger
from shared.domain.messages import DeadLetter, IntentEvent, Message, ResendRequested, encode
from shared.domain.topics import DEAD_LETTERS, PAYMENT_INTENT_EVENTS, WEBHOOKS_DELIVER, WEBHOOKS_RESEND
from shared.platform.database.pool import Database
from shared.platform.kafka.producer import OutgoingRecord
from tests.topics import TopicReader
from tests.waiting import eventually
from tests.webhooks.conftest import FIRST_TRY, MakeMerchant, MakeReceiver, Webhooks
from tests.webhooks.merchants import Merchant, first_tries, ids_in, is_signed, webhook_events
from tests.webhooks.receivers import Receiver


def read_dead_letters(webhooks: Webhooks, count: int) -> list[DeadLetter]:
    reader = TopicReader(webhooks.settings.kafka, DEAD_LETTERS.name)
    letters = [letter for letter in reader.read(count) if isinstance(letter, DeadLetter)]
    reader.close()
    return letters


def event_record(event: IntentEvent) -> OutgoingRecord:
    return OutgoingRecord(PAYMENT_INTENT_EVENTS.name, str(event.intent_uuid), encode(event))


@pytest.mark.parametrize("forged_first", [True, False])
def test_an_event_goes_to_its_own_application_whatever_the_record_says(
    webhooks: Webhooks,
    make_merchant: MakeMerchant,
    make_receiver: MakeReceiver,
    database: Database,
    *,
    forged_first: bool,
) -> None:
    """Both records come in one batch, in either order. The forged one goes to the dead letters."""
    own, foreign = make_receiver(), make_receiver()
    owner, stranger = make_merchant(own.url), make_merchant(foreign.url)
    delivery_id = owner.create_event()
    (event,) = webhook_events(database)
    forged = msgspec.structs.replace(event, application_id=stranger.id)
    records = [event_record(forged), event_record(event)]
    webhooks.publish(records if forged_first else records[::-1])
    with webhooks.running(*FIRST_TRY):
        eventually(lambda: owner.status(delivery_id) == "succeeded")
        (letter,) = read_dead_letters(webhooks, 1)
    assert letter.value == encode(forged)
    assert letter.reason == (
        f"the database has no event {event.id} with this application, intent, seq and type"
    )
    assert ids_in(own) == [delivery_id]
    assert is_signed(own.requests[0].body, own.requests[0].headers["service-signature"], owner.secret)
    assert foreign.requests == []
    assert stranger.statuses() == {}


@pytest.mark.parametrize(
    "change",
    [
        {"id": uuid4()},
        {"intent_uuid": uuid4()},
        {"application_id": uuid4()},
        {"seq": 3},
        {"type": EventType.CANCELED},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_event_that_differs_from_the_database_is_rejected(
    webhooks: Webhooks, merchant: Merchant, database: Database, change: dict[str, object]
) -> None:
    merchant.create_event()
    (event,) = webhook_events(database)
    webhooks.publish([event_record(msgspec.structs.replace(event, **change))])
    with webhooks.running("intake"):
        read_dead_letters(webhooks, 1)
    assert merchant.statuses() == {}


def test_an_event_that_merchants_do_not_receive_creates_no_delivery(
    webhooks: Webhooks, merchant: Merchant, database: Database
) -> None:
    """The intent was created, and a forged record says that it was paid."""
    merchant.create_event(IntentTrigger.ATTEMPT_SENT)
    with database.transaction() as connection:
        row = connection.execute(
            "select id, intent_uuid, seq, at from intent_events where seq = 1"
        ).fetchone()
    assert row is not None
    forged = IntentEvent(row[0], row[1], merchant.id, row[2], EventType.SUCCEEDED, row[3])
    webhooks.publish([event_record(forged)])
    with webhooks.running("intake"):
        read_dead_letters(webhooks, 1)
    assert merchant.statuses() == {}


@pytest.mark.parametrize("kind", ["scheduled", "resend"])
def test_a_try_is_made_for_the_deliverys_own_application(
    webhooks: Webhooks, make_merchant: MakeMerchant, receiver: Receiver, database: Database, kind: str
) -> None:
    """The forged record comes first and waits for the same look-up as the true one, which is sent once."""
    owner, stranger = make_merchant(receiver.url), make_merchant(receiver.url)
    delivery_id = owner.create_event()
    with database.cursor() as cursor:
        (due,) = first_tries(cursor, webhook_events(database))
    consumer, topic = ("deliver", WEBHOOKS_DELIVER) if kind == "scheduled" else ("resend", WEBHOOKS_RESEND)
    true: Message = due if kind == "scheduled" else ResendRequested(uuid4(), delivery_id, owner.id)
    forged = msgspec.structs.replace(true, application_id=stranger.id)
    key = str(UUID(int=0))  # the same partition
    webhooks.publish([OutgoingRecord(topic.name, key, encode(message)) for message in (forged, true)])  # type: ignore[arg-type]
    with webhooks.running(consumer):
        eventually(lambda: owner.status(delivery_id) == "succeeded")
        (letter,) = read_dead_letters(webhooks, 1)
    assert letter.value == encode(forged)  # type: ignore[arg-type]
    assert letter.reason == f"delivery {delivery_id} belongs to another application"
    assert ids_in(receiver) == [delivery_id]
    assert to_deliver(due).key == str(owner.id)
