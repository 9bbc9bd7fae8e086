"""Every route of the sandbox needs credentials. What `/pay` asks the API is in test_merchant_access.py."""

import hashlib
import hmac

import pytest
import requests

from services.sandbox.app import make_app
from shared.platform.settings import PublicUrls, SandboxSettings
from shared.platform.tokens import sandbox_authorization
from tests.sandbox.running_sandbox import CREDENTIALS, SECRET, RunningSandbox, charge_body

OPERATIONS = {"/healthz", "/readyz", "/metrics"}
RIGHT = CREDENTIALS["Authorization"]
ROUTES = [
    ("POST", "/charges", 422),
    ("GET", "/charges", 422),
    ("GET", "/charges/ch_none", 404),
    ("POST", "/charges/ch_none/confirm", 422),
    ("POST", "/charges/ch_none/resend", 404),
    ("POST", "/charges/ch_none/settle", 422),
]
WRONG = [
    None,
    "",
    RIGHT.removeprefix("Bearer "),
    f"Basic {RIGHT.removeprefix('Bearer ')}",
    RIGHT[:-1],
    f"{RIGHT}0",
    f"Bearer {SECRET}",
    sandbox_authorization("another-secret-of-a-bank"),
    "Bearer \xe9",
]


@pytest.mark.parametrize(("verb", "path", "status"), ROUTES)
def test_charges_need_the_token(sandbox: RunningSandbox, verb: str, path: str, status: int) -> None:
    """Without it, or with another one, the response is 401; with it, the request is looked at."""
    for wrong in WRONG:
        headers = {} if wrong is None else {"Authorization": wrong.encode("latin-1")}
        response = requests.request(verb, sandbox.url + path, headers=headers, timeout=10)
        assert (response.status_code, list(response.json())) == (401, ["message"]), wrong
        assert response.headers["WWW-Authenticate"] == "Bearer"
    assert requests.request(verb, sandbox.url + path, headers=CREDENTIALS, timeout=10).status_code == status


def test_refused_charge_is_not_recorded(sandbox: RunningSandbox) -> None:
    body = charge_body()
    assert requests.post(f"{sandbox.url}/charges", json=body, timeout=10).status_code == 401
    assert sandbox.find(attempt=body["attempt"]) == []


def test_pay_takes_the_credentials_of_merchants_only(sandbox: RunningSandbox) -> None:
    """The token of the charges is not enough, and nothing is sent to the API without both headers."""
    for headers in ({}, CREDENTIALS, {"X-API-Key": "pk_some"}):
        assert requests.post(f"{sandbox.url}/pay", headers=headers, timeout=10).status_code == 401


def test_all_other_routes_are_those_of_operations(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A new route is added to ROUTES above."""
    ledger = tmp_path_factory.mktemp("routes") / "ledger"
    app = make_app(SandboxSettings(secret=SECRET, ledger=ledger), PublicUrls(), None)
    known = {path.replace("ch_none", "<charge_id>") for _, path, _ in ROUTES}
    assert {rule.rule for rule in app.url_map.iter_rules()} == known | OPERATIONS | {"/pay"}


def test_token_is_derived_from_the_secret_and_signs_nothing_else() -> None:
    """docs/sandbox.md makes it with openssl."""
    derived = hmac.new(SECRET.encode(), b"charges of the sandbox", hashlib.sha256).hexdigest()
    assert sandbox_authorization(SECRET) == f"Bearer {derived}"
