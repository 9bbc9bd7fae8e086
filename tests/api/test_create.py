"""POST /payment-intents creates a payment intent (§4.1) and returns it completely (§2.1)."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from shared.domain.intents.states import EventType
from shared.domain.messages import IntentEvent, decode
from shared.domain.topics import PAYMENT_INTENT_EVENTS
from shared.platform.database.pool import Database
from tests.api.conftest import PATH, Merchant, data_of, written
from tests.clock import Clock
from tests.constants import CHECKOUT_URL

GIVEN_BY_US = {"uuid", "reference", "status", "expires_at", "checkout_url", "created_at", "updated_at"}
GIVEN_BY_MERCHANT = {
    "merchant_reference",
    "amount",
    "currency",
    "description",
    "customer",
    "return_url",
    "metadata",
}
UTC_WITH_Z = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _from_merchant(data: dict[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in GIVEN_BY_MERCHANT - {"merchant_reference"}}


def test_create_returns_201_with_every_field(merchant: Merchant) -> None:
    """§2.1: what was sent is returned unchanged, beside the fields that the service adds."""
    expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    sent = {
        "merchant_reference": "order-77",
        "amount": 12_345,
        "currency": "LYD",
        "customer": {"external_id": "c-9"},
        "description": "Two coffees",
        "return_url": "https://shop.example/orders/77?from=mizan#top",
        "metadata": {"table": "4"},
    }
    answer = merchant.create(**sent, expires_at=expires_at.isoformat())
    data = data_of(answer, 201)
    assert answer.content_type == "application/json"
    assert set(data) == GIVEN_BY_US | GIVEN_BY_MERCHANT
    assert {name: data[name] for name in sent} == sent
    assert str(UUID(data["uuid"])) == data["uuid"]
    assert data["status"] == "requires_payment_method"
    assert _moment(data["expires_at"]) == expires_at
    assert data["created_at"] == data["updated_at"]


def test_fields_that_were_not_sent_are_null_in_the_response(merchant: Merchant) -> None:
    """§2.1: every field is present. `customer` is an object whose external_id is null."""
    data = data_of(merchant.create(), 201)
    assert set(data) == GIVEN_BY_US | GIVEN_BY_MERCHANT
    assert _from_merchant(data) == {
        "amount": 25_000,
        "currency": "LYD",
        "description": None,
        "customer": {"external_id": None},
        "return_url": None,
        "metadata": None,
    }
    assert type(data["amount"]) is int
    assert all(isinstance(data[name], str) for name in GIVEN_BY_US)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"expires_at": None},  # null means not sent
    ],
)
def test_expiry_is_24_hours_after_creation_by_default(
    merchant: Merchant, clock: Clock, fields: dict[str, None]
) -> None:
    """§4.1, §8: creation time is taken from the database's clock."""
    clock.advance(timedelta(days=400))
    before = clock.now()
    data = data_of(merchant.create(**fields), 201)
    assert before <= _moment(data["created_at"]) <= clock.now()
    assert _moment(data["expires_at"]) - _moment(data["created_at"]) == timedelta(hours=24)


def test_optional_field_with_null_is_treated_as_not_sent(
    merchant: Merchant, subtests: pytest.Subtests
) -> None:
    """DESIGN §3: optional fields may be null."""
    without = _from_merchant(data_of(merchant.create(), 201))
    rows: list[dict[str, Any]] = [
        {"customer": None},
        {"customer": {}},
        {"customer": {"external_id": None}},
        {"description": None},
        {"return_url": None},
        {"metadata": None},
        {"customer": None, "description": None, "return_url": None, "metadata": None, "expires_at": None},
    ]
    for number, fields in enumerate(rows):
        with subtests.test(fields=fields):
            answer = merchant.create(merchant_reference=f"null-{number}", **fields)
            assert _from_merchant(data_of(answer, 201)) == without


