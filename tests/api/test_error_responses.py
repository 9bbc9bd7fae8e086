"""Errors are always JSON and have a request id (DESIGN §3)."""

from dataclasses import replace
from typing import NoReturn
from uuid import uuid4

import pytest
from werkzeug.test import TestResponse

from services.api.app import make_app
from shared.domain.intents import store
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.settings import Settings
from tests.api.conftest import PATH, MakeApplication, Merchant, data_of, merchant_of
from tests.constants import UNKNOWN_ID


def _assert_json_message(answer: TestResponse, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.content_type == "application/json"
    assert list(answer.get_json()) == ["message"]
    assert isinstance(answer.get_json()["message"], str)


def _open(merchant: Merchant, method: str, path: str) -> TestResponse:
    return merchant.client.open(path, method=method, headers=dict(merchant.headers))


def test_an_unknown_path_is_404(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """DESIGN §3: in JSON; §9: routes exist only under the base path of the version."""
    rows = [
        "/payment-intents",
        "/api/v1",
        "/api/v1/",
        "/api/v2/payment-intents",
        "/api/v1/refunds",
        f"{PATH}/",
    ]
    for path in rows:
        for method in ("GET", "POST"):
            with subtests.test(path=path, method=method):
                _assert_json_message(_open(merchant, method, path), 404)


def test_listing_updating_and_cancelling_are_405(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§1, §3: the API does not offer them. Allow lists the methods that exist, and the intent is unchanged."""
    made = data_of(merchant.create(), 201)
    one = f"{PATH}/{made['uuid']}"
    rows = [
        ("GET", PATH, {"POST"}),  # listing
        ("PUT", PATH, {"POST"}),
        ("PATCH", one, {"GET", "HEAD"}),  # updating
        ("PUT", one, {"GET", "HEAD"}),
        ("POST", one, {"GET", "HEAD"}),
        ("DELETE", one, {"GET", "HEAD"}),  # cancelling
        ("NONSENSE", one, {"GET", "HEAD"}),
    ]
    for method, path, allowed in rows:
        with subtests.test(method=method, path=path):
            answer = _open(merchant, method, path)
            _assert_json_message(answer, 405)
            assert set(answer.headers["Allow"].split(", ")) == allowed
    assert data_of(merchant.get(made["uuid"]), 200) == made


@pytest.mark.parametrize("path", [PATH, f"{PATH}/{UNKNOWN_ID}"])
def test_cors_preflight_is_405_without_cors_headers(merchant: Merchant, path: str) -> None:
    """§1: browsers must never call the API."""
    asked = {
        "Origin": "https://shop.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-api-key,authorization",
    }
    _assert_json_message(merchant.client.options(path, headers=asked), 405)
    for answer in (
        merchant.client.options(path, headers=asked),
        merchant.with_headers(Origin="https://shop.example").create(),
    ):
        assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RuntimeError("row 7 of table payment_intents is in the way"), 500),
        (DatabaseUnavailableError("no table payment_intents far and wide"), 503),
    ],
)
def test_internal_errors_are_reported_in_json_without_details(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """DESIGN §3: a 503 has Retry-After."""

    def fail(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(store, "create_or_find", fail)
    monkeypatch.setattr(store, "find_intent", fail)
    for answer in (merchant.create(), merchant.get(uuid4())):
        _assert_json_message(answer, status)
        assert "payment_intents" not in answer.text
        assert "Error:" not in answer.text
        assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)


def test_every_response_has_a_request_id(
    merchant: Merchant, other_merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN §3: the caller's id if it is valid, otherwise a new one."""

    def answers(caller: Merchant) -> list[TestResponse]:
        theirs = data_of(other_merchant.create(), 201 if caller is merchant else 200)["uuid"]
        made = [
            caller.create(merchant_reference=str(uuid4())),
            caller.create(amount=0),
            caller.post(" " * 100_000),
            caller.get(theirs),
            caller.get(uuid4()),
            caller.with_headers(X_API_Key=None).create(),
            caller.with_headers(Authorization=None).create(),
            _open(caller, "GET", "/nowhere"),
            _open(caller, "DELETE", PATH),
        ]
        with monkeypatch.context() as broken:
            broken.delattr(store, "create_or_find")
            return [*made, caller.create()]

    ours = answers(merchant)
    assert [answer.status_code for answer in ours] == [201, 422, 413, 403, 404, 401, 401, 404, 405, 500]
    assert len({answer.headers["X-Request-Id"] for answer in ours}) == len(ours)
    for answer in answers(merchant.with_headers(X_Request_Id="order-1.retry_2")):
        assert answer.headers.getlist("X-Request-Id") == ["order-1.retry_2"]
    for answer in answers(merchant.with_headers(X_Request_Id="two words; and a semicolon")):
        assert len(answer.headers["X-Request-Id"]) == 32


def test_an_application_over_its_rate_limit_gets_429_with_retry_after(
    settings: Settings, api_database: Database, make_application: MakeApplication
) -> None:
    """After `rate_burst` calls of any kind. Other applications are not limited."""
    slow = replace(settings, api=replace(settings.api, rate_limit=0.01, rate_burst=2))
    client = make_app(slow, api_database).test_client()
    eager, calm = (merchant_of(client, make_application(name)) for name in ("eager", "calm"))
    made = data_of(eager.create(), 201)
    data_of(eager.get(made["uuid"]), 200)
    for answer in (eager.create(), eager.get(made["uuid"]), eager.post("no JSON")):
        _assert_json_message(answer, 429)
        assert 1 <= int(answer.headers["Retry-After"]) <= 100
    assert eager.with_headers(X_API_Key=None).create().status_code == 401
    data_of(calm.create(), 201)


def test_there_is_no_rate_limit_unless_configured(merchant: Merchant, settings: Settings) -> None:
    """§8 documents no rate limits."""
    calls = settings.api.rate_burst + 10
    assert {merchant.get(uuid4()).status_code for _ in range(calls)} == {404}
