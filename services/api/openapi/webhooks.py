"""The events we send to merchants (§6), as the `webhooks` of the document."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from services.api.openapi.examples import delivery_body, sign_body
from services.api.openapi.responses import JSON, SCHEMAS
from shared.domain.intents.states import EventType

_SENT_WHEN = {
    EventType.SUCCEEDED: "The intent is paid, also when a late payment arrives on a canceled intent.",
    EventType.CANCELED: "The intent expired unpaid.",
}


class DeliveryData(msgspec.Struct):
    uuid: Annotated[UUID, Meta(description="The intent's uuid: retrieve it to learn its status and amount.")]


class Delivery(msgspec.Struct):
    id: Annotated[
        str, Meta(description="Id of the delivery, kept across retries and resends: drop repeats by it.")
    ]
    event: Annotated[
        str,
        Meta(description="What happened.", extra_json_schema={"enum": [event.value for event in _SENT_WHEN]}),
    ]
    data: Annotated[DeliveryData, Meta(description="What it happened to. No amount and no status.")]


def schemas() -> dict[str, Any]:
    _, components = msgspec.json.schema_components((Delivery,), ref_template=f"{SCHEMAS}{{name}}")
    return components


def webhooks() -> dict[str, Any]:
    return {event.value: {"post": _operation(event, when)} for event, when in _SENT_WHEN.items()}


def _operation(event: EventType, sent_when: str) -> dict[str, Any]:
    body = delivery_body(event)
    return {
        "summary": event.value,
        "description": sent_when,
        "tags": ["Webhooks"],
        "security": [],
        "parameters": [
            {
                "name": "Service-Signature",
                "in": "header",
                "required": True,
                "description": "Lowercase hex HMAC-SHA256 of the raw body, keyed with your whole webhook secret.",
                "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                "example": sign_body(body),
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {
                    "schema": {"$ref": f"{SCHEMAS}Delivery"},
                    "examples": {"delivery": {"value": body}},
                }
            },
        },
        "responses": {
            "2XX": {"description": "Received. Respond within 10 seconds and do the work afterwards."},
            "401": {"description": "Your response to a signature that does not match."},
        },
    }
