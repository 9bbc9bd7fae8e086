"""Large or unusual decisions wait for a second operator, who approves or rejects them."""

from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from shared.domain.accounts.operators import remove_operator
from shared.domain.attempts.decision_proposals import (
    NotAnOperatorError,
    OutdatedProposal,
    OwnProposalError,
    ProposalEndedError,
    ProposalNotFoundError,
    list_waiting,
)
from shared.domain.attempts.decision_rules import (
    ANSWER_VALID_FOR,
    ContradictsProviderError,
)
from shared.domain.attempts.notes import MAX_NOTE_LENGTH
from shared.domain.attempts.operator_decision import AlreadyProposedError, NotAskedError, ProposedDecision
from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.audit_log import Actor
from shared.platform.database.pool import Database
from tests.clock import Clock
from tests.shared.domain.attempts.deciding import CLI, LIMIT, Deciding

LARGE = LIMIT + 1


@pytest.fixture
def deciding(database: Database, application_id: UUID) -> Deciding:
    return Deciding(database, application_id)


def test_large_amount_is_proposed_and_approved_by_another_operator(deciding: Deciding) -> None:
    attempt, first, second = deciding.attempt(LARGE), deciding.operator(), deciding.operator()
    deciding.ask_and_answer(attempt)
    proposal = deciding.propose(attempt, first)
    assert deciding.state(attempt) == "unknown"
    with deciding.database.transaction() as connection:
        (waiting,) = list_waiting(connection)
    assert (waiting.id, waiting.attempt, waiting.amount) == (proposal, attempt, LARGE)
    assert (waiting.outcome, waiting.reference, waiting.proposed_by) == ("paid", "T-9", first.name)
    settled = deciding.approve(attempt, proposal, second)
    assert isinstance(settled, SettlementResult)
    assert settled.attempt is AttemptState.PAID
    assert deciding.proposals() == [("approved", second.name)]
    with deciding.database.transaction() as connection:
        assert list_waiting(connection) == []
    actions = deciding.rows("select action, actor, merchant_id is not null from audit_log order by id")
    assert actions[-2:] == [
        ("decision_proposed", first.name, True),
        ("decision_approved", second.name, True),
    ]
    ((details,),) = deciding.rows("select details from audit_log where action = 'decision_approved'")
    assert (details["proposed_by"], details["outcome"], details["provider_answer"]) == (
        first.name,
        "paid",
        "unknown",
    )


@pytest.mark.parametrize("is_paid", [True, False])
def test_amount_at_the_limit_needs_no_approval(deciding: Deciding, is_paid: bool) -> None:
    at_limit, above = (deciding.attempt(amount, "plutu") for amount in (LIMIT, LARGE))
    assert isinstance(deciding.decide(at_limit, is_paid=is_paid), SettlementResult)
    assert isinstance(deciding.decide(above, is_paid=is_paid), ProposedDecision)


@pytest.mark.parametrize("state", ["declined", "abandoned"])
def test_paid_on_an_attempt_that_ended_needs_approval(deciding: Deciding, state: str) -> None:
    attempt = deciding.attempt(provider="plutu", outcome="declined")
    deciding.run("update payment_attempts set state = %s", state)
    proposal = deciding.propose(attempt)
    assert deciding.state(attempt) == state
    deciding.approve(attempt, proposal, deciding.operator())
    assert deciding.state(attempt) == "paid"


def test_paid_after_another_attempt_has_paid_is_a_duplicate(deciding: Deciding) -> None:
    attempt = deciding.attempt(provider="plutu", outcome="declined")
    proposal = deciding.propose(attempt)
    deciding.run("update payment_intents set status = 'succeeded'")
    settled = deciding.approve(attempt, proposal, deciding.operator())
    assert isinstance(settled, SettlementResult)
    assert settled.attempt is AttemptState.DUPLICATE


def test_nobody_approves_what_they_proposed(deciding: Deciding) -> None:
    """Not with a new account for the same address either."""
    attempt, first = deciding.attempt(LARGE, "plutu"), deciding.operator("mona@example.ly")
    proposal = deciding.propose(attempt, first)
    with pytest.raises(OwnProposalError):
        deciding.approve(attempt, proposal, first)
    _remove(deciding, first)
    with pytest.raises(OwnProposalError):
        deciding.approve(attempt, proposal, deciding.operator("mona@example.ly"))
    assert (deciding.state(attempt), deciding.proposals()) == ("unknown", [(None, None)])


def test_proposer_can_withdraw(deciding: Deciding) -> None:
    attempt, first = deciding.attempt(LARGE, "plutu"), deciding.operator()
    deciding.reject(attempt, deciding.propose(attempt, first), first)
    assert (deciding.state(attempt), deciding.proposals()) == ("unknown", [("rejected", first.name)])


def test_command_line_and_removed_operators_approve_nothing(deciding: Deciding) -> None:
    attempt, removed = deciding.attempt(LARGE, "plutu"), deciding.operator()
    proposal = deciding.propose(attempt)
    _remove(deciding, removed)
    for actor in (CLI, Actor("cli operator ali (uid 7)"), removed):
        with pytest.raises(NotAnOperatorError):
            deciding.approve(attempt, proposal, actor)
        with pytest.raises(NotAnOperatorError):
            deciding.reject(attempt, proposal, actor)
    assert deciding.proposals() == [(None, None)]


