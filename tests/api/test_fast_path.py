"""The fast path answers successful calls before Flask; to the caller there is no difference."""

import io
from typing import Any
from uuid import UUID

import pytest

from services.api.authentication import Authentication
from services.api.payment_intents import PaymentIntents
from shared.platform.database.pool import Database, DatabaseUnavailableError
from tests.api.conftest import PATH, Merchant, data_of, written


def test_both_paths_give_the_same_response(merchant: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status, headers and body, for a create, its repeat and a retrieval."""

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


def test_an_error_is_met_once(merchant: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails on the fast path is not run again by Flask's route; nor is an unknown key looked up twice."""
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
    """Whole JSON, but fewer bytes than announced: the caller disconnected while sending."""
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
def test_two_slashes_lead_nowhere(merchant: Merchant, path: str) -> None:
    """JSON, and no redirect to whatever the Host header says."""
    answer = merchant.client.get(path, headers={**merchant.headers, "Host": "evil.example"})
    assert (answer.status_code, answer.content_type) == (404, "application/json")
    assert "Location" not in answer.headers