def test_metadata_is_returned_as_sent(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§2.1: unchanged, in the same order of keys, after the create and after a retrieve."""
    rows: list[dict[str, str]] = [
        {},  # an empty object is not null
        {"z": "1", "a": "2", "10": "3", "9": "4", "m": "5"},  # not sorted
        {"المقاس": "كبير جدًا", "اللون": "أحمر"},
        {"gift": "🎁", "family": "👨‍👩‍👧‍👦"},  # also with zero-width joiners
        {"composed": "\u00e9", "decomposed": "e\u0301"},  # they look the same but differ
        {"": "", "blank": "  two spaces around  "},
        {"quotes": 'say "hi"', "backslash": "C:\\", "lines": "one\r\ntwo\tthree", "bell": "\x07"},
        {"number": "1000", "null": "null", "__proto__": "x", "_schema": "y", "data": "z"},
    ]
    for number, metadata in enumerate(rows):
        with subtests.test(metadata=metadata):
            data = data_of(merchant.create(merchant_reference=f"m-{number}", metadata=metadata), 201)
            again = data_of(merchant.get(data["uuid"]), 200)
            assert list(data["metadata"].items()) == list(metadata.items())
            assert list(again["metadata"].items()) == list(metadata.items())


def test_text_fields_are_returned_as_sent(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§2.1: nothing is trimmed, normalised, escaped or cut."""
    rows = [
        "طلب رقم ٤٢",
        "☕️ for 👩🏽‍🚀",
        "  spaces around  ",
        "line one\r\nline two\ttab\x07\x7f",
        "<b>&amp;\"'</b> %20 \\u0041 {{x}} ' or 1=1 --",
        "\u202eright to left\u202c \ufeff\u200b",
        "e\u0301 and \u00e9",
        "\U0010ffff",  # the highest code point
        "long " * 1000,
        "",
    ]
    for number, text in enumerate(rows):
        with subtests.test(text=text[:40]):
            reference = f"{number}{text}"[:255]
            answer = merchant.create(
                merchant_reference=reference, description=text, customer={"external_id": text}
            )
            data = data_of(answer, 201)
            assert data["merchant_reference"] == reference
            assert data["description"] == text
            assert data["customer"] == {"external_id": text}


def test_timestamps_are_utc_with_z(merchant: Merchant) -> None:
    """DESIGN §3: also if the merchant sends another offset."""
    wanted = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=250_000)
    sent = wanted.replace(tzinfo=None) + timedelta(hours=5, minutes=30)
    data = data_of(merchant.create(expires_at=f"{sent.isoformat()}+05:30"), 201)
    assert _moment(data["expires_at"]) == wanted
    for name in ("expires_at", "created_at", "updated_at"):
        assert UTC_WITH_Z.fullmatch(data[name]), data[name]


def test_the_reference_is_short_and_unambiguous(merchant: Merchant) -> None:
    """DESIGN §3: unique, lower case, without letters and digits that are easily confused."""
    made = [data_of(merchant.create(merchant_reference=f"r-{n}"), 201)["reference"] for n in range(30)]
    assert len(set(made)) == len(made)
    for reference in made:
        assert re.fullmatch(r"[2-9a-z]{6,12}", reference)
        assert not set(reference) & set("ilo")


def test_checkout_url_comes_from_the_settings_and_not_from_headers(merchant: Merchant) -> None:
    """DESIGN §3: and it has no query, so that one can be appended."""
    lies = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example"}
    body = {"merchant_reference": "order-1", "amount": 1000, "currency": "LYD"}
    answer = merchant.client.post(
        PATH, base_url="http://evil.example", json=body, headers={**merchant.headers, **lies}
    )
    data = data_of(answer, 201)
    assert data["checkout_url"].startswith(f"{CHECKOUT_URL}/")
    assert data["uuid"] in data["checkout_url"]
    assert not set("?#") & set(data["checkout_url"])
    assert "evil" not in json.dumps(data)


def test_unknown_fields_are_ignored(merchant: Merchant) -> None:
    """DESIGN §3: also fields that only the service may set."""
    plain = data_of(merchant.create(), 201)
    uuid = "00000000-0000-7000-8000-000000000000"
    ours = {"uuid": uuid, "status": "succeeded", "reference": "mine", "created_at": "2020-01-01T00:00:00Z"}
    unknown = {**ours, "application_id": uuid, "Amount": 1, "": None, "nested": {"amount": [1, {"x": 2.5}]}}
    data = data_of(
        merchant.create(merchant_reference="order-2", customer={"external_id": None, "name": 1}, **unknown),
        201,
    )
    assert _from_merchant(data) == _from_merchant(plain)
    assert set(data) == set(plain)
    assert data["status"] == "requires_payment_method"
    assert data["uuid"] != uuid
    assert data["reference"] != "mine"
    assert _moment(data["created_at"]) >= _moment(plain["created_at"])


def test_create_writes_one_intent_one_event_and_one_outbox_row(
    merchant: Merchant, database: Database
) -> None:
    """DESIGN §2"""
    data = data_of(merchant.create(), 201)
    assert written(database) == (1, 1, 1)
    with database.transaction() as connection:
        event = connection.execute("select id, intent_uuid, seq, type, at from intent_events").fetchone()
        message = connection.execute("select topic, key, payload from outbox").fetchone()
    assert event is not None
    assert message is not None
    assert event[1:] == (UUID(data["uuid"]), 1, EventType.CREATED, _moment(data["created_at"]))
    assert message[:2] == (PAYMENT_INTENT_EVENTS.name, data["uuid"])
    assert decode(message[2].encode()) == IntentEvent(
        id=event[0],
        intent_uuid=event[1],
        application_id=merchant.application_id,
        seq=1,
        type=EventType.CREATED,
        at=event[4],
    )
