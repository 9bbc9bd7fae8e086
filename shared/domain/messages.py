"""Everything that travels between services through Kafka: typed, frozen, versioned, with one codec.

A message carries no secret, no card data, no one-time code and no phone number.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from shared.domain.intents.states import EventType
from shared.platform.kafka.errors import UnreadableMessageError


class Message(msgspec.Struct, frozen=True, tag_field="kind"):
    """A new version of a message is a new class with a new tag; the old one stays until no topic holds it."""


class IntentEvent(Message, frozen=True, tag="intent_event.v1"):
    """An intent changed its state. `id` names the change, and the webhook delivery that tells of it."""

    id: UUID
    intent_uuid: UUID
    application_id: UUID
    seq: int
    """Counts the changes of one intent from 1, without gaps."""
    type: EventType
    at: datetime


class DeliveryDue(Message, frozen=True, tag="delivery_due.v1"):
    """A webhook delivery whose try of this step is due then, on webhooks.deliver, .slow or .delay.…

    (id, step) names the try: whoever reads it twice, or late, sees in the database that it has been made.
    """

    id: UUID
    application_id: UUID
    step: int
    due_at: datetime


class ResendRequested(Message, frozen=True, tag="resend_requested.v1"):
    """Somebody wants a delivery sent once more, outside the ladder. `id` names the wish, so that it is met once."""

    id: UUID
    delivery_id: UUID
    application_id: UUID


class DeliveryExhausted(Message, frozen=True, tag="delivery_exhausted.v1"):
    """The ninth try of a delivery has failed; whoever replays it resends the delivery."""

    id: UUID
    application_id: UUID
    at: datetime


class VerificationDue(Message, frozen=True, tag="verification_due.v1"):
    """It is time to ask a provider what became of an attempt's request of this number."""

    attempt_id: UUID
    number: int
    surely_arrived: bool
    """When it fell due, the request could not be on its way any more."""


class DeadLetter(Message, frozen=True, tag="dead_letter.v1"):
    """A record that nobody could process, whole, with where it came from and why it is here."""

    topic: str
    partition: int
    offset: int
    group: str
    reason: str
    at: datetime
    key: bytes | None = None
    value: bytes | None = None


AnyMessage = IntentEvent | DeliveryDue | ResendRequested | DeliveryExhausted | VerificationDue | DeadLetter

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyMessage] = msgspec.json.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes | None) -> AnyMessage:
    if data is None:
        raise UnreadableMessageError("the record has no value")
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableMessageError(str(error)) from error
