"""`mizan attempt`: operators list and settle undecided attempts and duplicate payments."""

import json
from typing import Any
from uuid import UUID

import pytest

from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest
from shared.domain.attempts.settlement import settle_notification, settle_response
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find, find_intent
from shared.platform.database.pool import Database
from tests.constants import UNKNOWN_ID
from tests.mizan.conftest import Mizan


@pytest.fixture
def sending(database: Database, application_id: UUID) -> ProviderRequest:
    """Return a request without an answer for a minute, to a provider without status inquiries."""
    with database.cursor() as cursor:
        intent, _ = create_or_find(cursor, NewIntent(application_id, "order-1", 25_000, "LYD"))
    with database.transaction() as connection:
        made = start_attempt(connection, intent.uuid, "adfali", "plutu", AttemptState.SENT)
        settle_response(connection, made, AttemptOutcome(ProviderAnswer.UNKNOWN, can_inquire=False))
        connection.execute("update payment_attempts set sent_at = sent_at - interval '1 minute'")
    return made


def _status(database: Database) -> str:
    with database.cursor() as cursor:
        row = cursor.execute("select uuid from payment_intents").fetchone()
        assert row is not None
        intent = find_intent(cursor, row[0])
    assert intent is not None
    return intent.status


def _logged(database: Database, action: str) -> list[Any]:
    with database.cursor() as cursor:
        return cursor.execute(
            "select actor, merchant_id, details from audit_log where action = %s", (action,)
        ).fetchall()


def test_undecided_attempts_are_listed(run: Mizan, sending: ProviderRequest) -> None:
    (row,) = json.loads(run("attempt", "undecided", "--json").stdout)["attempts"]
    assert row["attempt_id"] == str(sending.attempt)
    assert (row["amount"], row["provider"], row["asked_next_at"]) == (25_000, "plutu", None)


def test_list_says_so_if_no_attempt_is_undecided(run: Mizan) -> None:
    assert "every attempt is known" in run("attempt", "undecided").stdout


@pytest.mark.parametrize(
    ("outcome", "status"), [("paid", "succeeded"), ("declined", "requires_payment_method")]
)
def test_operator_decides_the_outcome_once(
    run: Mizan, database: Database, sending: ProviderRequest, outcome: str, status: str
) -> None:
    """A second decision is refused, be it the same or another."""
    words = ("attempt", "decide", str(sending.attempt))
    answer = run(*words, outcome, "--reason", "seen in their list", "--reference", "T-1")
    assert answer.stdout == f"the attempt is {outcome}, its intent {status}\n"
    assert _status(database) == status
    for again in {outcome, "declined"}:
        refused = run(*words, again, "--reason", "x")
        assert (refused.exit_code, refused.stderr) == (
            1,
            f"Error: the outcome is already known: {outcome}\n",
        )
    assert json.loads(run("attempt", "undecided", "--json").stdout)["attempts"] == []
    ((actor, merchant_id, details),) = _logged(database, "attempt_decided")
    assert (actor.startswith("cli operator "), merchant_id is not None) == (True, True)
    assert (details["attempt"], details["outcome"]) == (str(sending.attempt), outcome)
    assert details["reason"] == "seen in their list"


@pytest.mark.parametrize(
    ("attempt", "complaint"), [("x", "must be an attempt's id"), (UNKNOWN_ID, "there is no attempt")]
)
def test_invalid_or_unknown_attempt_is_refused(run: Mizan, attempt: str, complaint: str) -> None:
    answer = run("attempt", "decide", attempt, "paid", "--reason", "x")
    assert answer.exit_code == 1
    assert complaint in answer.stderr


def test_operator_can_decide_paid_for_an_attempt_on_a_providers_page(
    run: Mizan, database: Database, application_id: UUID
) -> None:
    """The customer left the page and paid there, as the operator has seen."""
    with database.cursor() as cursor:
        intent, _ = create_or_find(cursor, NewIntent(application_id, "order-2", 25_000, "LYD"))
    with database.transaction() as connection:
        sending = start_attempt(connection, intent.uuid, "card", "plutu", AttemptState.AWAITING_REDIRECT)
    answer = run("attempt", "decide", str(sending.attempt), "paid", "--reason", "seen in their list")
    assert answer.stdout == "the attempt is paid, its intent succeeded\n"


def test_decision_needs_a_reason(run: Mizan, sending: ProviderRequest) -> None:
    answer = run("attempt", "decide", str(sending.attempt), "paid", "--reason", "yes")
    assert (answer.exit_code, answer.stderr) == (1, "Error: the reason must have 5 to 500 characters\n")
    (row,) = json.loads(run("attempt", "undecided", "--json").stdout)["attempts"]
    assert row["state"] == "unknown"


def test_duplicate_payment_is_listed_until_it_is_handled(
    run: Mizan, database: Database, sending: ProviderRequest
) -> None:
    """Handling it again changes nothing."""
    assert "have been handled" in run("attempt", "duplicates").stdout
    with database.transaction() as connection:
        for reference in ("T-1", "T-2"):
            settle_notification(
                connection, sending.attempt, AttemptOutcome(ProviderAnswer.PAID, provider_reference=reference)
            )
    (row,) = json.loads(run("attempt", "duplicates", "--json").stdout)["duplicates"]
    assert (row["amount"], row["provider_reference"], row["first_reference"]) == (25_000, "T-2", "T-1")
    words = ("attempt", "handled", row["attempt_id"], "--note")
    assert run(*words, "x").exit_code == 1
    assert run(*words, "paid back as R-7").stdout == "handled\n"
    assert "handled before" in run(*words, "once more").stdout
    assert json.loads(run("attempt", "duplicates", "--json").stdout)["duplicates"] == []
    ((actor, _, details),) = _logged(database, "duplicate_handled")
    assert (actor.startswith("cli operator "), details["note"]) == (True, "paid back as R-7")


def test_attempt_that_is_not_a_duplicate_cannot_be_handled(run: Mizan, sending: ProviderRequest) -> None:
    answer = run("attempt", "handled", str(sending.attempt), "--note", "paid back")
    assert (answer.exit_code, answer.stderr) == (
        1,
        "Error: the attempt is not a duplicate payment: it is unknown\n",
    )
