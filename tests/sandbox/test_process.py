"""The sandbox as processes: killed, stopped, and with invalid settings."""

import secrets
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
import requests

from services.sandbox.bank import Bank
from services.sandbox.ledger import Ledger, LedgerUnavailableError
from shared.platform.tokens import sandbox_authorization
from tests.sandbox.running_sandbox import SECRET, RunningSandbox, card, charge_body, kill
from tests.waiting import eventually


@pytest.mark.kills
@pytest.mark.stack
def test_acknowledged_charges_survive_a_kill(tmp_path: Path) -> None:
    """SIGKILL under load, and a restart on the same ledger: all charges are unchanged."""
    sandbox = RunningSandbox(tmp_path)
    told: list[dict[str, Any]] = []
    is_over = Event()

    def charge_until_killed(_caller: int) -> None:
        while not is_over.is_set():
            try:
                told.append(sandbox.charge().json())
            except requests.RequestException:
                return

    with ThreadPoolExecutor(8) as callers, sandbox.running() as process:
        code_wanted = sandbox.charge("sadad").json()
        wrong = sandbox.confirm(code_wanted, 1, "222222").json()
        done = callers.map(charge_until_killed, range(8))
        try:
            eventually(lambda: len(told) >= 50)
            kill(process)
        finally:
            is_over.set()
        list(done)
    with sandbox.running():
        found = [charge for one in told for charge in sandbox.find(attempt=one["attempt"])]
        assert found == told
        assert sandbox.confirm(code_wanted, 1, "111111").json() == wrong
        assert sandbox.confirm(code_wanted, 2, "111111").json()["status"] == "paid"
    with closing(sqlite3.connect(sandbox.ledger)) as ledger:
        assert ledger.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert ledger.execute("pragma journal_mode").fetchall() == [("wal",)]


@pytest.mark.stack
def test_stop_does_not_wait_for_delayed_responses_and_keeps_their_charges(tmp_path: Path) -> None:
    """The caller gets no response, and the charge is paid."""
    sandbox = RunningSandbox(tmp_path, SANDBOX_SILENCE="600")
    body = charge_body(card=card("4000000000000077"))
    with ThreadPoolExecutor(1) as caller:
        with sandbox.running() as process:
            silent = caller.submit(sandbox.post, "/charges", body)
            (charge,) = eventually(lambda: sandbox.find(attempt=body["attempt"]))
            began = monotonic()
            process.terminate()
            assert process.wait(20) == 0
            assert monotonic() - began < 10
        assert isinstance(silent.exception(), requests.RequestException)
    with closing(Ledger(sandbox.ledger)) as ledger:
        (kept,) = Bank(ledger).find_of_attempt(body["attempt"])
    assert kept.as_json() == charge
    assert kept.status == "paid"


def test_operations_pages_of_the_sandbox(sandbox: RunningSandbox) -> None:
    assert sandbox.get("/healthz").json() == {"status": "alive"}
    assert sandbox.get("/readyz").json() == {"status": "ready", "checks": {"ledger": "ok"}}
    assert 'service="sandbox"' in sandbox.get("/metrics").text


PRODUCTION = {
    "MIZAN_ENV": "production",
    "DATABASE_URL": "postgresql:///nothing?host=/nowhere",
    "SANDBOX_SECRET": secrets.token_urlsafe(32),
    "API_PUBLIC_URL": "https://api.mizan.example",
    "CHECKOUT_PUBLIC_URL": "https://pay.mizan.example",
    "DASHBOARD_PUBLIC_URL": "https://dashboard.mizan.example",
}
REFUSALS = [
    ({"SANDBOX_SECRET": ""}, "sandbox: SANDBOX_SECRET is not set"),
    ({**PRODUCTION, "SANDBOX_SECRET": ""}, "sandbox: SANDBOX_SECRET is not set"),
    ({**PRODUCTION, "SANDBOX_SECRET": SECRET}, "SANDBOX_SECRET: Is published or easy to guess"),
    ({**PRODUCTION, "SANDBOX_API_URL": "http://api.internal"}, "SANDBOX_API_URL: Would send credentials"),
]


@pytest.mark.stack
def test_sandbox_refuses_to_start_without_a_good_secret(tmp_path: Path) -> None:
    """It exits with the code for a wrong configuration and a clear message, and creates no ledger."""
    refused = [RunningSandbox(tmp_path, **environment) for environment, _ in REFUSALS]
    with ThreadPoolExecutor(len(refused)) as starters:
        refusals = list(starters.map(RunningSandbox.refusal, refused))
    for (code, told), (_, word) in zip(refusals, REFUSALS, strict=True):
        assert code == 78
        assert word in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.stack
def test_sandbox_starts_in_production(tmp_path: Path) -> None:
    """Test applications pay there, too. It has no database and no Kafka."""
    sandbox = RunningSandbox(tmp_path, **PRODUCTION)
    with sandbox.running():
        assert sandbox.get("/charges").status_code == 401
        token = {"Authorization": sandbox_authorization(PRODUCTION["SANDBOX_SECRET"])}
        assert requests.post(f"{sandbox.url}/charges", json=charge_body(), headers=token, timeout=10).ok


def test_file_that_is_not_a_ledger_is_refused_and_unchanged(tmp_path: Path) -> None:
    somebodys = tmp_path / "letters"
    somebodys.write_text("Dear bank, " * 100)
    with pytest.raises(LedgerUnavailableError, match="letters cannot be used: file is not a database"):
        Ledger(somebodys)
    assert somebodys.read_text() == "Dear bank, " * 100
