"""`mizan listen`: forwards deliveries to a real endpoint, and restores the webhook URL however it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import psutil
import pytest
import requests

from mizan.listen import Listener, serve_listener
from shared.domain.applications.registry import NewApplication, create_application, set_webhook_url
from shared.domain.applications.webhook_secrets import roll_webhook_secret
from shared.domain.deliveries.signing import SIGNATURE_HEADER, sign_body, signing_key
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl
from stack.ports import find_free_ports
from tests.mizan.conftest import KEY, Mizan
from tests.waiting import eventually
from tests.webhooks.receivers import Receiver, Reply

SECRET = "whsec_test"
OWN_URL = WebhookUrl("https://shop.example.ly/hooks?token=a&b=c")
BODY = (
    b'{"id":"01a1eb86-dd87-788c-85e1-cbc64413633a","event":"payment_intent.succeeded","data":{"uuid":"u-1"}}'
)


class Listening:
    """An application, and `mizan listen` for it."""

    def __init__(self, database: Database, environment: dict[str, str], log: Path) -> None:
        self._database = database
        self._environment = {**os.environ, **environment, "WEBHOOK_ALLOW_PRIVATE": "true"}  # noqa: TID251  PATH
        self._log = log
        with database.transaction() as connection:
            new = NewApplication("shop", webhook_url=OWN_URL)
            created = create_application(connection, SecretBox((KEY,)), new)
        self.application: UUID = created.id
        self.secret = created.webhook_secret

    @contextmanager
    def running(self, *words: str, own_url: str | None = OWN_URL) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", "mizan", "listen", "--app", str(self.application), *words]
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        try:
            eventually(lambda: process.poll() is not None or self.url() != own_url)
            assert process.poll() is None, self.printed
            yield process
        finally:
            process.terminate()
            process.wait(30)

    @property
    def printed(self) -> str:
        return self._log.read_text()

    def url(self) -> str | None:
        with self._database.cursor() as cursor:
            row = cursor.execute(
                "select webhook_url from applications where id = %s", (self.application,)
            ).fetchone()
        assert row is not None
        return None if row[0] is None else str(row[0])

    def set_url(self, url: WebhookUrl | None) -> None:
        with self._database.transaction() as connection:
            set_webhook_url(connection, self.application, url)

    def roll_secret(self) -> str:
        with self._database.transaction() as connection:
            return roll_webhook_secret(connection, SecretBox((KEY,)), self.application).text


@pytest.fixture
def listening(database: Database, environment: dict[str, str], tmp_path: Path) -> Listening:
    return Listening(database, environment, tmp_path / "log")


@pytest.fixture
def endpoint() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@contextmanager
def receiving(
    *secrets: str, forward_to: str | None = None, read_secrets: Callable[[], list[str]] | None = None
) -> Iterator[str]:
    """Yield the URL of a listener in this process."""
    listener = Listener(read_secrets or (lambda: list(secrets or (SECRET,))), forward_to)
    with serve_listener(listener, OWN_URL) as (server, url), _serving(server):
        yield url


@contextmanager
def _serving(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def send(
    url: str, body: bytes = BODY, secret: str = SECRET, headers: Mapping[str, str] = MappingProxyType({})
) -> requests.Response:
    signed = {"Content-Type": "application/json", SIGNATURE_HEADER: sign_body(body, signing_key(secret))}
    return requests.post(url, data=body, headers={**signed, **headers}, timeout=20)


def test_delivery_is_verified_printed_and_forwarded_byte_for_byte(
    endpoint: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mizan gets the endpoint's response."""
    endpoint.answer = Reply(418, b"no coffee")
    with receiving(forward_to=endpoint.url) as url:
        response = send(url, headers={"X-Extra": "kept"})
        assert (response.status_code, response.content) == (418, b"no coffee")
    (received,) = endpoint.requests
    assert received.body == BODY
    assert received.headers["service-signature"] == sign_body(BODY, signing_key(SECRET))
    assert received.headers["x-extra"] == "kept"
    line = capsys.readouterr().out
    assert "payment_intent.succeeded  intent u-1  delivery 01a1eb86-dd87-788c-85e1-cbc64413633a" in line
    assert "signature valid" in line
    assert "response 418 in " in line


def test_every_delivery_is_accepted_without_an_endpoint() -> None:
    with receiving() as url:
        assert send(url).status_code == 200


def test_both_secrets_are_valid_during_a_roll(endpoint: Receiver) -> None:
    with receiving("whsec_new", "whsec_old", forward_to=endpoint.url) as url:
        assert [send(url, secret=one).status_code for one in ("whsec_old", "whsec_new")] == [200, 200]


def _status_for_length(url: str, content_length: str) -> int:
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.netloc, timeout=20)) as connection:
        connection.request("POST", f"{parts.path}?{parts.query}", BODY, {"Content-Length": content_length})
        return connection.getresponse().status


