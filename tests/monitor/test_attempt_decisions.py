"""An operator decides the outcome of an undecided attempt, once and with a reason in the audit log."""

from uuid import UUID

import pytest

from shared.domain.attempts.states import AttemptState
from shared.domain.audit_log import list_entries
from tests.code_entries import enter_wrong_codes
from tests.constants import UNKNOWN_ID
from tests.monitor.concurrency import act_at_once
from tests.monitor.operator_payments import OperatorPayments
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient

REASON = "Seen in the provider's list of today"
DECISIONS = "select action, actor, address, details from audit_log where action = 'attempt_decided'"


@pytest.fixture
def payments(pages: MonitorWorld) -> OperatorPayments:
    return OperatorPayments(pages)


def decide(
    person: PageClient, attempt: UUID, outcome: str = "paid", reason: str = REASON, **more: str
) -> int:
    """Submit the form of the attempt's page, and return the status of the first response."""
    person.open(f"/attempts/{attempt}")
    return answer_to(person, attempt, **{"outcome": outcome, "reason": reason, "reference": "T-9", **more})


def answer_to(person: PageClient, attempt: UUID, **fields: str) -> int:
    answer = person.post(f"/attempts/{attempt}/decide", **fields)
    return answer.history[0].status_code if answer.history else answer.status_code


