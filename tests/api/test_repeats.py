"""The merchant_reference is the idempotency key: the six rules of §4.1."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from werkzeug.test import TestResponse

from shared.domain.applications.credentials import CredentialKind, issue_credential
from shared.domain.intents.states import IntentTrigger
from shared.platform.database.pool import Database
from tests.api.conftest import Merchant, data_of, errors_of, merchant_of, move_intent, written

AT_ONCE = 50


def test_first_create_of_a_reference_returns_201_with_a_new_intent(
    merchant: Merchant, database: Database
) -> None:
    """§4.1 rule 1"""
    first = data_of(merchant.create(merchant_reference="order-1"), 201)
    second = data_of(merchant.create(merchant_reference="order-2"), 201)
    assert first["uuid"] != second["uuid"]
    assert first["reference"] != second["reference"]
    assert written(database) == (2, 2, 2)


@pytest.mark.parametrize(
    ("triggers", "status"),
    [
        ((), "requires_payment_method"),
        ((IntentTrigger.ATTEMPT_SENT,), "processing"),
        (
            (IntentTrigger.ATTEMPT_SENT, IntentTrigger.ATTEMPT_FAILED),
            "requires_payment_method",
        ),  # a failed attempt
        ((IntentTrigger.ATTEMPT_SENT, IntentTrigger.PAYMENT_CONFIRMED), "succeeded"),
        ((IntentTrigger.EXPIRE,), "canceled"),
        ((IntentTrigger.EXPIRE, IntentTrigger.PAYMENT_CONFIRMED), "succeeded"),  # paid late
    ],
)
def test_repeat_returns_200_with_the_current_intent(
    merchant: Merchant, database: Database, triggers: tuple[IntentTrigger, ...], status: str
) -> None:
    """§4.1 rule 2: whatever its status; §3: and changes nothing."""
    made = data_of(merchant.create(), 201)
    move_intent(database, made["uuid"], *triggers)
    before, rows = data_of(merchant.get(made["uuid"]), 200), written(database)
    repeated = data_of(merchant.create(), 200)
    assert repeated == before
    assert repeated["uuid"] == made["uuid"]
    assert repeated["status"] == status
    assert data_of(merchant.get(made["uuid"]), 200) == before
    assert written(database) == rows


def test_create_with_other_credentials_of_the_application_is_a_repeat(
    merchant: Merchant, database: Database
) -> None:
    """§4.1 rule 2: the application counts, not the key. Credentials are rotated."""
    made = data_of(merchant.create(), 201)
    with database.transaction() as connection:
        key = issue_credential(connection, merchant.application_id, CredentialKind.API_KEY).text
        token = issue_credential(connection, merchant.application_id, CredentialKind.ACCESS_TOKEN).text
    rotated = merchant.with_headers(X_API_Key=key, Authorization=f"Bearer {token}")
    assert data_of(rotated.create(), 200) == made


def test_fifty_concurrent_identical_creates_make_one_intent(merchant: Merchant, database: Database) -> None:
    """§4.1 rule 3: one 201, forty-nine 200 with the same intent; one row, one event, one outbox row."""
    start = Barrier(AT_ONCE)

    def create(_: int) -> TestResponse:
        own = merchant_of(merchant.client.application.test_client(), merchant.application)
        start.wait(timeout=30)
        return own.create(metadata={"a": "1"})

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(create, range(AT_ONCE)))
    assert sorted(answer.status_code for answer in answers) == [200] * (AT_ONCE - 1) + [201]
    first = answers[0].get_json()
    assert all(answer.get_json() == first for answer in answers)
    assert written(database) == (1, 1, 1)


def test_concurrent_creates_with_different_fields_all_return_the_first(
    merchant: Merchant, database: Database
) -> None:
    """§4.1 rules 3 and 4."""
    start = Barrier(8)

    def create(number: int) -> TestResponse:
        own = merchant_of(merchant.client.application.test_client(), merchant.application)
        start.wait(timeout=30)
        return own.create(amount=1000 + number, description=f"by {number}")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(create, range(8)))
    (made,) = [answer.get_json()["data"] for answer in answers if answer.status_code == 201]
    assert all(answer.get_json()["data"] == made for answer in answers)
    assert made["description"] == f"by {made['amount'] - 1000}"
    assert written(database) == (1, 1, 1)


def test_a_repeat_ignores_its_other_fields(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.1 rule 4: amount, description, expiry and the rest stay as created."""
    made = data_of(merchant.create(description="as created", metadata={"a": "1"}), 201)
    rows: list[dict[str, Any]] = [
        {"amount": 99_000},
        {"description": "changed"},
        {"description": None},
        {"metadata": {"b": "2"}},
        {"metadata": None},
        {"customer": {"external_id": "somebody"}},
        {"return_url": "https://other.example/"},
        {"expires_at": "2026-01-01T00:00:00Z"},
        {"amount": 1_000_000_000, "description": "", "metadata": {}, "customer": {"external_id": ""}},
    ]
    for fields in rows:
        with subtests.test(fields=fields):
            assert data_of(merchant.create(**fields), 200) == made
    assert data_of(merchant.get(made["uuid"]), 200) == made


