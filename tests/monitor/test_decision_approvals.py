"""The monitor asks the provider before a decision, and a second operator approves large or unusual ones."""

from uuid import UUID

import pytest

from shared.domain.accounts.operators import get_operator, remove_operator
from shared.domain.attempts.states import ProviderAnswer
from shared.domain.audit_log import list_entries
from tests.constants import UNKNOWN_ID
from tests.monitor.operator_payments import OperatorPayments
from tests.monitor.world import PASSWORD, MonitorWorld
from tests.page_client import PageClient
from tests.shared.domain.attempts.deciding import LIMIT, Deciding

FIELDS = {"outcome": "paid", "reason": "Seen in the provider's list", "reference": "T-9"}
LARGE = LIMIT + 1


@pytest.fixture
def deciding(pages: MonitorWorld) -> Deciding:
    return Deciding(pages.database, pages.application.id)


@pytest.fixture
def other(pages: MonitorWorld) -> PageClient:
    """A second operator."""
    return pages.person()


def show(person: PageClient, attempt: UUID) -> str:
    """Open the attempt's page, and return its HTML."""
    return person.open(f"/attempts/{attempt}").text


def propose(person: PageClient, attempt: UUID, **fields: str) -> None:
    show(person, attempt)
    person.post(f"/attempts/{attempt}/decide", **{**FIELDS, **fields})
    assert "Proposed. Another operator has to approve it" in person.text


def proposal_path(deciding: Deciding, attempt: UUID, verb: str) -> str:
    """Return the address of an action on the last proposal about the attempt."""
    statement = "select id from decision_proposals where attempt_id = %s order by id desc limit 1"
    ((proposal,),) = deciding.rows(statement, attempt)
    return f"/attempts/{attempt}/proposals/{proposal}/{verb}"


