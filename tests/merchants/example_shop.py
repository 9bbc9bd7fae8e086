"""Runs an example shop of docs/examples: installs the client, starts its command, and sends webhooks."""

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


class ExampleShop:
    def __init__(self, language: Language, directory: Path) -> None:
        self.language = language
        self.directory = directory
        self.port = find_free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment: dict[str, str] = {}
        copy_files(directory, language.file)
        language.install_client(directory)

    @contextmanager
    def open(self, *, api_url: str, api_key: str, access_token: str, secrets: str) -> Iterator[None]:
        self._environment = {
            **os.environ,  # noqa: TID251  the process needs HOME and the like
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
            eventually(lambda: process.poll() is not None or self._is_answering())
            assert process.poll() is None, self.log
            yield
        finally:
            process.terminate()
            process.wait(30)

    def recheck(self) -> str:
        """Run the recheck command and return its output."""
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
        """Return the page that a returning customer sees."""
        response = requests.get(f"{self.url}/orders/{reference}", timeout=30)
        assert response.status_code == 200, response.text
        return response.text

    def receive(self, body: bytes, signature: bytes | None) -> int:
        """Send these bytes and return the status. The timeout is half of Mizan's."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.putrequest("POST", HOOK)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        if signature is not None:
            connection.putheader("Service-Signature", signature)
        connection.endheaders(body)
        try:
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def send_event(
        self, intent: str, secret: str, event: str = "payment_intent.succeeded", delivery_id: str = ""
    ) -> int:
        """Send a signed event, with a new id unless one is given, and return the status."""
        body = build_body(delivery_id or str(uuid4()), event, intent)
        return self.receive(body, signed(body, secret))

    def files(self, table: str) -> set[str]:
        return {entry.name for entry in (self.directory / table).iterdir()}

    def settled(self) -> bool:
        return not self.files("inbox")

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def reset(self) -> None:
        """Remove all orders between two tests."""
        eventually(self.settled)
        for table in _TABLES:
            for entry in (self.directory / table).iterdir():
                entry.unlink()
        with (self.directory / "log").open("r+b") as log:
            log.truncate(0)

    def _is_answering(self) -> bool:
        try:
            return requests.get(self.url, timeout=5).status_code == 404
        except (requests.ConnectionError, requests.Timeout):
            return False


def signed(body: bytes, secret: str) -> bytes:
    return sign_body(body, signing_key(secret)).encode()
