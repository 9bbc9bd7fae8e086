"""A merchant's use of the real API, and a webhook that the product signed, with the client of one language."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from flask import Flask

from shared.domain.applications.registry import CreatedApplication
from shared.domain.deliveries.signing import build_body, sign_body, signing_key
from stack.ports import find_free_ports
from tests.clients.shared_cases import Runner, create, retrieve, verify
from tests.servers import serve


@dataclass(frozen=True, slots=True)
class RealApi:
    base_url: str
    application: CreatedApplication
    other_application: CreatedApplication


@contextmanager
def serve_api(
    app: Flask, application: CreatedApplication, other_application: CreatedApplication
) -> Iterator[RealApi]:
    port = find_free_ports(1)[0]
    with serve(app, port):
        yield RealApi(f"http://127.0.0.1:{port}/api/v1", application, other_application)


def check_real_api(api: RealApi, run: Runner) -> None:
    """Create, repeat, retrieve, and get an error of each kind that the API has without an outage."""
    client = {
        "base_url": f"{api.base_url}/",
        "api_key": api.application.api_key,
        "access_token": api.application.access_token,
        "timeout": 30,
        "retries": 3,
    }
    expires_at = (datetime.now(UTC) + timedelta(hours=2)).replace(microsecond=0)
    order = {
        "merchant_reference": "order-1042",
        "amount": 25_500,
        "description": "قهوة",
        "return_url": "https://shop.example/orders/order-1042",
        "customer_external_id": "customer-77",
        "metadata": {"branch": "طرابلس", "0": "zero"},
        "expires_at": expires_at.isoformat(),
    }
    created, repeated, small, numbered = run(
        [
            create(client, **order),
            create(client, merchant_reference="order-1042", amount=99_000),
            create(client, merchant_reference="order-1043", amount=1_000),
            create(client, merchant_reference="order-1044", amount=1_000, metadata={"0": "a", "1": "b"}),
        ]
    )
    intent = created["intent"]
    assert (intent["merchant_reference"], intent["amount"], intent["currency"]) == (
        "order-1042",
        25_500,
        "LYD",
    )
    assert (intent["description"], intent["metadata"]) == (order["description"], order["metadata"])
    assert (intent["customer"], intent["return_url"]) == ({"external_id": "customer-77"}, order["return_url"])
    assert intent["status"] == "requires_payment_method"
    assert intent["checkout_url"].endswith(f"/pay/{intent['uuid']}")
    assert intent["expires_at"] == expires_at.timestamp() * 1000
    assert repeated["intent"] == intent  # §4.1 rule 4
    assert (small["intent"]["customer"], small["intent"]["metadata"]) == ({"external_id": None}, None)
    assert numbered["intent"]["metadata"] == {"0": "a", "1": "b"}  # not a list, as in PHP

    other = {
        **client,
        "api_key": api.other_application.api_key,
        "access_token": api.other_application.access_token,
    }
    retrieved, invalid, missing, foreign, bad_key, bad_token = run(
        [
            retrieve(client, intent["uuid"]),
            create(client, merchant_reference="order-1045", amount=1, metadata={"color": "x" * 256}),
            retrieve(client, str(uuid4())),
            retrieve(other, intent["uuid"]),
            retrieve({**client, "api_key": "pk_unknown"}, intent["uuid"]),
            retrieve({**client, "access_token": "at_unknown"}, intent["uuid"]),
        ]
    )
    assert retrieved["intent"] == intent
    assert (invalid["error"], invalid["status"]) == ("invalid_request", 422)
    assert set(invalid["errors"]) == {"amount", "metadata.color"}
    assert (missing["error"], foreign["error"]) == ("not_found", "forbidden")
    assert (bad_key["error"], bad_token["error"]) == ("authentication", "authentication")
    for refused in (invalid, missing, foreign, bad_key, bad_token):
        assert refused["message"]
        assert "responded with status" not in refused["message"]  # it is the API's own text
        assert refused["request_id"]
        assert refused["pauses"] == []


def check_signed_webhook(run: Runner) -> None:
    """A webhook that the product's own code built and signed is valid, with the old and the new secret."""
    delivery, intent = str(uuid4()), str(uuid4())
    body = build_body(delivery, "payment_intent.succeeded", intent)
    signature = sign_body(body, signing_key("whsec_old"))
    valid, forged = run(
        [verify(body, signature, ["whsec_new", "whsec_old"]), verify(body, signature, ["whsec_new"])]
    )
    assert valid["event"] == {"id": delivery, "event": "payment_intent.succeeded", "intent_uuid": intent}
    assert forged["error"] == "signature"
