"""All messages that services exchange through Kafka: typed, frozen, versioned, with one codec.

A message carries no secret, no card data, no one-time code and no phone number.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from shared.domain.intents.states import EventType
from shared.platform.kafka.errors import UnreadableMessageError


class Message(msgspec.Struct, frozen=True, tag_field="kind"):
    """Base of all messages.

    A new version of a message is a new class with a new tag. The old class stays until no topic holds it any more.
    """


class IntentEvent(Message, frozen=True, tag="intent_event.v1"):
    """An intent changed its state. `id` identifies the change, and is also the id of its webhook delivery."""

    id: UUID
    intent_uuid: UUID
    application_id: UUID
    seq: int
    """Numbers the changes of one intent from 1, without gaps."""
    type: EventType
    at: datetime


class DeliveryDue(Message, frozen=True, tag="delivery_due.v1"):
    """The try of this step of a webhook delivery is due then. Published to webhooks.deliver, .slow and .delay.…

    (id, step) identifies the try. A consumer that reads it twice, or late, sees in the database that it was made.
    """

    id: UUID
    application_id: UUID
    step: int
    due_at: datetime


class ResendRequested(Message, frozen=True, tag="resend_requested.v1"):
    """Somebody requested one more try of a delivery, outside its retry schedule. `id` makes it idempotent."""

    id: UUID
    delivery_id: UUID
    application_id: UUID


class DeliveryExhausted(Message, frozen=True, tag="delivery_exhausted.v1"):
    """The last try of a delivery has failed. To replay this message means to resend the delivery."""

    id: UUID
    application_id: UUID
    at: datetime


class VerificationDue(Message, frozen=True, tag="verification_due.v1"):
    """It is time to ask the provider for the status of an attempt."""

    attempt_id: UUID


class DeadLetter(Message, frozen=True, tag="dead_letter.v1"):
    """A record that its consumer could not process: all of it, with its origin and the reason."""

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
    """Return the message of a record's value. Raises UnreadableMessageError."""
    if data is None:
        raise UnreadableMessageError("the record has no value")
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableMessageError(str(error)) from error
