"""Repeated requests take effect once, also if they are concurrent."""

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pytest
import requests

from services.sandbox.bank import Bank
from services.sandbox.charges import Charge
from services.sandbox.ledger import Ledger
from services.sandbox.request_schemas import parse_charge_request
from tests.sandbox.running_sandbox import RunningSandbox, card, charge_body, wallet

AT_ONCE = 20


def test_concurrent_requests_of_one_attempt_charge_once(sandbox: RunningSandbox) -> None:
    """One 201, nineteen 200, one charge, and the same response for all."""
    for _ in range(3):
        body = charge_body()
        answers = _at_once(sandbox, "/charges", [body] * AT_ONCE)
        assert Counter(answer.status_code for answer in answers) == {201: 1, 200: AT_ONCE - 1}
        (charge,) = sandbox.find(intent=body["intent"])
        assert all(answer.json() == charge for answer in answers)


def test_concurrent_attempts_of_one_intent_are_each_charged(sandbox: RunningSandbox) -> None:
    """The bank does not know that they belong to one purchase."""
    intent = str(uuid4())
    answers = _at_once(sandbox, "/charges", [charge_body(intent=intent) for _ in range(AT_ONCE)])
    assert {answer.status_code for answer in answers} == {201}
    assert len(sandbox.find(intent=intent)) == AT_ONCE


@pytest.mark.parametrize(
    "changed",
    [{"amount": 25_001}, {"intent": str(uuid4())}, {"method": "sadad", "wallet": wallet("0912345678")}],
)
def test_repeat_with_different_fields_is_409(sandbox: RunningSandbox, changed: dict[str, object]) -> None:
    """The charge is unchanged."""
    body = charge_body()
    charge = sandbox.post("/charges", body).json()
    answer = sandbox.post("/charges", {**body, **changed})
    assert answer.status_code == 409
    assert list(answer.json()) == ["message"]
    assert sandbox.find(attempt=body["attempt"]) == [charge]


def test_a_repeat_returns_the_current_charge(sandbox: RunningSandbox) -> None:
    """Also with other details of the wallet."""
    body = charge_body("adfali")
    charge = sandbox.post("/charges", body).json()
    again = sandbox.post("/charges", {**body, "wallet": wallet("0921234000")})
    assert (again.status_code, again.json()) == (200, charge)
    paid = sandbox.confirm(charge, 1, "1111").json()
    assert paid["status"] == "paid"
    assert sandbox.post("/charges", body).json() == paid


def test_repeat_with_a_better_card_does_not_charge_a_declined_attempt(
    sandbox: RunningSandbox,
) -> None:
    body = charge_body(card=card("4000000000000002"))
    declined = sandbox.post("/charges", body).json()
    again = sandbox.post("/charges", {**body, "card": card("4242424242424242")})
    assert (again.status_code, again.json()) == (200, declined)


def test_one_code_number_is_checked_once_in_concurrent_requests(sandbox: RunningSandbox) -> None:
    """Twenty with the same number, half of them with the right code: one is checked, and all get its result."""
    for _ in range(5):
        charge = sandbox.charge("sadad").json()
        codes = [{"number": 1, "code": ("111111", "222222")[n % 2]} for n in range(AT_ONCE)]
        answers = _at_once(sandbox, f"/charges/{charge['id']}/confirm", codes)
        assert {answer.status_code for answer in answers} == {200}
        now = sandbox.get(f"/charges/{charge['id']}").json()
        assert all(answer.json() == now for answer in answers)


def test_a_repeated_code_number_returns_its_first_result(sandbox: RunningSandbox) -> None:
    """Also with a better code, and after another number has paid."""
    charge = sandbox.charge("sadad").json()
    first = sandbox.confirm(charge, 1, "222222").json()
    assert (first["status"], first["reason"]) == ("needs_code", "wrong_code")
    assert sandbox.confirm(charge, 1, "111111").json() == first
    assert sandbox.get(f"/charges/{charge['id']}").json() == first
    paid = sandbox.confirm(charge, 2, "111111").json()
    assert paid["status"] == "paid"
    assert sandbox.confirm(charge, 1, "111111").json() == first
    assert sandbox.confirm(charge, 2, "222222").json() == paid
    assert sandbox.get(f"/charges/{charge['id']}").json() == paid


def test_a_settled_charge_is_returned_with_its_current_status(sandbox: RunningSandbox) -> None:
    """No code is checked any more."""
    charge = sandbox.charge("sadad").json()
    assert sandbox.settle(charge, "declined").json()["status"] == "declined"
    assert sandbox.confirm(charge, 1, "111111").json()["status"] == "declined"
    assert sandbox.settle(charge, "paid").json()["status"] == "paid"
    assert sandbox.confirm(charge, 1, "111111").json()["status"] == "paid"


def test_two_processes_share_one_ledger(tmp_path: Path) -> None:
    """A process that is stopping may still respond after the next one has started."""
    asked = [parse_charge_request(json.dumps(charge_body()).encode()) for _ in range(50)]
    together = Barrier(4)

    def charge_all(bank: Bank) -> list[tuple[Charge, bool]]:
        together.wait(10)
        return [bank.charge(one) for one in asked]

    with (
        closing(Ledger(tmp_path / "ledger.sqlite")) as first,
        closing(Ledger(tmp_path / "ledger.sqlite")) as second,
        ThreadPoolExecutor(4) as callers,
    ):
        answers = list(callers.map(charge_all, [Bank(first), Bank(second)] * 2))
    for told in zip(*answers, strict=True):
        assert len({charge for charge, _ in told}) == 1
        assert sum(is_new for _, is_new in told) == 1


def _at_once(sandbox: RunningSandbox, path: str, bodies: Sequence[object]) -> list[requests.Response]:
    together = Barrier(len(bodies))

    def post(body: object) -> requests.Response:
        together.wait(10)
        return sandbox.post(path, body)

    with ThreadPoolExecutor(len(bodies)) as callers:
        return list(callers.map(post, bodies))
