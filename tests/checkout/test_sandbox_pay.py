"""`POST {sandbox}/pay`: for test suites of merchants. It pays at the real checkout, as a customer does."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask, request
from werkzeug.test import TestResponse

from services.sandbox.app import make_app
from services.sandbox.checkout_client import CheckoutClient
from shared.domain.applications.registry import CreatedApplication, NewApplication
from shared.domain.intents.intent import Intent
from shared.platform.settings import PublicUrls, SandboxSettings
from shared.platform.tokens import sandbox_authorization
from stack.ports import find_free_ports
from tests.checkout.world import CheckoutWorld
from tests.sandbox.running_sandbox import SECRET
from tests.servers import serve

GOOD_CARD = "4242424242424242"

Pay = Callable[..., TestResponse]


def credentials_of(application: CreatedApplication) -> dict[str, str]:
    return {"X-API-Key": application.api_key, "Authorization": f"Bearer {application.access_token}"}


@pytest.fixture
def pay(pages: CheckoutWorld, api_url: str, tmp_path: Path) -> Pay:
    """Request a payment of an intent. By default with the credentials of its application, at the real checkout."""

    def call(
        intent: Intent | str,
        *,
        api_url: str = api_url,
        checkout_url: str = pages.url,
        headers: Mapping[str, str] = MappingProxyType(credentials_of(pages.application)),
        **fields: Any,
    ) -> TestResponse:
        app = _make_sandbox(tmp_path, PublicUrls(api=api_url, checkout=checkout_url))
        uuid = intent if isinstance(intent, str) else str(intent.uuid)
        return app.test_client().post("/pay", json={"intent": uuid, **fields}, headers=headers)

    return call


def _make_sandbox(directory: Path, urls: PublicUrls, **settings: Any) -> Flask:
    return make_app(SandboxSettings(secret=SECRET, ledger=directory / "ledger", **settings), urls, None)


def _error(response: TestResponse) -> tuple[int, str]:
    assert response.json is not None
    assert list(response.json) == ["message"]
    return response.status_code, response.json["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"card": GOOD_CARD},
        {"card": "6395043835180860", "expiry": "11/39", "security_code": "777", "code": "111111"},
        {"wallet": "sadad", "phone": "0913632323"},
        {"wallet": "sadad", "phone": "0913632323", "birth_year": "1999"},
        {"wallet": "adfali", "phone": "0921234567", "code": "1111"},
    ],
)
def test_intent_is_paid(pages: CheckoutWorld, pay: Pay, fields: dict[str, str]) -> None:
    intent = pages.make_intent()
    response = pay(intent, **fields)
    assert (response.status_code, response.json) == (200, {"intent": str(intent.uuid), "status": "succeeded"})
    assert pages.status(intent) == "succeeded"
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


def test_declined_payment_is_402_and_says_why(pages: CheckoutWorld, pay: Pay) -> None:
    intent = pages.make_intent()
    response = pay(intent, card="4000000000000002")
    assert response.status_code == 402
    assert response.json is not None
    assert response.json["message"].startswith("not paid: The payment was declined.")
    assert pages.status(intent) == "requires_payment_method"


def test_paid_intent_is_not_paid_again(pages: CheckoutWorld, pay: Pay) -> None:
    intent = pages.make_intent()
    assert pay(intent, card=GOOD_CARD).status_code == 200
    assert pay(intent, card=GOOD_CARD).status_code == 402
    assert len(pages.charges(intent)) == 1


class TestCredentials:
    @pytest.mark.parametrize("without", ["X-API-Key", "Authorization"])
    def test_request_without_both_headers_is_401(self, pages: CheckoutWorld, pay: Pay, without: str) -> None:
        """Before anything else is looked at, also the body."""
        headers = {**credentials_of(pages.application), without: ""}
        status, message = _error(pay("no uuid", headers=headers, api_url="http://127.0.0.1:1"))
        assert status == 401
        assert "X-API-Key and Authorization" in message

    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"X-API-Key": "pk_unknown"}, "The API key is unknown or revoked."),
            ({"X-API-Key": "pk_\xe9\xff"}, "The API key is unknown or revoked."),
            ({"Authorization": "Bearer at_unknown"}, "The access token is invalid or revoked"),
            ({"Authorization": sandbox_authorization(SECRET)}, "The access token is invalid or revoked"),
        ],
    )
    def test_wrong_credentials_are_401_with_the_message_of_the_api(
        self, pages: CheckoutWorld, pay: Pay, wrong: dict[str, str], says: str
    ) -> None:
        intent = pages.make_intent()
        response = pay(intent, card=GOOD_CARD, headers={**credentials_of(pages.application), **wrong})
        status, message = _error(response)
        assert (status, message[: len(says)]) == (401, says)
        assert pages.charges(intent) == []

    def test_intent_of_another_merchant_is_403(self, pages: CheckoutWorld, pay: Pay) -> None:
        intent = pages.make_intent()
        other = pages.make_application(NewApplication("other", "Benghazi Tea"))
        response = pay(intent, card=GOOD_CARD, headers=credentials_of(other))
        assert _error(response)[0] == 403
        assert pages.charges(intent) == []
        assert pages.status(intent) == "requires_payment_method"

    def test_unknown_intent_is_404(self, pay: Pay) -> None:
        assert _error(pay(str(uuid4()), card=GOOD_CARD))[0] == 404


@contextmanager
def fake_checkout(body_tag: str) -> Iterator[tuple[str, list[str]]]:
    """Serve a page with a form to pay by card. Yield its address, and the methods of the requests."""
    app, methods = Flask("checkout"), list[str]()

    def show(uuid: str) -> str:
        methods.append(request.method)
        return f'{body_tag}<form action="/pay/{uuid}"><input type="radio" name="method" value="card"></form>'

    app.add_url_rule("/pay/<uuid>", view_func=show, methods=["GET", "POST"])
    app.add_url_rule("/pay/<uuid>/state", "state", lambda uuid: {"state": "succeeded", "uuid": uuid})
    port = find_free_ports(1)[0]
    with serve(app, port):
        yield f"http://127.0.0.1:{port}", methods


class TestMode:
    @pytest.mark.parametrize(
        "body_tag",
        ['<body data-mode="live">', "<body>", "", '<body data-mode="TEST">', '<p data-mode="test">'],
    )
    def test_page_that_does_not_say_test_is_409_and_nothing_is_submitted(
        self, pages: CheckoutWorld, pay: Pay, body_tag: str
    ) -> None:
        with fake_checkout(body_tag) as (url, methods):
            status, message = _error(pay(pages.make_intent(), card=GOOD_CARD, checkout_url=url))
        assert (status, methods) == (409, ["GET"])
        assert "not of a test application" in message

    def test_page_that_says_test_is_paid(self, pages: CheckoutWorld, pay: Pay) -> None:
        with fake_checkout('<body data-mode="test">') as (url, methods):
            assert pay(pages.make_intent(), card=GOOD_CARD, checkout_url=url).status_code == 200
        assert methods == ["GET", "POST"]


def test_checkout_that_is_not_there_is_502(pages: CheckoutWorld, pay: Pay) -> None:
    url = f"http://127.0.0.1:{find_free_ports(1)[0]}"
    response = pay(pages.make_intent(), card=GOOD_CARD, checkout_url=url)
    assert response.status_code == 502
    assert f"the checkout at {url} cannot be reached" in response.text


def test_api_that_is_not_there_is_502_and_nothing_is_paid(pages: CheckoutWorld, pay: Pay) -> None:
    intent = pages.make_intent()
    response = pay(intent, card=GOOD_CARD, api_url=f"http://127.0.0.1:{find_free_ports(1)[0]}")
    assert _error(response) == (502, "the API cannot be reached (ConnectionError)")
    assert pages.charges(intent) == []


def test_settings_name_other_addresses_than_the_public_ones(
    world: CheckoutWorld, api_url: str, tmp_path: Path
) -> None:
    """Inside containers. The checkout's cookies are made for https, which is not used there."""
    public = PublicUrls(api="https://api.example.ly", checkout="https://pay.example.ly")
    address = world.url
    world.settings = replace(world.settings, public_urls=public)
    intent = world.make_intent()
    app = _make_sandbox(tmp_path, public, notify_url=address, api_url=api_url)
    with world.serve():
        response = app.test_client().post(
            "/pay",
            json={"intent": str(intent.uuid), "card": "6395043835180860"},
            headers=credentials_of(world.application),
        )
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Give either card or wallet."),
        ({"card": GOOD_CARD, "wallet": "adfali", "phone": "0921234567"}, "Give either card or wallet."),
        ({"wallet": "adfali"}, "phone: A wallet needs it."),
        ({"wallet": "card", "phone": "0921234567"}, "wallet: "),
        ({"card": GOOD_CARD, "phone": "0921234567"}, "phone: Not a field of this method."),
        ({"wallet": "adfali", "phone": "0921234567", "expiry": "12/40"}, "expiry: Not a field of"),
        ({"card": GOOD_CARD, "cvc": "123"}, "cvc: Unknown field."),
        ({"card": int(GOOD_CARD)}, "card: Not a valid string."),
        ({"card": "4" * 101}, "card: "),
        ({"intent": "no-uuid", "card": GOOD_CARD}, "intent: Not a valid UUID."),
    ],
)
def test_invalid_request_is_422_and_names_the_field(pay: Pay, fields: dict[str, Any], message: str) -> None:
    response = pay(fields.pop("intent", str(uuid4())), **fields)
    assert response.status_code == 422
    assert response.json is not None
    assert message in response.json["message"]
    assert GOOD_CARD not in response.text


@pytest.mark.parametrize(("keys", "most"), [(11, 32), (1, 8)])
def test_number_of_payments_at_one_time_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: int, most: int
) -> None:
    """Otherwise the checkout's charges would find no free thread of the sandbox. One merchant cannot take them all."""
    finish = Event()

    def wait(*_arguments: object) -> None:
        assert finish.wait(30)

    monkeypatch.setattr(CheckoutClient, "pay", wait)
    monkeypatch.setattr("services.sandbox.app.check_access", lambda *_: None)
    app = _make_sandbox(tmp_path, PublicUrls(checkout="http://127.0.0.1:1"))
    body = {"intent": str(uuid4()), "card": GOOD_CARD}

    def pay_with(key: int) -> int:
        headers = {"X-API-Key": f"pk_{key}", "Authorization": "Bearer at"}
        return app.test_client().post("/pay", json=body, headers=headers).status_code

    with ThreadPoolExecutor(most + 1) as callers:
        calls = [callers.submit(pay_with, number % keys) for number in range(most + 1)]
        refused = next(as_completed(calls, timeout=30))
        finish.set()
    assert refused.result() == 429
    assert sorted(call.result() for call in calls) == [200] * most + [429]
    assert pay_with(0) == 200
