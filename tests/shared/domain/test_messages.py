"""Encoding and decoding of all Kafka messages."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from shared.domain.intents.states import EventType
from shared.domain.messages import AnyMessage, DeadLetter, IntentEvent, VerificationDue, decode, encode
from shared.platform.kafka.errors import UnreadableMessageError

EVENT = IntentEvent(
    id=uuid4(),
    intent_uuid=uuid4(),
    application_id=uuid4(),
    seq=3,
    type=EventType.SUCCEEDED,
    at=datetime(2026, 11, 15, 8, 30, 0, 123456, tzinfo=UTC),
)
LETTER = DeadLetter(
    topic="t",
    partition=1,
    offset=7,
    group="g",
    reason="why",
    at=EVENT.at,
    key=b"\xff\x00",
    value=b"\x80not json",
)


VERIFICATION = VerificationDue(uuid4())


@pytest.mark.parametrize("message", [EVENT, LETTER, VERIFICATION])
def test_message_is_unchanged_by_encoding_and_decoding(message: AnyMessage) -> None:
    """Also bytes that are not text, as in dead letters."""
    assert decode(encode(message)) == message


def test_unknown_fields_are_ignored() -> None:
    """Services are upgraded one after the other, so a newer sender may add fields."""
    assert decode(encode(EVENT)[:-1] + b',"later":true}') == EVENT


@pytest.mark.parametrize(
    "data",
    [
        None,  # no value at all
        b"",  # nothing
        b"\x80\xff",  # not text
        b"[1, 2]",  # not an object
        b'{"seq": 1}',  # no kind
        encode(EVENT).replace(b"intent_event.v1", b"intent_event.v9"),  # an unknown version
        encode(EVENT).replace(b'"seq":3', b'"seq":"3"'),  # a wrong type
        encode(EVENT).replace(b"payment_intent.succeeded", b"payment_intent.melted"),  # an unknown event
        b"[" * 5_000,  # deeply nested
        encode(EVENT)[:-1]
        + b',"x":'
        + b"[" * 1_000_000
        + b"]" * 1_000_000
        + b"}",  # too deep for the parser of any Python
    ],
)
def test_invalid_message_raises_unreadable_message(data: bytes | None) -> None:
    """One error for everything that a retry cannot fix."""
    with pytest.raises(UnreadableMessageError):
        decode(data)


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        EVENT.seq = 4  # type: ignore[misc]
