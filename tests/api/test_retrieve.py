"""GET /payment-intents/{uuid} returns the current state of an intent, to its application only (§4.2)."""

from datetime import datetime, timedelta
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from shared.domain.intents.states import IntentTrigger
from shared.platform.database.pool import Database
from tests.api.conftest import PATH, Merchant, data_of, move_intent, written
from tests.clock import Clock


def test_an_intent_is_retrieved_as_it_was_created(merchant: Merchant) -> None:
    """§4.2: 200 with the same intent that the create returned."""
    made = data_of(
        merchant.create(
            customer={"external_id": "c-9"},
            description="Two coffees",
            return_url="https://shop.example/",
            metadata={"z": "1", "a": "٢"},
        ),
        201,
    )
    answer = merchant.get(made["uuid"])
    assert data_of(answer, 200) == made
    assert answer.content_type == "application/json"


@pytest.mark.parametrize(
    ("triggers", "statuses"),
    [
        (
            [
                IntentTrigger.ATTEMPT_SENT,
                IntentTrigger.ATTEMPT_FAILED,
                IntentTrigger.ATTEMPT_SENT,
                IntentTrigger.PAYMENT_CONFIRMED,
            ],
            ["processing", "requires_payment_method", "processing", "succeeded"],
        ),
        ([IntentTrigger.EXPIRE, IntentTrigger.PAYMENT_CONFIRMED], ["canceled", "succeeded"]),  # paid late
    ],
)
def test_retrieve_returns_the_current_status(
    merchant: Merchant, database: Database, clock: Clock, triggers: list[IntentTrigger], statuses: list[str]
) -> None:
    """§4.2: only status and updated_at change."""
    before = data_of(merchant.create(), 201)
    for trigger, status in zip(triggers, statuses, strict=True):
        clock.advance(timedelta(minutes=1))
        move_intent(database, before["uuid"], trigger)
        now = data_of(merchant.get(before["uuid"]), 200)
        assert now == {**before, "status": status, "updated_at": now["updated_at"]}
        ago = datetime.fromisoformat(now["updated_at"]) - datetime.fromisoformat(before["updated_at"])
        assert ago >= timedelta(minutes=1)
        before = now


def test_retrieving_changes_nothing(merchant: Merchant, database: Database, clock: Clock) -> None:
    """§4.2: also after the expiry: the scheduler cancels the intent, with its event."""
    made = data_of(merchant.create(), 201)
    clock.advance(timedelta(days=2))
    assert data_of(merchant.get(made["uuid"]), 200) == made
    assert data_of(merchant.get(made["uuid"]), 200) == made
    assert written(database) == (1, 1, 1)


def test_intent_of_another_application_is_403(merchant: Merchant, other_merchant: Merchant) -> None:
    """§4.2, §5, §7: with a message that reveals nothing about the intent."""
    theirs = data_of(other_merchant.create(merchant_reference="their-order"), 201)
    answer = merchant.get(theirs["uuid"])
    assert answer.status_code == 403
    assert list(answer.get_json()) == ["message"]
    assert isinstance(answer.get_json()["message"], str)
    assert "their-order" not in answer.text
    data_of(other_merchant.get(theirs["uuid"]), 200)


def test_an_unknown_intent_is_404(merchant: Merchant, other_merchant: Merchant) -> None:
    """§4.2: 404 with a message, for every application."""
    for caller in (merchant, other_merchant):
        for uuid in (uuid4(), UUID(int=0), UUID(int=2**128 - 1)):
            answer = caller.get(uuid)
            assert answer.status_code == 404
            assert list(answer.get_json()) == ["message"]


def test_a_path_that_is_not_a_uuid_is_404(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.2: only the canonical form of a uuid is accepted; DESIGN §3: the error is JSON, never 500."""
    uuid = data_of(merchant.create(), 201)["uuid"]
    data_of(merchant.get(uuid), 200)
    rows = [
        ("a word", "order-1"),
        ("a number", "1"),
        ("a URN", f"urn:uuid:{uuid}"),
        ("braces", quote(f"{{{uuid}}}")),
        ("no dashes", uuid.replace("-", "")),
        ("dashes elsewhere", f"{uuid[:4]}-{uuid[4:8]}{uuid[9:]}"),
        ("one digit less", uuid[:-1]),
        ("one digit more", f"{uuid}0"),
        ("a letter that is no digit", f"{uuid[:-1]}g"),
        ("a space behind", f"{uuid}%20"),
        ("a line's end behind", f"{uuid}%0a"),
        ("NUL behind", f"{uuid}%00"),
        ("a slash behind", f"{uuid}/"),
        ("a slash behind, escaped", f"{uuid}%2f"),
        ("Arabic digits", quote("٠" * 8 + uuid[8:])),
        ("wide digits", quote("０" * 8 + uuid[8:])),
        ("not UTF-8", "%ff%fe"),
        ("half an escape", f"{uuid}%"),
        ("a quote", quote(f"{uuid}' or '1'='1")),
        ("long", "a" * 20_000),
        ("a path to elsewhere", "..%2f..%2fetc%2fpasswd"),
        ("nothing", ""),
    ]
    for why, path in rows:
        with subtests.test(why):
            answer = merchant.get(path)
            assert answer.status_code == 404
            assert answer.content_type == "application/json"
            assert list(answer.get_json()) == ["message"]


def test_uuid_in_capitals_finds_the_intent(merchant: Merchant) -> None:
    """RFC 9562: a uuid is case-insensitive on input, and written in lower case."""
    made = data_of(merchant.create(), 201)
    assert made["uuid"] != made["uuid"].upper()
    assert data_of(merchant.get(made["uuid"].upper()), 200) == made


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"not JSON \xff",
        b"x" * 100_000,  # larger than the limit of a create
    ],
    ids=["object", "rubbish", "large"],
)
def test_body_of_a_retrieve_is_ignored(merchant: Merchant, body: bytes) -> None:
    """§4.2: a retrieve has no body."""
    made = data_of(merchant.create(), 201)
    answer = merchant.client.get(f"{PATH}/{made['uuid']}", data=body, headers=dict(merchant.headers))
    assert data_of(answer, 200) == made


def test_query_of_a_retrieve_is_ignored(merchant: Merchant, other_merchant: Merchant) -> None:
    """§5: only the credentials identify the caller."""
    made = data_of(merchant.create(), 201)
    assert data_of(merchant.get(f"{made['uuid']}?lang=en&status=succeeded"), 200) == made
    lie = f"{made['uuid']}?application_id={merchant.application_id}"
    assert other_merchant.get(lie).status_code == 403