def test_undecided_attempts_and_duplicate_payments_are_listed(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    undecided, duplicate = payments.unknown(), payments.duplicate()
    settled = payments.unknown()
    payments.notify_paid(settled)
    page = operator.open("/attempts").text
    assert f"/attempts/{undecided}" in page
    assert f"/attempts/{duplicate}" in page
    assert f"/attempts/{settled}" not in page
    assert "LYD 25.500" in operator.text
    assert "T-second" in operator.text
    assert "Tripoli Coffee shop" in operator.text


def test_attempts_page_says_if_nothing_needs_a_decision(operator: PageClient) -> None:
    operator.open("/attempts")
    assert "The outcome of every attempt is known" in operator.text
    assert "There are no open duplicate payments" in operator.text


AFTER = {"paid": ("paid", "succeeded"), "not_paid": ("declined", "requires_payment_method")}


@pytest.mark.parametrize("outcome", AFTER)
def test_operator_decision_settles_the_attempt_and_is_audited(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments, outcome: str
) -> None:
    state, status = AFTER[outcome]
    attempt = payments.unknown()
    assert decide(operator, attempt, outcome) == 303
    assert "Decided" in operator.text
    assert (payments.state(attempt), payments.status(attempt)) == (state, status)
    ((_, actor, address, details),) = pages.rows(DECISIONS)
    assert (actor.startswith("operator operator-"), address) == (True, "127.0.0.1")
    assert (details["attempt"], details["outcome"], details["reason"]) == (str(attempt), state, REASON)
    assert details["reference"] == ("T-9" if outcome == "paid" else None)


def test_attempt_decided_as_paid_publishes_the_succeeded_event(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.unknown()
    decide(operator, attempt)
    payloads = [row[0] for row in pages.rows("select payload from outbox order by id")]
    assert "payment_intent.succeeded" in payloads[-1]


def test_submitting_the_decision_twice_decides_once(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.unknown()
    form = operator.open(f"/attempts/{attempt}")
    for _ in range(2):
        operator.response = form
        answer_to(operator, attempt, outcome="paid", reason=REASON, reference="T-9")
    assert "the outcome is already known. The state is: Paid" in operator.text
    assert len(pages.rows(DECISIONS)) == 1


def test_concurrent_operators_decide_an_attempt_once(pages: MonitorWorld, payments: OperatorPayments) -> None:
    """The others are shown the outcome that the first one decided."""
    attempt = payments.unknown()
    people = [pages.person() for _ in range(4)]
    outcomes = dict(zip(people, ("paid", "not_paid", "paid", "not_paid"), strict=True))
    for person in people:
        person.open(f"/attempts/{attempt}")
    act_at_once(
        pages,
        "select from payment_intents",
        people,
        lambda person: answer_to(person, attempt, outcome=outcomes[person], reason=REASON, reference="T-9"),
    )
    assert len(pages.rows(DECISIONS)) == 1
    told = [person.text for person in people]
    assert sum("Decided:" in text for text in told) == 1
    assert sum("Nothing was changed" in text for text in told) == 3


@pytest.mark.parametrize("outcome", ["paid", "not_paid"])
def test_attempt_settled_while_the_form_was_open_is_not_changed(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments, outcome: str
) -> None:
    attempt = payments.unknown()
    operator.open(f"/attempts/{attempt}")
    payments.notify_paid(attempt, "T-real")
    answer_to(operator, attempt, outcome=outcome, reason=REASON, reference="T-mine")
    assert "the outcome is already known. The state is: Paid" in operator.text
    assert payments.state(attempt) == "paid"
    assert pages.rows("select provider_reference from payment_attempts") == [("T-real",)]
    assert pages.rows(DECISIONS) == []


def test_decision_is_refused_if_the_attempt_was_sent_since_the_form_was_opened(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    """The attempt awaited a code. Meanwhile the customer has sent the code to the provider."""
    sending = payments.begin(payments.intent(), AttemptState.AWAITING_CODE)
    operator.open(f"/attempts/{sending.attempt}")
    pages.run(
        """update payment_attempts set state = 'sent', provider_requests = 1, sent_at = now(), next_verify_at = now()
           where id = %s""",
        sending.attempt,
    )
    answer_to(operator, sending.attempt, outcome="not_paid", reason=REASON)
    assert "the attempt has changed since you opened the page" in operator.text
    assert payments.state(sending.attempt) == "sent"


@pytest.mark.parametrize("state", ["sent", "unknown"])
def test_not_paid_is_refused_while_the_provider_request_may_be_in_flight(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments, state: str
) -> None:
    """The request could still charge, beside the customer's next attempt."""
    sending = payments.begin(payments.intent())
    pages.run("update payment_attempts set state = %s", state)
    decide(operator, sending.attempt, "not_paid")
    assert "the request was sent a moment ago" in operator.text
    assert payments.state(sending.attempt) == state
    pages.run("update payment_attempts set sent_at = now() - interval '1 minute'")
    decide(operator, sending.attempt, "not_paid")
    assert payments.state(sending.attempt) == "declined"


def test_deciding_not_paid_on_an_ended_attempt_changes_nothing(
    operator: PageClient, payments: OperatorPayments
) -> None:
    declined = payments.declined_then_paid()
    assert 'value="not_paid"' not in operator.open(f"/attempts/{declined}").text
    decide(operator, declined, "not_paid")
    assert "the outcome is already known. The state is: Declined" in operator.text


NONSENSE: tuple[tuple[dict[str, str], str], ...] = (
    ({"reason": REASON}, "Say whether it was paid"),
    ({"outcome": "perhaps", "reason": REASON}, "Say whether it was paid"),
    ({"outcome": "paid", "reason": ""}, "Write 5 to 500 characters"),
    ({"outcome": "paid", "reason": " a \n b "}, "Write 5 to 500 characters"),
    ({"outcome": "paid", "reason": "\u200b" * 9}, "Write 5 to 500 characters"),
    ({"outcome": "paid", "reason": "x" * 501}, "Write 5 to 500 characters"),
    ({"outcome": "paid", "reason": REASON}, "A payment needs one"),
    ({"outcome": "paid", "reason": REASON, "reference": " \t "}, "A payment needs one"),
    ({"outcome": "paid", "reason": REASON, "reference": "r" * 256}, "at most 255 characters"),
    ({"outcome": "paid", "reason": REASON, "reference": "0912345678"}, "no card or phone number"),
)


def test_invalid_decisions_are_422_with_a_message(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.unknown()
    for fields, complaint in NONSENSE:
        operator.open(f"/attempts/{attempt}")
        assert answer_to(operator, attempt, **fields) == 422, fields
        assert complaint in operator.text, fields
    assert payments.state(attempt) == "unknown"
    assert pages.rows(DECISIONS) == []


def test_tampered_hidden_fields_of_the_decision_are_422(
    operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.unknown()
    for fields in (
        {"state": "x"},
        {"provider_requests": "x"},
        {"provider_requests": "9" * 30},
        {"state": ""},
    ):
        assert decide(operator, attempt, **fields) == 422, fields
    assert payments.state(attempt) == "unknown"


def test_card_and_phone_numbers_are_removed_from_the_reason(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.unknown()
    decide(operator, attempt, reason="card 4242 4242 4242 4242 of 0912345678\0 was charged")
    ((_, _, _, details),) = pages.rows(DECISIONS)
    kept = details["reason"] + pages.rows("select reason from payment_attempts")[0][0]
    assert "4242" not in kept
    assert "0912345678" not in kept
    assert "was charged" in kept


def test_hostile_text_of_an_attempt_is_escaped(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    intent = payments.intent(reference="<script>alert(1)</script>")
    attempt = payments.unknown(intent)
    pages.run("update applications set name = '<img src=x onerror=alert(2)>'")
    pages.run("update payment_attempts set provider_reference = '\"><script>alert(3)</script>'")
    for path in (f"/attempts/{attempt}", "/attempts"):
        html = operator.open(path).text
        assert "<script>alert" not in html
        assert "<img src=x" not in html
    assert decide(operator, attempt, reason="<b>bold</b> words") == 303
    assert "<b>bold" not in operator.response.text


def test_deciding_needs_a_session_and_a_csrf_token(pages: MonitorWorld, payments: OperatorPayments) -> None:
    attempt = payments.unknown()
    guest, person = pages.person(is_operator=False), pages.person()
    assert answer_to(guest, attempt, outcome="paid", reason=REASON) in (400, 401)
    person.open(f"/attempts/{attempt}")
    assert answer_to(person, attempt, outcome="paid", reason=REASON, csrf_token="x") == 400
    assert payments.state(attempt) == "unknown"


def test_unknown_attempt_is_404(operator: PageClient) -> None:
    for path in ("/attempts/x", f"/attempts/{UNKNOWN_ID}"):
        assert operator.open(path).status_code == 404, path


def test_merchant_sees_who_decided_and_why_but_not_the_operators_address(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    decide(operator, payments.unknown())
    with pages.database.transaction() as connection:
        (entry,) = list_entries(connection, pages.merchant_id, before=None, limit=10)
    assert entry.action == "attempt_decided"
    assert entry.actor.startswith("operator operator-")
    assert entry.address is None
    assert entry.details["reason"] == REASON


def test_wrong_codes_are_not_shown_as_requests_to_charge(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = enter_wrong_codes(pages.database, payments.intent(), 2)
    operator.open(f"/attempts/{attempt}")
    events = operator.text.partition("Events, newest first")[2].partition("All attempts")[0]
    assert events.index("(2 of 5); nothing was taken") < events.index("Wrong code entered (1 of 5)")
    assert "asked to charge" not in events
