"""docs/sandbox.md describes what the sandbox does."""

import re
from datetime import date

import pytest

from services.sandbox.scripted_outcomes import (
    SILENT_OUTCOMES,
    Card,
    ChargeResult,
    ChargeStatus,
    DeclineReason,
    Wallet,
    initial_result,
    result_after_code,
    scripted_outcome,
)
from shared.domain.payment_methods import PaymentMethod
from tests.readme.documents import ROOT, Document

_TODAY = date(2026, 11, 1)
_OUTCOMES = {
    "paid": ChargeResult(ChargeStatus.PAID),
    "declined": ChargeResult(ChargeStatus.DECLINED, DeclineReason.DECLINED),
    "declined: insufficient funds": ChargeResult(ChargeStatus.DECLINED, DeclineReason.INSUFFICIENT_FUNDS),
    "refused: not subscribed": ChargeResult(ChargeStatus.DECLINED, DeclineReason.NOT_SUBSCRIBED),
    "refused: wrong phone or birth year": ChargeResult(
        ChargeStatus.DECLINED, DeclineReason.WRONG_PHONE_OR_BIRTH_YEAR
    ),
}
ROWS = [row for row in Document(ROOT / "docs" / "sandbox.md").rows() if len(row) == 3]


@pytest.mark.parametrize(("methods", "number", "what_happens"), ROWS, ids=lambda cell: cell)
def test_each_number_has_the_outcome_of_the_sandbox_page(
    methods: str, number: str, what_happens: str
) -> None:
    first, _, then = what_happens.partition("; ")
    for method in map(PaymentMethod, methods.lower().split(", ")):
        script = scripted_outcome(method, _details(method, number), _TODAY)
        assert (first == "times out") == (script in SILENT_OUTCOMES)
        if first == "asks for a code":
            assert initial_result(script) == ChargeResult(ChargeStatus.NEEDS_CODE)
            code = then.removesuffix(" is right") if then.endswith(" is right") else "111111"
            told = "paid" if then.endswith(" is right") else then.removeprefix("any code is ")
            assert result_after_code(script, method, code) == _OUTCOMES[told]
        else:
            told = then.removeprefix("turns out ") if then else first.partition(", until")[0]
            assert initial_result(script) == _OUTCOMES[told]


def _details(method: PaymentMethod, number: str) -> Card | Wallet:
    if method is PaymentMethod.CARD:
        return Card(number.replace(" ", ""), 12, 2030)
    if ending := re.search(r"ending in (\d{3})", number):
        return Wallet(f"0911234{ending[1]}", 1990)
    phone, _, born = number.partition(", ")
    return Wallet(phone, 1999 if born.endswith("1999") else 1980)
