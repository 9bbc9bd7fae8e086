"""`mizan listen`: receives the deliveries of an application on this machine, verifies, prints and forwards them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from signal import SIGINT, SIGTERM, default_int_handler, signal
from time import monotonic
from typing import Any, TypeGuard
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

import click
import requests

from mizan.app.applications import application_argument, application_option
from mizan.app.webhooks import change_webhook_url
from mizan.command_context import command_settings, open_database
from mizan.sandbox import check_is_test_application
from mizan.signature import is_signed
from shared.domain.applications.registry import get_application
from shared.domain.applications.webhook_secrets import current_secret_version, decrypt_webhook_secret
from shared.domain.deliveries.signing import SIGNATURE_HEADER
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.encryption import SecretBox
from shared.platform.errors import RefusedError
from shared.platform.http_session import open_http_session
from shared.platform.keys import open_keys
from shared.platform.outbound_url import WebhookUrl, check_webhook_url
from shared.platform.sanitize import sanitize_text
from shared.platform.settings import Environment, KeyPurpose, Settings
from shared.platform.strict_json import InvalidJsonError, parse_json_object

_PATH = "/mizan-listen/"
_REPLACED = "replaced"
_MAX_BODY = 1 << 20
_MAX_RESPONSE = 16 * 1024
"""As much as is recorded of a response."""
_FORWARD_TIMEOUT_S = 10.0
"""As long as Mizan waits for a response."""
_NOT_FORWARDED = frozenset({"host", "content-length", "connection", "transfer-encoding", "accept-encoding"})
_OK, _UNAUTHORIZED, _NOT_FOUND, _TOO_LARGE, _BAD_GATEWAY, _UNAVAILABLE = 200, 401, 404, 413, 502, 503


class ListenRefusedError(RefusedError):
    """The webhook URL of the application cannot be replaced."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "text/plain"
    problem: str | None = None
    """Why there is no response of the endpoint."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Handles the requests that Mizan sends."""

    read_secrets: Callable[[], list[str]]
    forward_to: str | None
    session: requests.Session = field(default_factory=open_http_session)

    def handle(self, headers: dict[str, str], body: bytes) -> Response:
        """Verify, forward and print a delivery. Return what Mizan gets as the response."""
        started = monotonic()
        try:
            secrets = self.read_secrets()
        except DatabaseUnavailableError:
            click.secho("the database does not respond: a delivery could not be verified", fg="red", err=True)
            return Response(_UNAVAILABLE)
        is_valid = is_signed(body, headers.get(SIGNATURE_HEADER.lower(), ""), secrets)
        response = Response(_UNAUTHORIZED, b"invalid signature")
        if is_valid:
            response = Response(_OK) if self.forward_to is None else self._forward(headers, body)
        _print_delivery(body, response, is_valid=is_valid, duration_s=monotonic() - started)
        return response

    def _forward(self, headers: dict[str, str], body: bytes) -> Response:
        """Send the same bytes with the same headers. A redirect is not followed, as Mizan follows none (§6.6)."""
        assert self.forward_to is not None
        kept = {name: value for name, value in headers.items() if name not in _NOT_FORWARDED}
        try:
            with self.session.post(
                self.forward_to,
                data=body,
                headers=kept,
                timeout=_FORWARD_TIMEOUT_S,
                allow_redirects=False,
                stream=True,
            ) as answer:
                content = next(answer.iter_content(_MAX_RESPONSE), b"")
        except requests.RequestException as error:
            return Response(
                _BAD_GATEWAY, problem=f"{self.forward_to} does not respond ({type(error).__name__})"
            )
        return Response(answer.status_code, content, answer.headers.get("Content-Type", "text/plain"))


@click.command("listen")
@application_option
@click.option("--forward-to", metavar="URL", help="Your endpoint, such as http://127.0.0.1:3000/webhooks.")
def listen_command(application_id: UUID, forward_to: str | None) -> None:
    """Receive the deliveries of a test application here, until Ctrl-C: verify, print and forward them.

    It replaces the application's webhook URL meanwhile, and restores it afterwards, also if it is killed. Your endpoint
    gets the same bytes and headers, and Mizan gets its response, so that failures are retried. Without --forward-to
    every delivery is accepted. Refused in production.
    """
    with command_settings() as settings:
        _check_settings(settings, forward_to)
        box = open_keys(settings).open_box(KeyPurpose.WEBHOOK_SECRETS)
        with open_database(settings) as database:
            listener = Listener(lambda: _read_secrets(database, box, application_id), forward_to)
            with database.transaction() as connection:
                check_is_test_application(connection, application_id)
            listener.read_secrets()  # reports an unknown application, or a key that is missing
            before = _find_url(database, application_id)
            with (
                serve_listener(listener, before) as (server, url),
                _replaced_url(database, application_id, url),
            ):
                click.echo(f"listening for webhooks of {application_id}; Ctrl-C ends it", err=True)
                for number in (SIGINT, SIGTERM):
                    signal(number, default_int_handler)
                with suppress(KeyboardInterrupt):
                    server.serve_forever()


