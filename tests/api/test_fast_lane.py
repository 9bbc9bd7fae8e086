"""Calls that succeed go ahead of Flask; to the caller there is no difference."""

import io
from typing import Any
from uuid import UUID

import pytest

from services.api.authentication import Authentication
from services.api.payment_intents import PaymentIntents
from shared.platform.database.pool import Database, DatabaseUnavailableError
from tests.api.conftest import PATH, Merchant, data_of, written


def test_both_lanes_give_the_same_answer(merchant: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
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

    ahead = calls("order-1")
    monkeypatch.setattr("services.api.fast_lane.FastLane._answer", lambda *_: None)
    assert calls("order-2") == ahead


def test_trouble_is_met_once(merchant: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails in the lane is not run again by Flask's route; nor is an unknown key asked for twice."""
    runs: list[str] = []

    def away(*_: Any) -> None:
        runs.append("create")
        raise DatabaseUnavailableError("gone fishing")

    monkeypatch.setattr(PaymentIntents, "create", away)
    assert merchant.create().status_code == 503
    assert runs == ["create"]

    asked = Authentication.application_of

    def ask(*arguments: Any) -> UUID:
        runs.append("key")
        return asked(*arguments)

    monkeypatch.setattr(Authentication, "application_of", ask)
    assert merchant.with_headers(X_API_Key="pk_unknown").create().status_code == 401
    assert runs == ["create", "key"]


def test_a_body_that_is_cut_off_makes_nothing(merchant: Merchant, database: Database) -> None:
    """Whole JSON, but fewer bytes than announced: the caller has gone in the middle of something."""
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
