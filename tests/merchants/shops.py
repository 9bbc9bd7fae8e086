"""A merchant's shop as docs/merchants.md has it: its files, copied; its command, typed; its webhooks, received."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

import requests

from shared.domain.deliveries.signing import build_body, sign_body, signing_key
from stack.ports import find_free_ports
from tests.merchants.document import copy_files
from tests.merchants.languages import PATH, Language
from tests.waiting import eventually

HOOK = "/webhooks/mizan"
_TABLES = ("intents", "inbox", "done", "paid")


class Shop:
    def __init__(self, language: Language, directory: Path) -> None:
        self.language = language
        self.directory = directory
        self.port = find_free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment: dict[str, str] = {}
        copy_files(directory, *language.files)

    @contextmanager
    def open(self, *, api_url: str, api_key: str, access_token: str, secrets: str) -> Iterator[None]:
        self._environment = {
            **os.environ,  # noqa: TID251  a process of its own needs HOME and the like
            "PATH": PATH,
            "MIZAN_URL": api_url,
            "MIZAN_API_KEY": api_key,
            "MIZAN_ACCESS_TOKEN": access_token,
            "MIZAN_WEBHOOK_SECRETS": secrets,
            "SHOP_URL": "https://shop.example",
            "PORT": str(self.port),
        }
        with (self.directory / "log").open("ab") as log:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {self.language.commands.serve}"],
                cwd=self.directory,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        try:
            eventually(lambda: process.poll() is not None or self._answers())
            assert process.poll() is None, self.log
            yield
        finally:
            process.terminate()
            process.wait(30)

    def recheck(self) -> str:
        """Returns what it says, on whichever stream."""
        done = subprocess.run(
            ["sh", "-c", self.language.commands.recheck],
            cwd=self.directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def pay(self, reference: str) -> requests.Response:
        return requests.post(f"{self.url}/orders/{reference}/pay", allow_redirects=False, timeout=30)

    def page(self, reference: str) -> str:
        """What a customer who returns is shown."""
        answer = requests.get(f"{self.url}/orders/{reference}", timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.text

    def receive(self, body: bytes, signature: bytes | None) -> int:
        """The answer to these bytes; as a time limit, half of what Mizan allows."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.putrequest("POST", HOOK)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        if signature is not None:
            connection.putheader("Service-Signature", signature)
        connection.endheaders(body)
        try:
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def hear(self, intent: str, secret: str, event: str = "payment_intent.succeeded", id: str = "") -> int:  # noqa: A002
        """The answer to a genuine event; a new one, unless it has an id."""
        body = build_body(id or str(uuid4()), event, intent)
        return self.receive(body, signed(body, secret))

    def files(self, table: str) -> set[str]:
        return {entry.name for entry in (self.directory / table).iterdir()}

    def settled(self) -> bool:
        return not self.files("inbox")

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def forget(self) -> None:
        """Between two tests: all orders are new again."""
        eventually(self.settled)
        for table in _TABLES:
            for entry in (self.directory / table).iterdir():
                entry.unlink()
        with (self.directory / "log").open("r+b") as log:
            log.truncate(0)

    def _answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=5).status_code == 404
        except (requests.ConnectionError, requests.Timeout):
            return False


def signed(body: bytes, secret: str) -> bytes:
    return sign_body(body, signing_key(secret)).encode()
