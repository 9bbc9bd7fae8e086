"""No card number, security code, phone, birth year, one-time code or credential is written anywhere."""

import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from tests.sandbox.running_sandbox import CREDENTIALS, RunningSandbox, card, charge_body, wallet

CARD = "4242424242424242"
CODE_CARD = "6395043835180860"
PHONES = ("0913632323", "0921234567", "0912345000", "0912345995", "0929999999")
SECURITY_CODE, BIRTH_YEAR = "8642", 1987
CODES = ("111111", "1111", "987654")
MERCHANT = {"X-API-Key": "pk_Ohl7Aeg2ahx4ree1", "Authorization": "Bearer at_iNg5ooth0Iey9Eph"}


@pytest.mark.stack
def test_neither_ledger_nor_log_contains_what_a_customer_typed(tmp_path: Path) -> None:
    """Whether it is paid, declined, confirmed, refused, malformed or part of the path."""
    sandbox = RunningSandbox(tmp_path)
    with sandbox.running():
        _use_everything(sandbox)
        written = _bytes_beside(sandbox.ledger)
        assert len(_cells(sandbox.ledger)) > 50
        short = {SECURITY_CODE, str(BIRTH_YEAR), *CODES}
        assert not short & {str(cell) for cell in _cells(sandbox.ledger)}
    logged = sandbox.log.read_bytes()
    assert logged.count(b"request answered") > 10
    for secret in (CARD, CODE_CARD, *PHONES, *CODES[::2], *MERCHANT.values(), *CREDENTIALS.values()):
        # Not even a part of it.
        assert secret[-8:].encode() not in written
        assert secret[-8:].encode() not in logged
    assert not [name for name in (b"security_code", b"birth_year", b"wallet", b"phone=") if name in logged]


def _use_everything(sandbox: RunningSandbox) -> None:
    typed = {"security_code": SECURITY_CODE}
    sandbox.charge(card=card(CARD) | typed)
    by_card = sandbox.charge(card=card(CODE_CARD) | typed).json()
    by_wallet = [
        sandbox.charge(method, wallet=wallet(phone, BIRTH_YEAR)).json()
        for phone in PHONES
        for method in ("sadad", "adfali")
    ]
    for charge in (by_card, *by_wallet):
        for number, code in enumerate(CODES):
            sandbox.confirm(charge, number, code)
    sandbox.settle(by_card, "paid")
    sandbox.charge(card=card(CARD) | {"expiry_month": CARD})
    sandbox.post("/charges", {**charge_body(), "method": PHONES[0], "attempt": CARD})
    _pay(sandbox, card=CARD, **typed)
    _pay(sandbox, wallet="sadad", phone=PHONES[0], code=CODES[2])
    sandbox.get(f"/charges/{CARD}")
    sandbox.get("/charges", intent=PHONES[0])
    malformed = f'{{"card": {{"number": "{CARD}"'.encode()
    requests.post(f"{sandbox.url}/charges", data=malformed, headers=CREDENTIALS, timeout=10)


def _pay(sandbox: RunningSandbox, **fields: str) -> None:
    body = {"intent": str(uuid4()), **fields}
    response = requests.post(f"{sandbox.url}/pay", json=body, headers=MERCHANT, timeout=20)
    assert response.status_code == 502  # there is no API


def _bytes_beside(ledger: Path) -> bytes:
    """Return the bytes of the ledger, and of the files that SQLite keeps beside it while it is open."""
    files = sorted(ledger.parent.iterdir())
    assert ledger.with_name(ledger.name + "-wal") in files
    return b"".join(file.read_bytes() for file in files)


def _cells(ledger: Path) -> list[object]:
    with closing(sqlite3.connect(ledger)) as connection:
        tables = [
            name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
        ]
        rows = [row for name in tables for row in connection.execute(f'select * from "{name}"')]
    return [cell for row in rows for cell in row]
