"""The fast path serves successful calls before Flask, with the same responses."""

import io
from typing import Any
from uuid import UUID

import pytest

from services.api.authentication import Authentication
from services.api.payment_intents import PaymentIntents
from shared.platform.database.pool import Database, DatabaseUnavailableError
from tests.api.conftest import PATH, Merchant, data_of, written


def test_fast_path_and_flask_give_the_same_response(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same status, headers and fields, for a create, its repeat and a retrieve."""

    def calls(reference: str) -> list[tuple[int, dict[str, str], set[str]]]:
        made = merchant.create(merchant_reference=reference)
        answers = [
            made,
            merchant.create(merchant_reference=reference),
            merchant.get(data_of(made, 201)["uuid"]),
        ]
        return [
            (
                answer.status_code,
                {
                    name: value
                    for name, value in answer.headers
                    if name not in ("X-Request-Id", "Content-Length")
                },
                set(answer.get_json()["data"]),
            )
            for answer in answers
        ]

    fast = calls("order-1")
    monkeypatch.setattr("services.api.fast_path.FastPath._respond", lambda *_: None)
    assert calls("order-2") == fast


def test_call_that_fails_on_the_fast_path_is_not_run_again_by_flask(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown key is not looked up twice either."""
    runs: list[str] = []

    def away(*_: Any) -> None:
        runs.append("create")
        raise DatabaseUnavailableError("gone fishing")

    monkeypatch.setattr(PaymentIntents, "create", away)
    assert merchant.create().status_code == 503
    assert runs == ["create"]

    authenticate = Authentication.authenticate

    def count(*arguments: Any) -> UUID:
        runs.append("key")
        return authenticate(*arguments)

    monkeypatch.setattr(Authentication, "authenticate", count)
    assert merchant.with_headers(X_API_Key="pk_unknown").create().status_code == 401
    assert runs == ["create", "key"]


def test_a_truncated_body_creates_nothing(merchant: Merchant, database: Database) -> None:
    """It is complete JSON, but shorter than its Content-Length: the caller disconnected while sending."""
    body = b'{"merchant_reference": "order-1", "amount": 25000, "currency": "LYD"}'
    answer = merchant.client.post(
        PATH,
        headers=dict(merchant.headers),
        environ_overrides={"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body) + 50)},
    )
    assert answer.status_code == 400
    assert answer.content_type == "application/json"
    assert written(database) == (0, 0, 0)


@pytest.mark.parametrize("path", ["/api/v1//payment-intents", "//api/v1/payment-intents"])
def test_path_with_double_slashes_is_404_without_a_redirect(merchant: Merchant, path: str) -> None:
    """A redirect would use the Host header."""
    answer = merchant.client.get(path, headers={**merchant.headers, "Host": "evil.example"})
    assert (answer.status_code, answer.content_type) == (404, "application/json")
    assert "Location" not in answer.headers