def test_approvals_at_once_settle_once(deciding: Deciding) -> None:
    attempt = deciding.attempt(LARGE, "plutu")
    proposal = deciding.propose(attempt)
    operators = [deciding.operator() for _ in range(4)]
    got = deciding.approve_at_once(attempt, proposal, operators)
    assert sorted(type(one).__name__ for one in got) == ["ProposalEndedError"] * 3 + ["SettlementResult"]
    assert deciding.rows("select count(*) from audit_log where action = 'decision_approved'") == [(1,)]


def test_rejected_proposal_cannot_be_approved(deciding: Deciding) -> None:
    """It can be proposed again."""
    attempt, second = deciding.attempt(LARGE, "plutu"), deciding.operator()
    proposal = deciding.propose(attempt)
    deciding.reject(attempt, proposal, second)
    for act in (deciding.approve, deciding.reject):
        with pytest.raises(ProposalEndedError):
            act(attempt, proposal, second)
    deciding.approve(attempt, deciding.propose(attempt), second)
    assert [ended for ended, _ in deciding.proposals()] == ["rejected", "approved"]


def test_proposal_is_outdated_once_the_provider_has_settled_it(deciding: Deciding) -> None:
    attempt, second = deciding.attempt(LARGE, "plutu"), deciding.operator()
    proposal = deciding.propose(attempt, is_paid=False)
    deciding.notify_paid(attempt)
    with deciding.database.transaction() as connection:
        assert list_waiting(connection) == []
    assert deciding.approve(attempt, proposal, second) == OutdatedProposal(AttemptState.PAID)
    assert (deciding.state(attempt), deciding.proposals()) == ("paid", [("outdated", second.name)])


def test_proposal_about_an_earlier_request_is_outdated(deciding: Deciding) -> None:
    """A new proposal replaces it."""
    attempt, second = deciding.attempt(LARGE, "plutu"), deciding.operator()
    old = deciding.propose(attempt)
    deciding.run("update payment_attempts set provider_requests = 2")
    new = deciding.propose(attempt)
    with pytest.raises(ProposalEndedError):
        deciding.approve(attempt, old, second)
    deciding.approve(attempt, new, second)
    assert [ended for ended, _ in deciding.proposals()] == ["outdated", "approved"]


def test_attempt_has_one_open_proposal(deciding: Deciding) -> None:
    attempt = deciding.attempt(LARGE, "plutu")
    deciding.propose(attempt, deciding.operator())
    for is_paid in (True, False):
        with pytest.raises(AlreadyProposedError):
            deciding.decide(attempt, deciding.operator(), is_paid=is_paid)
    assert len(deciding.proposals()) == 1


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_longest_reason_is_approved_and_rejected_as_it_was_stored(deciding: Deciding, verb: str) -> None:
    """What replaces a number is longer than the number, so the stored reason is longer than a new one may be."""
    attempt = deciding.attempt(LARGE, "plutu")
    proposal = deciding.propose(attempt, reason="otp 1234 " * 55)
    ((stored,),) = deciding.rows("select length(reason) from decision_proposals")
    assert stored > MAX_NOTE_LENGTH
    getattr(deciding, verb)(attempt, proposal, deciding.operator())
    assert deciding.state(attempt) == ("paid" if verb == "approve" else "unknown")


def test_provider_is_asked_again_before_the_approval(deciding: Deciding, clock: Clock) -> None:
    attempt, second = deciding.attempt(LARGE), deciding.operator()
    deciding.ask_and_answer(attempt)
    proposal = deciding.propose(attempt)
    clock.advance(ANSWER_VALID_FOR + timedelta(seconds=1))
    with pytest.raises(NotAskedError):
        deciding.approve(attempt, proposal, second)
    deciding.ask_and_answer(attempt, ProviderAnswer.DECLINED)
    with pytest.raises(ContradictsProviderError):
        deciding.approve(attempt, proposal, second)
    assert (deciding.state(attempt), deciding.proposals()) == ("unknown", [(None, None)])


def test_proposal_of_another_attempt_is_not_found(deciding: Deciding) -> None:
    attempt, other = deciding.attempt(LARGE, "plutu"), deciding.attempt(LARGE, "plutu")
    proposal = deciding.propose(attempt)
    for pair in ((other, proposal), (attempt, uuid4())):
        with pytest.raises(ProposalNotFoundError):
            deciding.approve(*pair, deciding.operator())


def test_database_itself_refuses_an_approval_by_the_proposer(deciding: Deciding) -> None:
    first = deciding.operator()
    deciding.propose(deciding.attempt(LARGE, "plutu"), first)
    approve = """update decision_proposals
                 set ended_as = 'approved', ended_by = %s, ended_by_id = %s, ended_at = now()"""
    for values in ((first.name, first.operator_id), ("somebody", first.operator_id), ("somebody", None)):
        with pytest.raises(psycopg.errors.CheckViolation, match="four_eyes"):
            deciding.run(approve, *values)


def _remove(deciding: Deciding, actor: Actor) -> None:
    assert actor.operator_id is not None
    with deciding.database.transaction() as connection:
        remove_operator(connection, actor.operator_id)
