"""The production overlay with a test certificate authority: https only, and no demo services."""

import http.client
import json
import shutil
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from stack.ports import find_free_ports
from tests.compose.programs import ProgramFailedError, run
from tests.compose.project import ROOT, Project, Projects
from tests.webhooks.certificates import Authority

FILES = ("docker-compose.yml", "docker-compose.production.yml")
API, PAY, DASHBOARD = (f"{name}.mizan.example" for name in ("api", "pay", "dashboard"))
ABSENT = {"shop", "demo", "proxy"}


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: int
    headers: Message
    text: str


@dataclass(frozen=True, slots=True)
class PublicClient:
    """Sends requests from outside: by host name, to the ports that the proxy publishes."""

    project: Project
    authority: Path

    def https(
        self, host: str, path: str, *, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a GET request, or a POST request with `body`."""
        context = ssl.create_default_context(cafile=str(self.authority))
        connection = http.client.HTTPSConnection(host, context=context, timeout=20)
        plain = socket.create_connection(("127.0.0.1", self._port("PUBLIC_HTTPS_PORT")), timeout=20)
        connection.sock = context.wrap_socket(plain, server_hostname=host)
        return _request(connection, path, body, headers or {})

    def http(self, host: str, path: str) -> HttpResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port("PUBLIC_HTTP_PORT"), timeout=20)
        return _request(connection, path, None, {"Host": host})

    def _port(self, name: str) -> int:
        return int(self.project.settings[name])


def _request(
    connection: http.client.HTTPConnection, path: str, body: str | None, headers: Mapping[str, str]
) -> HttpResponse:
    connection.request("GET" if body is None else "POST", path, body, dict(headers))
    response = connection.getresponse()
    result = HttpResponse(response.status, response.headers, response.read().decode())
    connection.close()
    return result


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Secrets created as an operator does."""
    directory = tmp_path_factory.mktemp("secrets")
    run(sys.executable, ROOT / "deploy" / "make_secrets.py", directory)
    return directory


@pytest.fixture(scope="module")
def client(projects: Projects, secrets: Path, tmp_path_factory: pytest.TempPathFactory) -> PublicClient:
    tls = tmp_path_factory.mktemp("tls")
    authority = Authority(tls)
    authority.receiver(API, PAY, DASHBOARD)
    for name in ("certificate.pem", "key.pem"):
        shutil.copy(tls / "receiver.pem", tls / name)
        # The proxy runs under another account.
        (tls / name).chmod(0o444)
    tls.chmod(0o755)
    for parent in (*tls.parents, *secrets.parents):
        if parent.is_relative_to(tmp_path_factory.getbasetemp().parent):
            parent.chmod(0o755)
    http_port, https_port = find_free_ports(2)
    files: dict[str, Any] = {f"{path.name.upper()}_FILE": str(path) for path in secrets.iterdir()}
    project = projects.make(
        files=FILES,
        API_PUBLIC_URL=f"https://{API}",
        CHECKOUT_PUBLIC_URL=f"https://{PAY}",
        DASHBOARD_PUBLIC_URL=f"https://{DASHBOARD}",
        PUBLIC_BIND="127.0.0.1",
        PUBLIC_HTTP_PORT=str(http_port),
        PUBLIC_HTTPS_PORT=str(https_port),
        PROXY_CERTIFICATES="files",
        PROXY_TLS_DIR=str(tls),
        **files,
    )
    project.up()
    return PublicClient(project, authority.ca_file)


def test_production_has_no_demo_services(client: PublicClient) -> None:
    assert ABSENT & {container.service for container in client.project.containers()} == set()


def test_payment_intent_is_created_by_https(client: PublicClient) -> None:
    """An operator's application creates an intent, its checkout page opens, and cookies are Secure."""
    made = json.loads(client.project.command_line("app", "create", "--name", "Shop", "--json"))
    headers = {"X-API-Key": made["api_key"], "Authorization": f"Bearer {made['access_token']}"}
    body = json.dumps({"merchant_reference": "1", "amount": 25_000, "currency": "LYD"})
    answer = client.https(API, "/api/v1/payment-intents", body=body, headers=headers)
    assert answer.status == 201
    assert answer.headers["Strict-Transport-Security"]
    checkout_url = json.loads(answer.text)["data"]["checkout_url"]
    assert checkout_url.startswith(f"https://{PAY}/")
    page = client.https(PAY, checkout_url.removeprefix(f"https://{PAY}"))
    assert page.status == 200
    signing_in = client.https(DASHBOARD, "/sign-in")
    assert signing_in.status == 200
    assert "Secure" in signing_in.headers["Set-Cookie"]


def test_documentation_is_served(client: PublicClient) -> None:
    for lang, title in (("en", "Accept a payment"), ("ar", "استقبال دفعة")):
        page = client.https(API, f"/docs/{lang}/guides/payments/")
        assert (page.status, f"<title>{title}" in page.text) == (200, True)


def test_of_the_sandbox_only_the_payment_of_test_intents_is_reached(client: PublicClient) -> None:
    refused = client.https(API, "/sandbox/pay", body="{}")
    assert (refused.status, "X-API-Key and Authorization" in refused.text) == (401, True)
    for path in ("/sandbox/pay", "/sandbox/charges", "/sandbox/pay/../charges", "/charges"):
        assert client.https(API, path).status == 404
    for path in ("/sandbox/charges", "/sandbox/pay/", "/charges", "/pay"):
        assert client.https(API, path, body="{}").status == 404


def test_plain_http_is_redirected_to_https(client: PublicClient) -> None:
    """Operations pages and unknown host names are not served."""
    answer = client.http(API, "/api/v1/payment-intents")
    assert answer.status in {301, 308}
    assert answer.headers["Location"].startswith(f"https://{API}/")
    assert client.https(API, "/metrics").status == 404
    unknown = client.http("somebody.else.example", "/")
    assert (unknown.status // 100, unknown.text) == (3, "")
    with pytest.raises(ssl.SSLError):
        client.https("somebody.else.example", "/")


def test_neither_docker_inspect_nor_logs_contain_secrets(client: PublicClient, secrets: Path) -> None:
    exposed = json.dumps([container.facts for container in client.project.containers()])
    exposed += client.project.run("logs", "--no-color")
    for path in secrets.iterdir():
        assert path.read_text().strip() not in exposed, path.name
    for password in json.loads((secrets / "role_passwords").read_text()).values():
        assert password not in exposed


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("API_PUBLIC_URL", f"http://{API}"), ("WEBHOOK_ALLOW_PRIVATE", "true")],
)
def test_wrong_production_settings_are_refused(
    client: PublicClient, name: str, wrong: str, tmp_path: Path
) -> None:
    """The error names the wrong setting."""
    settings = {**client.project.settings, name: wrong}
    with pytest.raises(ProgramFailedError, match=name):
        replace(client.project, settings=settings).run(
            "run", "--rm", "--no-deps", "-T", "-e", f"{name}={wrong}", "api"
        )


def test_missing_public_url_is_refused(client: PublicClient) -> None:
    settings = {**client.project.settings, "CHECKOUT_PUBLIC_URL": ""}
    with pytest.raises(ProgramFailedError, match="CHECKOUT_PUBLIC_URL"):
        replace(client.project, settings=settings).run("config", "-q")
