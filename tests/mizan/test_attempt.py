"""`mizan attempt`: operators list and settle undecided attempts and duplicate payments."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from mizan.attempt import attempt_group
from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest
from shared.domain.attempts.settlement import settle_notification, settle_response
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find, find_intent
from shared.platform.database.pool import Database
from tests.constants import UNKNOWN_ID
from tests.mizan.conftest import Mizan
from tests.shared.domain.attempts.deciding import Deciding
from tests.waiting import eventually


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
    words = ("attempt", "decide", str(sending.attempt), "paid", "--reason", "seen in their list")
    answer = run(*words, "--reference", "T-1")
    assert answer.stdout == "the attempt is paid, its intent succeeded\n"


def test_decision_needs_a_reason(run: Mizan, sending: ProviderRequest) -> None:
    words = ("attempt", "decide", str(sending.attempt), "paid", "--reference", "T-1", "--reason")
    answer = run(*words, "yes")
    assert (answer.exit_code, answer.stderr) == (1, "Error: the reason must have 5 to 500 characters\n")
    (row,) = json.loads(run("attempt", "undecided", "--json").stdout)["attempts"]
    assert row["state"] == "unknown"


def test_paid_needs_a_reference(run: Mizan, database: Database, sending: ProviderRequest) -> None:
    answer = run("attempt", "decide", str(sending.attempt), "paid", "--reason", "seen in their list")
    assert (answer.exit_code, answer.stderr) == (
        1,
        "Error: an attempt that was paid needs the provider's reference of the payment\n",
    )
    assert _status(database) == "processing"


@pytest.mark.parametrize("outcome", ["paid", "declined"])
def test_large_amount_is_proposed_and_not_decided(
    run: Mizan, database: Database, sending: ProviderRequest, outcome: str
) -> None:
    """There is no command that approves it."""
    words = (
        "attempt",
        "decide",
        str(sending.attempt),
        outcome,
        "--reason",
        "seen there",
        "--reference",
        "T-1",
    )
    answer = run(*words, DECISION_APPROVAL_ABOVE="24999")
    assert (answer.exit_code, answer.stdout) == (
        0,
        "proposed; nothing is changed until an operator approves it in the monitor\n",
    )
    assert _status(database) == "processing"
    again = run(*words, DECISION_APPROVAL_ABOVE="24999")
    assert (again.exit_code, "waits for approval" in again.stderr) == (1, True)
    ((actor, merchant_id, details),) = _logged(database, "decision_proposed")
    assert (actor.startswith("cli operator "), merchant_id is not None) == (True, True)
    assert (details["outcome"], details["reference"]) == (outcome, "T-1")
    assert _logged(database, "attempt_decided") == []
    assert "approve" not in attempt_group.commands


def test_paid_on_a_declined_attempt_is_proposed(
    run: Mizan, database: Database, sending: ProviderRequest
) -> None:
    words = ("attempt", "decide", str(sending.attempt))
    run(*words, "declined", "--reason", "not in their list")
    answer = run(*words, "paid", "--reason", "seen in their list", "--reference", "T-1")
    assert answer.stdout.startswith("proposed;")
    assert _status(database) == "requires_payment_method"


class TestProviderThatCanBeAsked:
    @pytest.fixture
    def asked(self, database: Database, application_id: UUID) -> Deciding:
        return Deciding(database, application_id)

    def test_nothing_is_decided_if_the_verifier_records_no_answer(self, run: Mizan, asked: Deciding) -> None:
        """The provider is asked nevertheless, and the answer counts for the next try."""
        attempt = asked.attempt()
        answer = run(*_paid(attempt), "--wait", "0")
        assert answer.exit_code == 1
        assert "no answer of the provider was recorded within 0 seconds" in answer.stderr
        assert asked.state(attempt) == "unknown"
        assert asked.rows("select answer from operator_inquiries") == [(None,)]

    @pytest.mark.parametrize(
        ("provider_says", "text", "state"),
        [
            (ProviderAnswer.UNKNOWN, "the attempt is paid, its intent succeeded", "paid"),
            (ProviderAnswer.DECLINED, "contradicts this decision: it says declined", "unknown"),
            (ProviderAnswer.NOT_FOUND, "contradicts this decision: it says not_paid", "unknown"),
        ],
    )
    def test_command_waits_for_the_recorded_answer(
        self, run: Mizan, asked: Deciding, provider_says: ProviderAnswer, text: str, state: str
    ) -> None:
        attempt = asked.attempt()
        with ThreadPoolExecutor() as pool:
            deciding = pool.submit(run, *_paid(attempt))
            eventually(lambda: asked.rows("select from operator_inquiries"))
            asked.answer(attempt, provider_says)
            answer = deciding.result()
        assert text in answer.output
        assert (asked.state(attempt), answer.exit_code) == (state, 0 if state == "paid" else 1)

    def test_payment_that_the_provider_reports_meanwhile_is_not_decided_again(
        self, run: Mizan, asked: Deciding
    ) -> None:
        attempt = asked.attempt()
        with ThreadPoolExecutor() as pool:
            deciding = pool.submit(run, *_paid(attempt))
            eventually(lambda: asked.rows("select from operator_inquiries"))
            asked.notify_paid(attempt)
            asked.answer(attempt, ProviderAnswer.PAID)
            answer = deciding.result()
        assert (answer.exit_code, "the outcome is already known: paid" in answer.stderr) == (1, True)
        assert asked.rows("select provider_reference from payment_attempts") == [("T-real",)]


def _paid(attempt: UUID) -> tuple[str, ...]:
    return (
        "attempt",
        "decide",
        str(attempt),
        "paid",
        "--reason",
        "seen in their list",
        "--reference",
        "T-1",
    )


def test_duplicate_payment_is_listed_until_it_is_handled(
    run: Mizan, database: Database, sending: ProviderRequest
) -> None:
    """Handling it again changes nothing."""
    assert "There are no unhandled duplicate payments" in run("attempt", "duplicates").stdout
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
    assert "already handled" in run(*words, "once more").stdout
    assert json.loads(run("attempt", "duplicates", "--json").stdout)["duplicates"] == []
    ((actor, _, details),) = _logged(database, "duplicate_handled")
    assert (actor.startswith("cli operator "), details["note"]) == (True, "paid back as R-7")


def test_attempt_that_is_not_a_duplicate_cannot_be_handled(run: Mizan, sending: ProviderRequest) -> None:
    answer = run("attempt", "handled", str(sending.attempt), "--note", "paid back")
    assert (answer.exit_code, answer.stderr) == (
        1,
        "Error: the attempt is not a duplicate payment: it is unknown\n",
    )
