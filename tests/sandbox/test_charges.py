"""Charges over HTTP: their outcomes, how they are found, and which requests are refused."""

import re
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests

from tests.sandbox.running_sandbox import CREDENTIALS, SILENCE_S, RunningSandbox, card, charge_body, wallet
from tests.waiting import eventually

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def _made(answer: requests.Response) -> dict[str, Any]:
    assert answer.status_code == 201, answer.text
    charge: dict[str, Any] = answer.json()
    return charge


def _now(answer: requests.Response) -> tuple[str, str | None]:
    """Return the status and the reason of the charge in the response."""
    assert answer.status_code == 200, answer.text
    return answer.json()["status"], answer.json()["reason"]


def test_charge_is_returned_completely_and_without_card_details(sandbox: RunningSandbox) -> None:
    body = charge_body(amount=12_345)
    charge = _made(sandbox.post("/charges", body))
    assert charge == {
        "id": charge["id"],
        "attempt": body["attempt"],
        "intent": body["intent"],
        "amount": 12_345,
        "currency": "LYD",
        "method": "card",
        "status": "paid",
        "reason": None,
        "created_at": charge["created_at"],
        "updated_at": charge["created_at"],
    }
    assert re.fullmatch(r"ch_[0-9a-f]{24}", charge["id"])
    assert MOMENT.fullmatch(charge["created_at"])
    assert sandbox.get(f"/charges/{charge['id']}").json() == charge


@pytest.mark.parametrize(
    ("number", "status", "reason"),
    [
        ("5555555555554444", "paid", None),
        ("4000000000009995", "declined", "insufficient_funds"),
        ("6395043835180860", "needs_code", None),
    ],
)
def test_card_number_decides_the_outcome_of_a_charge(
    sandbox: RunningSandbox, number: str, status: str, reason: str | None
) -> None:
    """One for each outcome with an immediate response. The whole table is in test_scripted_outcomes.py."""
    charge = _made(sandbox.charge(card=card(number)))
    assert (charge["status"], charge["reason"]) == (status, reason)


def test_an_expired_card_is_declined(sandbox: RunningSandbox) -> None:
    charge = _made(sandbox.charge(card=card("4242424242424242", 1, 2020)))
    assert (charge["status"], charge["reason"]) == ("declined", "declined")


def test_charge_with_a_delayed_response_is_recorded_at_once(sandbox: RunningSandbox) -> None:
    """Meanwhile other requests and a repeat see the charge."""
    bodies = [charge_body(card=card(number)) for number in ("4000000000000077", "4000000000000341")]
    began = monotonic()
    with ThreadPoolExecutor(2) as callers:
        answers = [callers.submit(sandbox.post, "/charges", body) for body in bodies]
        eventually(lambda: all(sandbox.find(attempt=body["attempt"]) for body in bodies))
        repeats = [sandbox.post("/charges", body) for body in bodies]
        assert not any(answer.done() for answer in answers)
    assert monotonic() - began >= SILENCE_S
    charges = [_made(answer.result()) for answer in answers]
    assert [charge["status"] for charge in charges] == ["paid", "declined"]
    assert [(repeat.status_code, repeat.json()) for repeat in repeats] == [
        (200, charge) for charge in charges
    ]


def test_delayed_responses_do_not_delay_other_requests(sandbox: RunningSandbox) -> None:
    """Forty charges with delayed responses, and one without."""
    with ThreadPoolExecutor(40) as callers:
        bodies = [charge_body(card=card("4000000000000077")) for _ in range(40)]
        silent = [callers.submit(sandbox.post, "/charges", body) for body in bodies]
        eventually(lambda: sandbox.find(attempt=bodies[-1]["attempt"]))
        _made(sandbox.charge())
        assert not all(answer.done() for answer in silent)
    assert {answer.result().status_code for answer in silent} == {201}


