"""An operator marks a duplicate payment as handled, once and with a note in the audit log."""

from uuid import UUID

import pytest

from services.dashboard.payments.queries import find_payment
from shared.domain.audit_log import list_entries
from tests.monitor.concurrency import act_at_once
from tests.monitor.operator_payments import OperatorPayments
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient

NOTE = "Paid back under R-77"
HANDLED = "select handled_note from payment_attempts where handled_at is not null"


@pytest.fixture
def payments(pages: MonitorWorld) -> OperatorPayments:
    return OperatorPayments(pages)


def handle(person: PageClient, attempt: UUID, note: str = NOTE, **more: str) -> int:
    answer = person.post(f"/attempts/{attempt}/handled", note=note, **more)
    return answer.history[0].status_code if answer.history else answer.status_code


def test_duplicate_is_marked_as_handled_once_and_leaves_the_list(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.duplicate()
    form = operator.open(f"/attempts/{attempt}")
    assert handle(operator, attempt) == 303
    assert "Marked as handled" in operator.text
    operator.response = form
    handle(operator, attempt, "Somebody else's words")
    assert "was already marked as handled" in operator.text
    assert pages.rows(HANDLED) == [(NOTE,)]
    assert pages.audit().count("duplicate_handled") == 1
    assert f"/attempts/{attempt}" not in operator.open("/attempts").text


def test_concurrent_operators_mark_a_duplicate_once(pages: MonitorWorld, payments: OperatorPayments) -> None:
    attempt = payments.duplicate()
    people = [pages.person() for _ in range(4)]
    for person in people:
        person.open(f"/attempts/{attempt}")
    rows = "select from payment_attempts where state = 'duplicate'"
    act_at_once(pages, rows, people, lambda person: handle(person, attempt))
    assert pages.audit().count("duplicate_handled") == 1
    assert sum("Marked as handled" in person.text for person in people) == 1


def test_marking_a_duplicate_as_handled_needs_a_note(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.duplicate()
    for note in ("", "four", " \n \t ", "x" * 501):
        operator.open(f"/attempts/{attempt}")
        assert handle(operator, attempt, note) == 422, note
        assert "Write 5 to 500 characters" in operator.text, note
    assert pages.rows(HANDLED) == []


def test_attempt_that_is_not_a_duplicate_cannot_be_marked_as_handled(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.unknown()
    operator.open(f"/attempts/{attempt}")
    handle(operator, attempt)
    assert "this is not a duplicate payment" in operator.text
    assert pages.rows(HANDLED) == []


def test_marking_a_duplicate_as_handled_needs_a_session_and_a_csrf_token(
    pages: MonitorWorld, payments: OperatorPayments
) -> None:
    attempt = payments.duplicate()
    guest, person = pages.person(is_operator=False), pages.person()
    assert handle(guest, attempt) in (400, 401)
    person.open(f"/attempts/{attempt}")
    assert handle(person, attempt, csrf_token="x") == 400
    assert pages.rows(HANDLED) == []


def test_merchant_sees_that_a_duplicate_was_handled(
    pages: MonitorWorld, operator: PageClient, payments: OperatorPayments
) -> None:
    attempt = payments.duplicate()
    intent = pages.rows("select intent_uuid from payment_attempts where id = %s", attempt)[0][0]
    with pages.database.transaction() as connection:
        before = find_payment(connection, pages.application.id, intent)
    operator.open(f"/attempts/{attempt}")
    handle(operator, attempt)
    with pages.database.transaction() as connection:
        after = find_payment(connection, pages.application.id, intent)
        (entry,) = list_entries(connection, pages.merchant_id, before=None, limit=10)
    assert before is not None
    assert after is not None
    assert (before.duplicates, after.duplicates) == (1, 0)
    assert (entry.action, entry.address) == ("duplicate_handled", None)
    assert (entry.details["note"], entry.details["payment"]) == (NOTE, str(intent))
