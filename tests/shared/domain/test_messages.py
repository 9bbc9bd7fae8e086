"""Encoding and decoding of all Kafka messages."""

import json
from datetime import UTC, datetime
from typing import get_args
from uuid import UUID, uuid4

import msgspec
import pytest

from shared.domain.dead_letters.producer import _dead_letter
from shared.domain.intents.states import EventType
from shared.domain.messages import (
    AnyMessage,
    DeadLetter,
    DeliveryDue,
    DeliveryExhausted,
    IntentEvent,
    ResendRequested,
    VerificationDue,
    decode,
    encode,
)
from shared.platform.kafka.errors import UnreadableMessageError
from shared.platform.kafka.records import Record

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


PLAIN_TYPES = {UUID, int, datetime, EventType}
"""Types that cannot hold a secret, a card number, a one-time code or a phone number."""
DEAD_LETTER_TEXTS = {
    "topic": str,  # of ours
    "group": str,  # of ours
    "reason": str,  # redacted: see the test below
    "key": bytes | None,  # what another of these messages had
    "value": bytes | None,
}


def test_messages_have_no_field_for_a_secret_or_a_phone() -> None:
    """Ids, numbers, times and event types only; a dead letter also has the record it is about, and the reason."""
    for kind in get_args(AnyMessage):
        texts = {
            field.name: field.type for field in msgspec.structs.fields(kind) if field.type not in PLAIN_TYPES
        }
        assert texts == (DEAD_LETTER_TEXTS if kind is DeadLetter else {}), kind


def test_what_is_sent_has_the_declared_fields_only() -> None:
    """Field by field, as it is on the wire, for every kind of message."""
    at = EVENT.at
    sent: list[AnyMessage] = [
        EVENT,
        DeliveryDue(uuid4(), uuid4(), 1, at),
        ResendRequested(uuid4(), uuid4(), uuid4()),
        DeliveryExhausted(uuid4(), uuid4(), at),
        VERIFICATION,
        LETTER,
    ]
    assert {type(message) for message in sent} == set(get_args(AnyMessage))
    names = {json.loads(encode(message))["kind"]: set(json.loads(encode(message))) for message in sent}
    assert names == {
        "intent_event.v1": {"kind", "id", "intent_uuid", "application_id", "seq", "type", "at"},
        "delivery_due.v1": {"kind", "id", "application_id", "step", "due_at"},
        "resend_requested.v1": {"kind", "id", "delivery_id", "application_id"},
        "delivery_exhausted.v1": {"kind", "id", "application_id", "at"},
        "verification_due.v1": {"kind", "attempt_id"},
        "dead_letter.v1": {"kind", "topic", "partition", "offset", "group", "reason", "at", "key", "value"},
    }


@pytest.mark.parametrize(
    "secret", ["4111 1111 1111 1111", "pk_" + "A" * 32, "whsec_" + "A" * 40, "+218 91 234 5678"]
)
def test_reason_of_a_dead_letter_is_redacted(secret: str) -> None:
    """An exception's text may quote what it failed on."""
    record = Record("work", 0, 1, b"key", b"value", 0.0)
    letter = _dead_letter(record, "group", f"ValueError: invalid value {secret!r}")
    assert secret.encode() not in encode(letter)
    assert letter.reason.startswith("ValueError: invalid value")


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        EVENT.seq = 4  # type: ignore[misc]