@pytest.mark.parametrize(
    ("method", "details", "right", "wrong"),
    [
        ("card", {"card": card("6395043835180860")}, "111111", "111112"),
        ("sadad", {"wallet": wallet("0913632323", 1999)}, "111111", "1111"),
        ("adfali", {"wallet": wallet("0921234567")}, "1111", "111111"),
    ],
)
def test_charge_needs_the_right_code_to_be_paid(
    sandbox: RunningSandbox, method: str, details: dict[str, Any], right: str, wrong: str
) -> None:
    """A wrong code is rejected, the right one pays, and later codes change nothing."""
    charge = _made(sandbox.charge(method, **details))
    assert (charge["status"], charge["reason"]) == ("needs_code", None)
    assert _now(sandbox.confirm(charge, 1, wrong)) == ("needs_code", "wrong_code")
    assert _now(sandbox.confirm(charge, 2, right)) == ("paid", None)
    assert _now(sandbox.confirm(charge, 3, wrong)) == ("paid", None)
    assert _now(sandbox.get(f"/charges/{charge['id']}")) == ("paid", None)


@pytest.mark.parametrize(
    ("method", "phone", "birth_year", "reason"),
    [
        ("adfali", "0921234000", None, "not_subscribed"),
        ("sadad", "0913632323", 1998, "wrong_phone_or_birth_year"),
    ],
)
def test_wallet_that_is_declined_at_once_stays_declined_after_a_code(
    sandbox: RunningSandbox, method: str, phone: str, birth_year: int | None, reason: str
) -> None:
    charge = _made(sandbox.charge(method, wallet=wallet(phone, birth_year)))
    assert (charge["status"], charge["reason"]) == ("declined", reason)
    assert _now(sandbox.confirm(charge, 1, "111111")) == ("declined", reason)


@pytest.mark.parametrize(
    ("method", "phone", "code"), [("sadad", "0912345995", "111111"), ("adfali", "0921234995", "2222")]
)
def test_insufficient_funds_are_reported_after_the_code(
    sandbox: RunningSandbox, method: str, phone: str, code: str
) -> None:
    """With the right code and with a wrong one."""
    charge = _made(sandbox.charge(method, wallet=wallet(phone)))
    assert charge["status"] == "needs_code"
    assert _now(sandbox.confirm(charge, 1, code)) == ("declined", "insufficient_funds")


def test_charges_are_found_by_intent_and_by_attempt(sandbox: RunningSandbox) -> None:
    """Oldest first. Both filters can be combined."""
    intent = str(uuid4())
    first, second = [_made(sandbox.charge(intent=intent)) for _ in range(2)]
    assert sandbox.find(intent=intent) == [first, second]
    assert sandbox.find(intent=intent.upper()) == [first, second]
    assert sandbox.find(attempt=second["attempt"]) == [second]
    assert sandbox.find(intent=intent, attempt=second["attempt"]) == [second]
    assert sandbox.find(intent=str(uuid4()), attempt=second["attempt"]) == []
    assert sandbox.find(intent=str(uuid4())) == []


@pytest.mark.parametrize("query", [{}, {"intent": "x"}, {"intent": str(uuid4()), "attempt": ""}])
def test_search_for_charges_needs_a_valid_filter(sandbox: RunningSandbox, query: dict[str, str]) -> None:
    """A request without one does not return the whole ledger."""
    answer = sandbox.get("/charges", **query)
    assert answer.status_code == 422
    assert list(answer.json()) == ["message"]


