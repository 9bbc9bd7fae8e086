"""The examples of the reference, all about one order. The API's own code makes them, so they cannot be wrong."""

import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from services.api.create_schema import CreateSchema
from services.api.representation import Representation
from services.api.request_validation import InvalidRequestError, parse_new_intent
from shared.domain.intents.intent import Intent
from shared.domain.intents.states import IntentStatus

INTENT_UUID = UUID("019b3c5e-6f1a-7c40-9d27-5b8e0c4a1f63")
REQUEST_ID = "6f1c2a9be0d44c1c9a5be2f3a7d81e04"
WEBHOOK_SECRET = "whsec_example"  # noqa: S105  nobody's secret: it lets readers check the example's signature
_APPLICATION = UUID(int=0)
_CREATED_AT = datetime(2030, 1, 30, 15, 0, tzinfo=UTC)


def create_body() -> dict[str, Any]:
    """Every field of a create except `expires_at`, which would soon be in the past."""
    return {
        name: {inner: _example(field) for inner, field in field.schema.fields.items()}
        if hasattr(field, "schema")
        else _example(field)
        for name, field in CreateSchema().fields.items()
        if name != "expires_at"
    }


def smallest_create_body() -> dict[str, Any]:
    required = {name for name, field in CreateSchema().fields.items() if field.required}
    return {name: value for name, value in create_body().items() if name in required}


def intent_body(checkout_public_url: str, status: IntentStatus) -> dict[str, Any]:
    new = parse_new_intent(_APPLICATION, create_body())
    intent = Intent(
        uuid=INTENT_UUID,
        application_id=_APPLICATION,
        merchant_reference=new.merchant_reference,
        reference="k7m2xq9rtb",
        amount=new.amount,
        currency=new.currency,
        status=IntentStatus.REQUIRES_PAYMENT_METHOD,
        description=new.description,
        customer_external_id=new.customer_external_id,
        return_url=new.return_url,
        metadata=dict(new.metadata or {}),
        expires_at=_CREATED_AT + timedelta(hours=24),
        created_at=_CREATED_AT,
        updated_at=_CREATED_AT,
    )
    if status is not IntentStatus.REQUIRES_PAYMENT_METHOD:
        intent = replace(intent, status=status, updated_at=_CREATED_AT + timedelta(minutes=4))
    body: dict[str, Any] = json.loads(Representation(checkout_public_url).encode(intent))
    return body


def invalid_create_errors() -> dict[str, list[str]]:
    try:
        parse_new_intent(_APPLICATION, {**create_body(), "amount": "25.5", "metadata": {"branch": 7}})
    except InvalidRequestError as invalid:
        return invalid.errors
    raise AssertionError("the example of an invalid create is valid")


def delivery_body(event: str) -> dict[str, Any]:
    delivery_id = UUID("019b3c62-0e4b-7d15-8a36-c2f7915be0d8")
    return {"id": str(delivery_id), "event": event, "data": {"uuid": str(INTENT_UUID)}}


def sign_body(body: dict[str, Any]) -> str:
    return hmac.new(WEBHOOK_SECRET.encode(), encode_body(body), hashlib.sha256).hexdigest()


def encode_body(body: dict[str, Any]) -> bytes:
    """Encode a body as it is sent: bytes are signed, not JSON."""
    return json.dumps(body, separators=(",", ":")).encode()


def _example(field: Any) -> Any:
    return field.metadata["examples"][0]