class TestAsking:
    def test_form_is_shown_once_the_provider_has_answered(
        self, operator: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt()
        assert f"/attempts/{attempt}/decide" not in show(operator, attempt)
        assert "Nobody has asked yet" in operator.text
        operator.post(f"/attempts/{attempt}/ask")
        assert "No answer is recorded yet" in operator.text
        assert 'data-live="inquiry"' in operator.response.text
        assert f"/attempts/{attempt}/decide" not in operator.response.text
        deciding.answer(attempt, ProviderAnswer.UNKNOWN)
        assert f"/attempts/{attempt}/decide" in show(operator, attempt)
        assert "The provider did not say" in operator.text
        operator.post(f"/attempts/{attempt}/decide", **FIELDS)
        assert "Decided: it was paid" in operator.text
        assert deciding.state(attempt) == "paid"

    def test_open_page_learns_the_answer_and_reloads(self, operator: PageClient, deciding: Deciding) -> None:
        attempt = deciding.attempt()
        deciding.ask(attempt)
        part = operator.open(f"/attempts/{attempt}", **{"X-Part": "inquiry"}).text
        assert "No answer is recorded yet" in part
        assert "data-final" not in part
        deciding.answer(attempt, ProviderAnswer.DECLINED)
        part = operator.open(f"/attempts/{attempt}", **{"X-Part": "inquiry"}).text
        assert "data-final" in part
        assert "<html" not in part

    def test_decision_without_an_answer_is_refused(self, operator: PageClient, deciding: Deciding) -> None:
        attempt = deciding.attempt()
        show(operator, attempt)
        operator.post(f"/attempts/{attempt}/decide", **FIELDS, state="unknown", provider_requests="1")
        assert "ask the provider first" in operator.text
        assert deciding.state(attempt) == "unknown"

    def test_decision_that_contradicts_the_provider_is_refused(
        self, operator: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt()
        deciding.ask_and_answer(attempt, ProviderAnswer.NOT_FOUND)
        show(operator, attempt)
        operator.post(f"/attempts/{attempt}/decide", **FIELDS)
        assert "the provider contradicts this. Its answer was: Not paid so far" in operator.text
        assert deciding.state(attempt) == "unknown"

    def test_old_answer_is_shown_but_does_not_count(self, operator: PageClient, deciding: Deciding) -> None:
        attempt = deciding.attempt()
        deciding.ask_and_answer(attempt)
        deciding.run("update operator_inquiries set answered_at = answered_at - interval '11 minutes'")
        assert f"/attempts/{attempt}/decide" not in show(operator, attempt)
        assert "older than ten minutes" in operator.text

    def test_provider_without_a_status_call_is_not_asked(
        self, operator: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt(provider="plutu")
        assert f"/attempts/{attempt}/ask" not in show(operator, attempt)
        assert f"/attempts/{attempt}/decide" in operator.response.text
        operator.post(f"/attempts/{attempt}/ask")
        assert "plutu has no status call" in operator.text

    def test_asking_needs_a_session_and_a_csrf_token(self, pages: MonitorWorld, deciding: Deciding) -> None:
        attempt = deciding.attempt()
        guest, person = pages.person(is_operator=False), pages.person()
        assert guest.post(f"/attempts/{attempt}/ask").status_code in (400, 401)
        show(person, attempt)
        assert person.post(f"/attempts/{attempt}/ask", csrf_token="x").status_code == 400
        show(person, attempt)
        assert person.post(f"/attempts/{UNKNOWN_ID}/ask").status_code == 404
        assert deciding.rows("select from operator_inquiries") == []


class TestApproval:
    def test_second_operator_approves(
        self, pages: MonitorWorld, operator: PageClient, other: PageClient, deciding: Deciding
    ) -> None:
        """The list shows what waits, the merchant's log who proposed and who approved."""
        attempt = deciding.attempt(LARGE, "plutu")
        propose(operator, attempt)
        assert deciding.state(attempt) == "unknown"
        other.open("/attempts")
        assert "Waiting for approval (1)" in other.text
        for shown in ("LYD 1,000.001", "It was paid", "T-9", FIELDS["reason"], "operator operator-"):
            assert shown in other.text
        show(other, attempt)
        other.post(proposal_path(deciding, attempt, "approve"))
        assert "Decided: it was paid" in other.text
        assert deciding.state(attempt) == "paid"
        assert "Waiting for approval" not in other.open("/attempts").text
        with pages.database.transaction() as connection:
            entries = list_entries(connection, pages.merchant_id, before=None, limit=10)
        assert [entry.action for entry in entries] == ["decision_approved", "decision_proposed"]
        assert {entry.address for entry in entries} == {None}
        assert "Approved a decision about a payment attempt" in other.open("/log").text

    def test_proposer_sees_no_button_to_approve_and_cannot(
        self, operator: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt(LARGE, "plutu")
        propose(operator, attempt)
        path = proposal_path(deciding, attempt, "approve")
        assert path not in show(operator, attempt)
        assert "You proposed this" in operator.text
        assert f"/attempts/{attempt}/decide" not in operator.response.text
        operator.post(path)
        assert "another operator has to approve what you proposed" in operator.text
        assert deciding.state(attempt) == "unknown"
        show(operator, attempt)
        operator.post(proposal_path(deciding, attempt, "reject"))
        assert "Rejected. The attempt was not changed." in operator.text

    def test_rejected_proposal_cannot_be_approved(
        self, operator: PageClient, other: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt(LARGE, "plutu")
        propose(operator, attempt)
        form = other.open(f"/attempts/{attempt}")
        other.post(proposal_path(deciding, attempt, "reject"))
        other.response = form
        other.post(proposal_path(deciding, attempt, "approve"))
        assert "this proposal is no longer open. It was: Rejected" in other.text
        assert deciding.state(attempt) == "unknown"

    def test_payment_that_was_settled_meanwhile_is_not_approved(
        self, operator: PageClient, other: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt(LARGE, "plutu")
        propose(operator, attempt, outcome="not_paid", reference="")
        show(other, attempt)
        deciding.notify_paid(attempt)
        other.post(proposal_path(deciding, attempt, "approve"))
        assert "the attempt has changed since it was proposed. The state is: Paid" in other.text
        assert [ended for ended, _ in deciding.proposals()] == ["outdated"]

    def test_removed_operator_cannot_approve(
        self, pages: MonitorWorld, operator: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt(LARGE, "plutu")
        propose(operator, attempt)
        email = pages.make_operator()
        removed = pages.person(is_operator=False)
        removed.sign_in(email, PASSWORD)
        show(removed, attempt)
        with pages.database.transaction() as connection:
            remove_operator(connection, get_operator(connection, email).id)
        assert removed.post(proposal_path(deciding, attempt, "approve")).status_code == 401
        assert deciding.state(attempt) == "unknown"

    def test_approver_asks_the_provider_first(
        self, operator: PageClient, other: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt(LARGE)
        deciding.ask_and_answer(attempt)
        propose(operator, attempt)
        deciding.run("update operator_inquiries set answered_at = answered_at - interval '11 minutes'")
        path = proposal_path(deciding, attempt, "approve")
        assert path not in show(other, attempt)
        assert "Ask the provider first. Then you can approve." in other.text
        other.post(path)
        assert "ask the provider first" in other.text
        other.post(f"/attempts/{attempt}/ask")
        deciding.answer(attempt, ProviderAnswer.UNKNOWN)
        assert path in show(other, attempt)
        other.post(path)
        assert deciding.state(attempt) == "paid"

    def test_paid_on_a_declined_attempt_is_proposed_and_becomes_a_duplicate(
        self, pages: MonitorWorld, operator: PageClient, other: PageClient, deciding: Deciding
    ) -> None:
        """Another attempt has paid meanwhile."""
        declined = OperatorPayments(pages).declined_then_paid()
        propose(operator, declined)
        assert deciding.state(declined) == "declined"
        show(other, declined)
        other.post(proposal_path(deciding, declined, "approve"))
        assert "it is a duplicate payment" in other.text
        assert deciding.state(declined) == "duplicate"

    def test_proposals_need_a_csrf_token_and_belong_to_their_attempt(
        self, operator: PageClient, other: PageClient, deciding: Deciding
    ) -> None:
        attempt, another = deciding.attempt(LARGE, "plutu"), deciding.attempt(LARGE, "plutu")
        propose(operator, attempt)
        path = proposal_path(deciding, attempt, "approve")
        show(other, attempt)
        assert other.post(path, csrf_token="x").status_code == 400
        show(other, attempt)
        assert other.post(path.replace(str(attempt), str(another))).status_code == 404
        assert deciding.proposals() == [(None, None)]

    def test_hostile_text_of_a_proposal_is_escaped(
        self, operator: PageClient, other: PageClient, deciding: Deciding
    ) -> None:
        attempt = deciding.attempt(LARGE, "plutu")
        propose(operator, attempt, reason="<script>alert(1)</script>", reference="<img src=x>")
        for path in ("/attempts", f"/attempts/{attempt}"):
            html = other.open(path).text
            assert "<script>alert" not in html
            assert "<img src=x" not in html