@pytest.mark.parametrize(
    ("path", "body"), [("confirm", {"number": 1, "code": "111111"}), ("settle", {"outcome": "paid"})]
)
def test_unknown_charges_are_404(sandbox: RunningSandbox, path: str, body: object) -> None:
    for answer in (sandbox.post(f"/charges/ch_none/{path}", body), sandbox.get("/charges/ch_none")):
        assert (answer.status_code, answer.json()) == (404, {"message": "There is no such charge."})


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"attempt": "913632323"}, "attempt"),
        ({"attempt": None}, "attempt"),
        ({"intent": 4242424242424242}, "intent"),
        ({"method": "0913632323"}, "method"),
        ({"amount": "4242424242424242"}, "amount"),
        ({"amount": 1000.5}, "amount"),
        ({"amount": 0}, "amount"),
        ({"amount": 10**20}, "amount"),
        ({"amount": True}, "amount"),
        ({"currency": "0913632323"}, "currency"),
        ({"notify_url": "0913632323"}, "notify_url"),
        ({"notify_url": "http://127.0.0.1/\udc80"}, "notify_url"),
        ({"notify_url": "ftp://127.0.0.1/0913632323"}, "notify_url"),
        ({"card": None}, "card"),
        ({"card": "4242424242424242"}, "card"),
        ({"card": {**card("4242424242424242"), "number": 4242424242424242}}, "card.number"),
        ({"card": {**card("4242424242424242"), "expiry_month": 13}}, "card.expiry_month"),
        ({"card": {**card("4242424242424242"), "expiry_year": 99}}, "card.expiry_year"),
        ({"card": {**card("4242424242424242"), "security_code": 7373}}, "card.security_code"),
        ({"method": "sadad"}, "wallet"),
        ({"method": "adfali", "wallet": {"phone": 913632323}}, "wallet.phone"),
        ({"method": "sadad", "wallet": wallet("0913632323") | {"birth_year": "1999"}}, "wallet.birth_year"),
    ],
)
def test_invalid_fields_are_named_and_not_quoted(
    sandbox: RunningSandbox, changed: dict[str, Any], named: str
) -> None:
    """422 with the name of the field. No digit of the request is in the response."""
    body = {**charge_body(), **changed}
    answer = sandbox.post("/charges", body)
    assert answer.status_code == 422, answer.text
    assert list(answer.json()) == ["message"]
    message = answer.json()["message"]
    assert message.startswith(f"{named}: ")
    assert not [sent for sent in ("4242", "913632323", "1999", "7373") if sent in message]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"0913632323"', b"\xff", b"[" * 30_000, b'{"a": 1, "a": 2}']
)
@pytest.mark.parametrize("path", ["/charges", "/charges/ch_none/confirm", "/charges/ch_none/settle"])
def test_body_that_is_not_a_json_object_is_422(sandbox: RunningSandbox, path: str, body: bytes) -> None:
    answer = requests.post(f"{sandbox.url}{path}", data=body, headers=CREDENTIALS, timeout=10)
    told = {"message": "The body must be a JSON object, with each key once."}
    assert (answer.status_code, answer.json()) == (422, told)


def test_charges_after_an_attempt_are_listed_in_order_of_attempts(sandbox: RunningSandbox) -> None:
    """Reconciliation reads the ledger this way."""
    first, second = sorted(_made(sandbox.charge())["attempt"] for _ in range(2))
    following = [charge["attempt"] for charge in sandbox.find(after=first)]
    assert second in following
    assert first not in following
    assert following == sorted(following)
    assert sandbox.find(after=str(UUID(int=2**128 - 1))) == []


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("confirm", {"number": "1", "code": "111111"}, "number"),
        ("confirm", {"number": 1, "code": 111111}, "code"),
        ("confirm", {"number": 10**20, "code": "111111"}, "number"),
        ("settle", {"outcome": "needs_code"}, "outcome"),
        ("settle", {}, "outcome"),
    ],
)
def test_invalid_codes_and_outcomes_are_422(
    sandbox: RunningSandbox, path: str, body: object, named: str
) -> None:
    """The error names the field, and the charge is unchanged."""
    charge = _made(sandbox.charge("sadad"))
    answer = sandbox.post(f"/charges/{charge['id']}/{path}", body)
    assert answer.status_code == 422
    assert answer.json()["message"].startswith(f"{named}: ")
    assert "111111" not in answer.text
    assert sandbox.get(f"/charges/{charge['id']}").json() == charge
