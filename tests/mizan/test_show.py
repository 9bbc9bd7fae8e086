"""`mizan intent show` and `mizan delivery show`: everything that happened to one intent or delivery."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.domain.attempts.states import ProviderAnswer
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find
from shared.platform.database.pool import Database
from tests.code_entries import enter_wrong_codes
from tests.mizan.conftest import Mizan
from tests.mizan.sample_history import SampleApplication, SampleHistory


def _show(run: Mizan, what: str, name: str) -> dict[str, Any]:
    answer = run(what, "show", name, "--json")
    assert answer.exit_code == 0, answer.stderr
    shown: dict[str, Any] = json.loads(answer.stdout)
    return shown


def _create(database: Database, application: UUID, merchant_reference: str) -> tuple[UUID, str]:
    """Create an intent. Return its uuid and its reference."""
    with database.cursor() as cursor:
        intent, _ = create_or_find(cursor, NewIntent(application, merchant_reference, 25_000, "LYD"))
    return intent.uuid, intent.reference


def test_intent_is_found_by_its_uuid_and_by_both_references(run: Mizan, database: Database) -> None:
    """The reference of the receipt is in capitals."""
    shop = SampleApplication(database)
    uuid, reference = _create(database, shop.application, "order 1042")
    for name in (str(uuid), reference, reference.upper(), "order 1042"):
        shown = _show(run, "intent", name)
        assert (shown["uuid"], shown["reference"]) == (str(uuid), reference.upper())
        assert (shown["application"], shown["amount"], shown["status"]) == (
            "shop",
            25_000,
            "requires_payment_method",
        )


def test_timeline_of_an_intent_has_attempts_events_and_deliveries(run: Mizan, database: Database) -> None:
    shop = SampleApplication(database)
    intent = shop.create()
    declined = shop.attempt(intent, ProviderAnswer.DECLINED)
    paid = shop.attempt(intent, ProviderAnswer.PAID)
    timeline = _show(run, "intent", str(intent))["timeline"]
    assert [(row["what"], row["attempt_id"]) for row in timeline if row["attempt_id"]] == [
        ("attempt_started", str(declined)),
        ("attempt_declined", str(declined)),
        ("attempt_started", str(paid)),
        ("attempt_paid", str(paid)),
    ]
    assert timeline[0]["what"] == "created"
    assert timeline[-1]["what"] == "paid"
    text = run("intent", "show", str(intent)).stdout
    assert "timeline:\n" in text
    assert "delivery_id" not in text  # a column without values


def test_wrong_codes_of_an_intent_are_counted(run: Mizan, database: Database) -> None:
    """They are not shown as requests to take the money."""
    intent = SampleApplication(database).create()
    enter_wrong_codes(database, intent, 5)
    timeline = _show(run, "intent", str(intent))["timeline"]
    assert [row["what"] for row in timeline] == [
        "created",
        "attempt_started",
        *["wrong_code"] * 5,
        "attempt_declined",
        "open_again",
    ]
    text = run("intent", "show", str(intent)).stdout
    assert all(f"Wrong code entered ({number} of 5); nothing was taken" in text for number in range(1, 6))
    assert "processing" not in text


def test_reference_of_several_merchants_needs_the_uuid(run: Mizan, database: Database) -> None:
    """A merchant_reference is unique within one application only."""
    made = [_create(database, SampleApplication(database).application, "order-1")[0] for _ in range(2)]
    answer = run("intent", "show", "order-1")
    assert answer.exit_code == 1
    assert all(str(uuid) in answer.stderr for uuid in made)


@pytest.mark.parametrize(
    "name", ["nothing", "00000000-0000-7000-8000-000000000001", "'; drop table payment_intents; --", ""]
)
def test_unknown_intent_is_one_clear_line(run: Mizan, name: str) -> None:
    answer = run("intent", "show", name)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "Error: no intent has this uuid, reference or merchant_reference\n"


def test_text_of_merchants_cannot_control_the_terminal(run: Mizan, database: Database) -> None:
    uuid, _ = _create(database, SampleApplication(database).application, "\x1b[31mred\x1b[0m\nuuid  1")
    shown = run("intent", "show", str(uuid)).stdout
    assert "\x1b" not in shown
    assert "red" in shown
    assert sum(line.startswith("uuid ") for line in shown.splitlines()) == 1


def test_delivery_is_shown_with_its_tries(run: Mizan, database: Database) -> None:
    life = SampleHistory(database)
    ((delivery_id, tries),) = life.run(
        "select id, tries from webhook_deliveries where status = 'failed' order by id limit 1"
    )
    shown = _show(run, "delivery", str(delivery_id))
    assert (shown["delivery_id"], shown["status"]) == (str(delivery_id), "failed")
    assert [row["number"] for row in shown["tries"]] == list(range(tries, 0, -1))
    text = run("delivery", "show", str(delivery_id)).stdout
    assert "tries:\n" in text
    assert run("delivery", "show", "x").stderr == "Error: DELIVERY must be a delivery's id, a uuid\n"
    assert "there is no delivery" in run("delivery", "show", str(uuid4())).stderr