def _check_settings(settings: Settings, forward_to: str | None) -> None:
    if settings.environment is Environment.PRODUCTION or not settings.webhooks.allow_private:
        raise ListenRefusedError(
            "refused: webhooks go to this machine only with WEBHOOK_ALLOW_PRIVATE, as in `make run`"
        )
    if forward_to is not None:
        check_webhook_url(forward_to, allow_private=True)


@contextmanager
def serve_listener(
    listener: Listener, before: str | None
) -> Iterator[tuple[ThreadingHTTPServer, WebhookUrl]]:
    """Yield a server on a free port of this machine, and the URL that it responds to.

    The URL contains the one that it replaces, so that it can be restored whatever happens.
    """
    path = f"{_PATH}{token_urlsafe(12)}?{urlencode({_REPLACED: before or ''})}"

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path != path:
                self._respond(Response(_NOT_FOUND))
            elif not length.isdecimal() or int(length) > _MAX_BODY:
                self._respond(Response(_TOO_LARGE))
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._respond(listener.handle(headers, self.rfile.read(int(length))))

        def _respond(self, response: Response) -> None:
            self.send_response(response.status)
            self.send_header("Content-Type", response.content_type)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        def log_message(self, *_arguments: Any) -> None:
            """Each delivery is printed by the listener."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        url = f"http://127.0.0.1:{server.server_address[1]}{path}"
        yield server, check_webhook_url(url, allow_private=True)


def _find_url(database: Database, application_id: UUID) -> str | None:
    """Return the webhook URL to restore. Raises ListenRefusedError if another `mizan listen` runs."""
    with database.transaction() as connection:
        url = get_application(connection, application_id).webhook_url
    if not _is_of_listener(url):
        return url
    with open_http_session() as session:
        try:
            session.get(url, timeout=2)
        except requests.RequestException:
            return _replaced_by(url)  # it ended together with the database
    raise ListenRefusedError("another `mizan listen` runs for this application")


def _is_of_listener(url: str | None) -> TypeGuard[str]:
    return url is not None and urlsplit(url).path.startswith(_PATH)


def _replaced_by(url: str) -> WebhookUrl | None:
    before = parse_qs(urlsplit(url).query).get(_REPLACED)
    return WebhookUrl(before[0]) if before else None


@contextmanager
def _replaced_url(database: Database, application_id: UUID, url: WebhookUrl) -> Iterator[None]:
    """Set the webhook URL. A process of its own restores it when this one ends in any way, even by `kill -9`."""
    command = [sys.executable, "-m", "mizan", "restore-webhook-url", str(application_id)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as restorer:
        assert restorer.stdin is not None
        restorer.stdin.write(f"{url}\n".encode())
        restorer.stdin.flush()
        with database.transaction() as connection:
            change_webhook_url(connection, application_id, url)
        yield


@click.command("restore-webhook-url", hidden=True)
@application_argument
def restore_command(application_id: UUID) -> None:
    """Wait until standard input ends. Then restore what `mizan listen` replaced with the URL in its first line."""
    url = sys.stdin.readline().strip()
    sys.stdin.read()
    with (
        command_settings() as settings,
        open_database(settings) as database,
        database.transaction() as connection,
    ):
        if get_application(connection, application_id).webhook_url == url:  # nobody has set another one
            change_webhook_url(connection, application_id, _replaced_by(url))


def _read_secrets(database: Database, box: SecretBox, application_id: UUID) -> list[str]:
    """Return the current secret and the one before it, which deliveries from before a roll are signed with."""
    with database.transaction() as connection, connection.cursor() as cursor:
        get_application(connection, application_id)
        current = current_secret_version(cursor, application_id)
        versions = [] if current is None else [current.number, current.number - 1]
        return [
            decrypt_webhook_secret(connection, box, application_id, version).text
            for version in versions
            if version > 0
        ]


def _print_delivery(body: bytes, response: Response, *, is_valid: bool, duration_s: float) -> None:
    """Print a delivery in one line. What it contains must not control the terminal."""
    try:
        content = parse_json_object(body)
        data = content.get("data")
        intent = data.get("uuid") if isinstance(data, dict) else None
        told = f"{content.get('event')}  intent {intent}  delivery {content.get('id')}"
    except InvalidJsonError:
        told = "not JSON"
    is_success = response.status // 100 == 2
    verified = (
        click.style("signature valid", fg="green") if is_valid else click.style("signature INVALID", fg="red")
    )
    result = response.problem or f"response {response.status} in {duration_s * 1000:.0f} ms"
    click.echo(
        f"{datetime.now().astimezone():%H:%M:%S}  {sanitize_text(told)}  {verified}  "
        + click.style(result, fg="green" if is_success else "red")
    )
