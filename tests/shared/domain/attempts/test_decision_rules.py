"""Which decisions of operators need a second operator, and which ones the provider's answer rules out."""

from itertools import product

import pytest

from shared.domain.attempts.decision_rules import (
    ContradictsProviderError,
    OperatorDecision,
    RecordedAnswer,
    ReferenceMissingError,
    can_decide,
    check_contradiction,
    needs_approval,
    to_recorded_answer,
)
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import CHARGED, AttemptState, ProviderAnswer

CODE, REDIRECT, SENT, UNKNOWN, PAID, DECLINED, ABANDONED, DUPLICATE = AttemptState
LIMIT = 1_000_000

# For each state in which an operator may decide: whether "paid" and "declined" need approval up to the limit. None:
# it cannot be decided so.
EXPECTED: dict[AttemptState, tuple[bool | None, bool | None]] = {
    CODE: (False, False),
    REDIRECT: (False, False),
    SENT: (False, False),
    UNKNOWN: (False, False),
    DECLINED: (True, None),
    ABANDONED: (True, None),
    PAID: (None, None),
    DUPLICATE: (None, None),
}


@pytest.mark.parametrize(("state", "is_paid"), list(product(AttemptState, (True, False))))
def test_every_state_and_decision(state: AttemptState, is_paid: bool) -> None:
    """Above the limit every decision needs approval. The limit itself is not above it."""
    expected = EXPECTED[state][0 if is_paid else 1]
    decision = OperatorDecision(is_paid, "seen there")
    assert can_decide(state, decision.answer) is (expected is not None)
    if state not in CHARGED and expected is not None:
        assert needs_approval(state, LIMIT, LIMIT, is_paid=is_paid) is expected
        assert needs_approval(state, LIMIT + 1, LIMIT, is_paid=is_paid)


def test_limit_of_zero_means_that_every_decision_needs_approval() -> None:
    assert needs_approval(UNKNOWN, 1, 0, is_paid=False)


@pytest.mark.parametrize(
    ("answer", "allows_paid", "allows_declined"),
    [
        (RecordedAnswer.PAID, True, False),
        (RecordedAnswer.DECLINED, False, True),
        (RecordedAnswer.NOT_PAID, False, True),
        # The operator may know it from the bank.
        (RecordedAnswer.UNKNOWN, True, True),
        (RecordedAnswer.NOT_SUPPORTED, True, True),
    ],
)
def test_decision_must_not_contradict_the_provider(
    answer: RecordedAnswer, allows_paid: bool, allows_declined: bool
) -> None:
    for is_paid, is_allowed in ((True, allows_paid), (False, allows_declined)):
        if is_allowed:
            check_contradiction(answer, is_paid=is_paid)
        else:
            with pytest.raises(ContradictsProviderError):
                check_contradiction(answer, is_paid=is_paid)


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [
        (ProviderAnswer.PAID, RecordedAnswer.PAID),
        (ProviderAnswer.DECLINED, RecordedAnswer.DECLINED),
        (ProviderAnswer.NOT_FOUND, RecordedAnswer.NOT_PAID),
        (ProviderAnswer.NEEDS_CODE, RecordedAnswer.NOT_PAID),
        (ProviderAnswer.NEEDS_REDIRECT, RecordedAnswer.NOT_PAID),
        (ProviderAnswer.UNKNOWN, RecordedAnswer.UNKNOWN),
    ],
)
def test_every_answer_of_a_provider_can_be_recorded(answer: ProviderAnswer, recorded: RecordedAnswer) -> None:
    assert to_recorded_answer(AttemptOutcome(answer)) is recorded


def test_unknown_of_a_provider_without_a_status_call_is_recorded_as_such() -> None:
    outcome = AttemptOutcome(ProviderAnswer.UNKNOWN, can_inquire=False)
    assert to_recorded_answer(outcome) is RecordedAnswer.NOT_SUPPORTED


@pytest.mark.parametrize("reference", ["", "  ", "\u0000\n"])
def test_paid_needs_a_reference(reference: str) -> None:
    with pytest.raises(ReferenceMissingError):
        OperatorDecision(True, "seen there", reference).outcome()
    assert OperatorDecision(False, "seen there", reference).outcome().provider_reference is None
