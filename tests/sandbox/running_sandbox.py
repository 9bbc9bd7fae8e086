"""The sandbox as real processes that tests can use, kill and restart."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import requests

from shared.platform.tokens import sandbox_authorization
from stack.ports import find_free_ports
from tests.logs import attach_log
from tests.waiting import eventually

SECRET = "the-bank-and-we-know-it"
CREDENTIALS = {"Authorization": sandbox_authorization(SECRET)}
SILENCE_S = 2.0
"""Long enough for a busy machine to do something else meanwhile."""


class RunningSandbox:
    """`python -m services.sandbox` with its worker. The ledger is kept between runs."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.port = find_free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = directory / "log"
        self.ledger = directory / "books" / "ledger.sqlite"
        self._environment = {
            **os.environ,  # noqa: TID251  a process of its own needs PATH and the like
            # Nothing listens there: the sandbox connects to neither.
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "API_PUBLIC_URL": "http://127.0.0.1:1",
            "HTTP_PORT": str(self.port),
            "MIZAN_LOG_FORMAT": "json",
            "SANDBOX_SECRET": SECRET,
            "SANDBOX_LEDGER": str(self.ledger),
            "SANDBOX_SILENCE": str(SILENCE_S),
            **environment,
        }

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        attach_log(self.log)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "services.sandbox"], env=self._environment, stdout=log, stderr=log
            )
        try:
            eventually(lambda: process.poll() is not None or self._says_ready())
            assert process.poll() is None, self.log.read_text()
            yield process
        finally:
            process.terminate()
            process.wait(30)

    def refusal(self) -> tuple[int, str]:
        """Return the exit code and the output of a start that fails."""
        ended = subprocess.run(
            [sys.executable, "-m", "services.sandbox"],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return ended.returncode, ended.stderr

    def charge(self, method: str = "card", **fields: Any) -> requests.Response:
        return self.post("/charges", charge_body(method, **fields))

    def confirm(self, charge: dict[str, Any], number: int, code: str) -> requests.Response:
        return self.post(f"/charges/{charge['id']}/confirm", {"number": number, "code": code})

    def settle(self, charge: dict[str, Any], outcome: str) -> requests.Response:
        return self.post(f"/charges/{charge['id']}/settle", {"outcome": outcome})

    def find(self, **query: str) -> list[dict[str, Any]]:
        answer = self.get("/charges", **query)
        assert answer.status_code == 200, answer.text
        charges: list[dict[str, Any]] = answer.json()["charges"]
        return charges

    def post(self, path: str, body: object) -> requests.Response:
        return requests.post(f"{self.url}{path}", json=body, headers=CREDENTIALS, timeout=20)

    def get(self, path: str, **query: str) -> requests.Response:
        return requests.get(f"{self.url}{path}", params=query, headers=CREDENTIALS, timeout=20)

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines with this event."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def _says_ready(self) -> bool:
        try:
            return self.get("/readyz").ok
        except requests.ConnectionError:
            return False


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGKILL to the parent and its worker."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        member.kill()
    process.wait()
    eventually(lambda: not any(_lives(member) for member in family[1:]))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def charge_body(method: str = "card", **fields: Any) -> dict[str, Any]:
    """Return a charge, changed by `fields`. A card is paid at once; a wallet needs a code."""
    details: dict[str, Any] = (
        {"card": card("4242424242424242")} if method == "card" else {"wallet": wallet("0912345678")}
    )
    return {
        "attempt": str(uuid4()),
        "intent": str(uuid4()),
        "method": method,
        "amount": 25_000,
        "currency": "LYD",
        "notify_url": "http://127.0.0.1:1/nobody",
        **details,
        **fields,
    }


def card(number: str, expiry_month: int = 12, expiry_year: int = 2199) -> dict[str, Any]:
    return {
        "number": number,
        "expiry_month": expiry_month,
        "expiry_year": expiry_year,
        "security_code": "737",
    }


def wallet(phone: str, birth_year: int | None = None) -> dict[str, Any]:
    return {"phone": phone, "birth_year": birth_year}
