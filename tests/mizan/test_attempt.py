"""`mizan attempt`: what nobody can be asked about is seen and decided by an operator."""

import json
from uuid import UUID, uuid4

import pytest

from shared.attempts.beginning import begin
from shared.attempts.outcome import Outcome, Sending
from shared.attempts.settling import settle_answered
from shared.attempts.states import Answer, AttemptState
from shared.db.pool import Database
from shared.intents.intent import NewIntent
from shared.intents.store import create_or_find, find
from tests.mizan.conftest import Mizan


@pytest.fixture
def sending(database: Database, application_id: UUID) -> Sending:
    """A request to a provider that cannot be asked, and that has not answered."""
    with database.cursor() as cursor:
        intent, _ = create_or_find(cursor, NewIntent(application_id, "order-1", 25_000, "LYD"))
    with database.transaction() as connection:
        made = begin(connection, intent.uuid, "adfali", "plutu", AttemptState.SENT)
        settle_answered(connection, made, Outcome(Answer.UNKNOWN, can_be_asked=False))
    return made


def _status(database: Database) -> str:
    with database.cursor() as cursor:
        row = cursor.execute("select uuid from payment_intents").fetchone()
        assert row is not None
        intent = find(cursor, row[0])
    assert intent is not None
    return intent.status


def test_undecided_attempts_are_listed(run: Mizan, sending: Sending) -> None:
    (row,) = json.loads(run("attempt", "undecided", "--json").stdout)
    assert row["attempt_id"] == str(sending.attempt)
    assert (row["amount"], row["provider"], row["asked_next_at"]) == (25_000, "plutu", None)


def test_when_all_is_known(run: Mizan) -> None:
    assert "every attempt is known" in run("attempt", "undecided").stdout


@pytest.mark.parametrize(
    ("outcome", "status"), [("paid", "succeeded"), ("declined", "requires_payment_method")]
)
def test_an_operator_decides(
    run: Mizan, database: Database, sending: Sending, outcome: str, status: str
) -> None:
    """Once: the same again is refused, and that what was paid was not."""
    words = ("attempt", "decide", str(sending.attempt))
    answer = run(*words, outcome, "--reason", "seen in their list", "--reference", "T-1")
    assert answer.stdout == f"the attempt is {outcome}, its intent {status}\n"
    assert _status(database) == status
    for again in {outcome, "declined"}:
        refused = run(*words, again, "--reason", "x")
        assert (refused.exit_code, refused.stderr) == (
            1,
            f"Error: its outcome is known already: it is {outcome}\n",
        )
    assert json.loads(run("attempt", "undecided", "--json").stdout) == []


@pytest.mark.parametrize(
    ("attempt", "complaint"), [("x", "must be an attempt's id"), (str(uuid4()), "there is no attempt")]
)
def test_what_is_no_attempt(run: Mizan, attempt: str, complaint: str) -> None:
    answer = run("attempt", "decide", attempt, "paid", "--reason", "x")
    assert answer.exit_code == 1
    assert complaint in answer.stderr


def test_money_that_arrived_counts_from_any_state(
    run: Mizan, database: Database, application_id: UUID
) -> None:
    """Left on a provider's page, and paid there, as the operator has seen."""
    with database.cursor() as cursor:
        intent, _ = create_or_find(cursor, NewIntent(application_id, "order-2", 25_000, "LYD"))
    with database.transaction() as connection:
        sending = begin(connection, intent.uuid, "card", "plutu", AttemptState.AWAITING_REDIRECT)
    answer = run("attempt", "decide", str(sending.attempt), "paid", "--reason", "seen in their list")
    assert answer.stdout == "the attempt is paid, its intent succeeded\n"
