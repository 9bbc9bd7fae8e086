"""Late settlement and its signed notification."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from services.sandbox import notifications
from services.sandbox.bank import Bank
from services.sandbox.ledger import Ledger
from services.sandbox.notifications import MAX_RETRIES, NotificationSender
from services.sandbox.request_schemas import parse_charge_request
from services.sandbox.scripted_outcomes import ChargeStatus
from shared.platform.backoff import FIRST_S
from tests.logs import capture_logs
from tests.sandbox.running_sandbox import SECRET, RunningSandbox, card, charge_body, kill
from tests.waiting import eventually
from tests.webhooks.receivers import Received, Receiver, Reply


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def _told(request: Received) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(request.body)
    return told


def test_declined_charge_is_settled_as_paid_with_a_signed_notification(
    sandbox: RunningSandbox, receiver: Receiver
) -> None:
    charge = sandbox.charge(card=card("4000000000000259"), notify_url=receiver.url).json()
    assert charge["status"] == "declined"
    answer = sandbox.settle(charge, "paid")
    assert answer.status_code == 200
    settled = answer.json()
    assert settled.pop("notified") is True
    assert settled == {**charge, "status": "paid", "reason": None, "updated_at": settled["updated_at"]}
    assert sandbox.get(f"/charges/{charge['id']}").json() == settled

    (request,) = receiver.requests
    told = _told(request)
    assert told == {
        "id": str(UUID(told["id"])),
        "charge": charge["id"],
        "attempt": charge["attempt"],
        "intent": charge["intent"],
        "amount": 25_000,
        "currency": "LYD",
        "status": "paid",
        "at": told["at"],
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["at"])
    assert request.path == "/hooks"
    assert request.headers["content-type"] == "application/json"
    expected = hmac.new(SECRET.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.headers["sandbox-signature"] == expected


def test_paid_charge_stays_paid_and_each_settlement_is_notified(
    sandbox: RunningSandbox, receiver: Receiver
) -> None:
    charge = sandbox.charge(notify_url=receiver.url).json()
    assert sandbox.settle(charge, "declined").json() == {**charge, "notified": True}
    assert sandbox.settle(charge, "paid").json() == {**charge, "notified": True}
    first, second = [_told(request) for request in receiver.requests]
    assert first["status"] == second["status"] == "paid"
    assert first["id"] != second["id"]


def test_charge_that_needs_a_code_can_be_settled_as_declined(
    sandbox: RunningSandbox, receiver: Receiver
) -> None:
    """This sends a notification too."""
    charge = sandbox.charge("sadad", notify_url=receiver.url).json()
    settled = sandbox.settle(charge, "declined").json()
    assert (settled["status"], settled["reason"], settled["notified"]) == ("declined", "declined", True)
    assert [_told(request)["status"] for request in receiver.requests] == ["declined"]


def test_a_notification_is_retried_until_it_is_accepted(sandbox: RunningSandbox, receiver: Receiver) -> None:
    """With the same body and signature, and a log line for each failure. A redirect counts as a failure."""
    replies = [Reply(500), Reply(302), Reply(500), Reply(204)]
    receiver.answer = lambda _: replies[len(receiver.requests) - 1]
    charge = sandbox.charge(notify_url=receiver.url).json()
    assert sandbox.settle(charge, "paid").json()["notified"] is False
    eventually(lambda: len(receiver.requests) == len(replies))
    assert len({(request.body, request.headers["sandbox-signature"]) for request in receiver.requests}) == 1
    lines = [line for line in sandbox.lines("notification not accepted") if line["charge"] == charge["id"]]
    assert [line["problem"] for line in lines] == ["status 500", "status 302", "status 500"]
    assert {line["notification"] for line in lines} == {_told(receiver.requests[0])["id"]}
    times = [request.at for request in receiver.requests]
    pauses = [after - before for before, after in pairwise(times)]
    assert all(pause > 0.7 * FIRST_S * 2**repeat for repeat, pause in enumerate(pauses))


def test_an_unreachable_receiver_is_reported_and_logged(sandbox: RunningSandbox) -> None:
    """The charge is settled nevertheless."""
    charge = sandbox.charge(card=card("4000000000000259")).json()
    settled = sandbox.settle(charge, "paid").json()
    assert (settled["status"], settled["notified"]) == ("paid", False)
    lines = [line for line in sandbox.lines("notification not accepted") if line["charge"] == charge["id"]]
    assert lines[0]["problem"] == "ConnectionError"


@pytest.mark.kills
@pytest.mark.stack
def test_pending_notifications_are_sent_after_a_restart(tmp_path: Path, receiver: Receiver) -> None:
    """The sandbox is killed before its notification was accepted."""
    sandbox = RunningSandbox(tmp_path)
    receiver.answer = Reply(500)
    with sandbox.running() as process:
        charge = sandbox.charge(notify_url=receiver.url).json()
        assert sandbox.settle(charge, "paid").json()["notified"] is False
        kill(process)
    refused = len(receiver.requests)
    receiver.answer = Reply(200)
    ledger = Ledger(sandbox.ledger)
    assert _pending(ledger) == 1
    with sandbox.running():
        eventually(lambda: not _pending(ledger))
    assert len(receiver.requests) == refused + 1
    assert len({request.body for request in receiver.requests}) == 1
    ledger.close()


@pytest.mark.parametrize("refused", [MAX_RETRIES, MAX_RETRIES + 1])
def test_notification_is_given_up_after_eight_retries(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """Nine tries in all, and a log line. One that is accepted at the ninth try is not given up."""
    monkeypatch.setattr(notifications, "backoff_delay", lambda _failures: 0.0)
    receiver.answer = lambda _: Reply(200 if len(receiver.requests) > refused else 500)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    bank = Bank(ledger)
    charge, _ = bank.charge(parse_charge_request(json.dumps(charge_body(notify_url=receiver.url)).encode()))
    _, notification = bank.settle(charge.id, ChargeStatus.PAID)
    with capture_logs() as log:
        assert NotificationSender(ledger, SECRET).send(notification) is False
        eventually(lambda: not _pending(ledger))
        assert ("notification given up" in log.getvalue()) is (refused > MAX_RETRIES)
    assert len(receiver.requests) == MAX_RETRIES + 1
    ledger.close()


def _pending(ledger: Ledger) -> int:
    with ledger.transaction() as transaction:
        return len(transaction.find_pending())