def test_forged_delivery_is_refused_and_not_forwarded(
    endpoint: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiving(forward_to=endpoint.url) as url:
        assert send(url, secret="whsec_of_somebody_else").status_code == 401
        assert requests.post(url, data=BODY, timeout=20).status_code == 401
        assert requests.post(url.partition("?")[0], data=BODY, timeout=20).status_code == 404
        assert [_status_for_length(url, length) for length in ("-1", "many", str(2 << 20))] == [413, 413, 413]
    assert endpoint.requests == []
    assert "signature INVALID" in capsys.readouterr().out


@pytest.mark.parametrize("body", [b"", b"\x1b[2J", b"[]", b'{"event": "\x1b[31m", "data": 5}', b"\xff" * 100])
def test_strange_body_is_printed_in_one_harmless_line(
    endpoint: Receiver, capsys: pytest.CaptureFixture[str], body: bytes
) -> None:
    with receiving(forward_to=endpoint.url) as url:
        assert send(url, body).status_code == 200
    assert [received.body for received in endpoint.requests] == [body]
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "\x1b" not in printed


def test_endpoint_that_is_not_there_is_502_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    """So that Mizan tries again."""
    endpoint = f"http://127.0.0.1:{find_free_ports(1)[0]}/hooks"
    with receiving(forward_to=endpoint) as url:
        assert send(url).status_code == 502
    assert f"{endpoint} does not respond (ConnectionError)" in capsys.readouterr().out


def test_delivery_that_cannot_be_verified_is_not_forwarded(
    endpoint: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """The database does not respond. Mizan tries again later."""

    def fail() -> list[str]:
        raise DatabaseUnavailableError("gone")

    with receiving(forward_to=endpoint.url, read_secrets=fail) as url:
        assert send(url).status_code == 503
    assert endpoint.requests == []
    assert "the database does not respond" in capsys.readouterr().err


def test_redirect_is_not_followed() -> None:
    """§6.6: it counts as a failure."""
    paths: list[str] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as endpoint,
        _serving(endpoint),
        receiving(forward_to=f"http://127.0.0.1:{endpoint.server_address[1]}/hooks") as url,
    ):
        assert send(url).status_code == 307
    assert paths == ["/hooks"]


@pytest.mark.kills
def test_deliveries_of_a_rolled_secret_are_forwarded(listening: Listening, endpoint: Receiver) -> None:
    """The whole command: it reads the secrets of the application for each delivery."""
    with listening.running("--forward-to", endpoint.url):
        url = listening.url() or ""
        new = listening.roll_secret()
        assert [send(url, secret=one).status_code for one in (listening.secret, new, "whsec_x")] == [
            200,
            200,
            401,
        ]
    assert [received.body for received in endpoint.requests] == [BODY, BODY]
    assert listening.printed.count("signature valid") == 2


@pytest.mark.kills
@pytest.mark.parametrize(
    ("ending", "own_url"),
    [
        (signal.SIGINT, OWN_URL),
        (signal.SIGTERM, OWN_URL),
        (signal.SIGKILL, OWN_URL),
        (signal.SIGKILL, None),
    ],
)
def test_webhook_url_is_restored_however_it_ends(
    listening: Listening, ending: signal.Signals, own_url: WebhookUrl | None
) -> None:
    listening.set_url(own_url)
    with listening.running(own_url=own_url) as process:
        assert re.match(r"http://127\.0\.0\.1:\d+/mizan-listen/", listening.url() or "")
        process.send_signal(ending)
        process.wait(30)
        eventually(lambda: listening.url() == own_url)


@pytest.mark.kills
def test_url_that_somebody_set_meanwhile_is_kept(listening: Listening) -> None:
    other = WebhookUrl("https://other.example.ly/hooks")
    with listening.running() as process:
        restorer = psutil.Process(process.pid).children()[0]
        listening.set_url(other)
    eventually(lambda: not restorer.is_running())
    assert listening.url() == other


@pytest.mark.kills
def test_second_listener_is_refused_while_the_first_runs(
    listening: Listening, run: Mizan, database: Database
) -> None:
    with listening.running():
        answer = run("listen", "--app", str(listening.application), WEBHOOK_ALLOW_PRIVATE="true")
        assert answer.exit_code == 1
        assert "another `mizan listen` runs for this application" in answer.stderr
        assert "/mizan-listen/" in (listening.url() or "")


@pytest.mark.kills
def test_listener_restores_what_one_that_was_lost_has_replaced(listening: Listening) -> None:
    """The machine lost power: nobody could restore the URL."""
    with listening.running() as process:
        left = WebhookUrl(listening.url() or "")
        listener = psutil.Process(process.pid)
        for lost in (*listener.children(), listener):
            lost.kill()
        process.wait(30)
        assert listening.url() == left
    with listening.running(own_url=left):
        assert send(listening.url() or "", secret=listening.secret).status_code == 200
    eventually(lambda: listening.url() == OWN_URL)


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        ((), {"WEBHOOK_ALLOW_PRIVATE": "false"}, "WEBHOOK_ALLOW_PRIVATE"),
        (("--forward-to", "ftp://127.0.0.1/"), {}, "URL"),
        (("--app", str(uuid4())), {}, "application"),
    ],
)
def test_listening_is_refused_with_a_reason(
    listening: Listening, run: Mizan, words: tuple[str, ...], more: dict[str, str], message: str
) -> None:
    given = {"WEBHOOK_ALLOW_PRIVATE": "true", **more}
    answer = run("listen", "--app", str(listening.application), *words, **given)
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert listening.url() == OWN_URL