def test_a_repeat_must_still_pass_validation(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.1 rule 5: otherwise it is 422, and the intent is unchanged."""
    made = data_of(merchant.create(), 201)
    rows: list[tuple[dict[str, Any], set[str]]] = [
        ({"amount": 999}, {"amount"}),
        ({"currency": "USD"}, {"currency"}),
        ({"description": 5}, {"description"}),
        ({"return_url": "/orders/1"}, {"return_url"}),
        ({"metadata": {"size": 4}}, {"metadata.size"}),
        ({"customer": {"external_id": 7}}, {"customer.external_id"}),
        ({"expires_at": "tomorrow"}, {"expires_at"}),  # not a time
        ({"expires_at": "2030-01-01T00:00:00"}, {"expires_at"}),  # without an offset
        ({"amount": "25000", "currency": None}, {"amount", "currency"}),
    ]
    for fields, failing in rows:
        with subtests.test(fields=fields):
            assert set(errors_of(merchant.create(**fields))) == failing
    assert data_of(merchant.get(made["uuid"]), 200) == made


def test_expiry_window_is_not_checked_for_a_repeat(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.1 rule 5: a repeat is 200 with any valid expires_at."""
    made = data_of(merchant.create(), 201)
    rows = [
        "1999-12-31T23:59:59Z",  # long past
        "0001-01-01T00:00:00Z",  # the earliest possible
        "9999-12-31T23:59:59.999999Z",  # the latest possible
        made["created_at"],  # less than 5 minutes ahead
    ]
    for expires_at in rows:
        with subtests.test(expires_at=expires_at):
            assert data_of(merchant.create(expires_at=expires_at), 200) == made
            refused = merchant.create(merchant_reference="order-2", expires_at=expires_at)
            assert set(errors_of(refused)) == {"expires_at"}


def test_a_second_payment_needs_a_new_reference(merchant: Merchant, database: Database) -> None:
    """§4.1 rule 6: a repeat never makes a paid intent payable again."""
    paid = data_of(merchant.create(merchant_reference="order-1"), 201)
    move_intent(database, paid["uuid"], IntentTrigger.PAYMENT_CONFIRMED)
    assert data_of(merchant.create(merchant_reference="order-1"), 200)["status"] == "succeeded"
    second = data_of(merchant.create(merchant_reference="order-1-again"), 201)
    assert second["uuid"] != paid["uuid"]
    assert second["status"] == "requires_payment_method"


def test_the_same_reference_of_another_application_is_a_new_intent(
    merchant: Merchant, other_merchant: Merchant, database: Database
) -> None:
    """§4.1: references are unique per application, and no application sees the intents of another."""
    mine = data_of(merchant.create(amount=1000), 201)
    theirs = data_of(other_merchant.create(amount=2000), 201)
    assert theirs["uuid"] != mine["uuid"]
    assert (mine["amount"], theirs["amount"]) == (1000, 2000)
    assert data_of(merchant.create(), 200) == mine
    assert data_of(other_merchant.create(), 200) == theirs
    assert written(database) == (2, 2, 2)


def test_references_that_only_look_alike_are_different(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.1: the reference is compared as sent, without case folding, trimming or normalization."""
    data_of(merchant.create(merchant_reference="caf\u00e9-1"), 201)
    rows = [
        "cafe\u0301-1",  # decomposed
        "CAF\u00c9-1",  # capitals
        "cafe-1",  # no accent
        "caf\u00e9-1 ",  # trailing space
        " caf\u00e9-1",  # leading space
        "caf\u00e9-\u0661",  # an Arabic digit
        "caf\u00e9-1\u200f",  # an invisible mark
    ]
    for reference in rows:
        with subtests.test(reference=reference):
            assert (
                data_of(merchant.create(merchant_reference=reference), 201)["merchant_reference"] == reference
            )
            data_of(merchant.create(merchant_reference=reference), 200)
