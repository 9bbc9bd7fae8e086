"""Every answer the API can give, with its headers, its body and an example (§4, §7)."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from services.api.openapi import examples
from services.api.representation import Envelope
from shared.domain.intents.states import IntentStatus
from shared.platform.web.app import MAX_BODY_BYTES

JSON = "application/json"
SCHEMAS = "#/components/schemas/"

HEADERS: dict[str, Any] = {
    "X-Request-Id": {
        "description": "Names this request in our logs; quote it when you ask us about it. "
        "Yours, if you sent one of 1 to 64 letters, digits, dots, hyphens and underscores.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "example": examples.REQUEST_ID,
    },
    "Retry-After": {
        "description": "Seconds to wait before the same request is worth sending again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
        "example": 1,
    },
}


class ApiKeyRefused(msgspec.Struct):
    error: Annotated[str, Meta(description="What is wrong with the API key.")]


class Message(msgspec.Struct):
    message: Annotated[str, Meta(description="What went wrong, for a developer to read.")]


class ValidationFailed(msgspec.Struct):
    message: Annotated[str, Meta(description="The same for every failing request.")]
    errors: Annotated[
        dict[str, Annotated[list[str], Meta(min_length=1)]],
        Meta(
            description="What is wrong, by field: `amount`, `customer.external_id`, `metadata.branch`; "
            "`body` when the body as a whole cannot be read. All failing fields at once."
        ),
    ]


def schemas() -> dict[str, Any]:
    """The bodies of all answers, by name."""
    structs = (Envelope, ApiKeyRefused, Message, ValidationFailed)
    _, components = msgspec.json.schema_components(structs, ref_template=f"{SCHEMAS}{{name}}")
    return components


def refusals() -> dict[str, Any]:
    """Answers that several operations share, by name."""
    return {
        "Unauthorized": _answer(
            "A credential is missing or not valid. The API key is checked first: `error` is about it, "
            "`message` about the access token.",
            {"oneOf": [_ref("ApiKeyRefused"), _ref("Message")]},
            {
                "api_key": {"error": "The X-API-Key header is missing."},
                "access_token": _message(
                    "The access token is invalid or revoked, or belongs to another application."
                ),
            },
        ),
        "Forbidden": _refusal(
            "The intent was created by another application.",
            "This payment intent belongs to another application.",
        ),
        "NotFound": _refusal(
            "No intent has this uuid.",
            "There is no payment intent with this uuid.",
        ),
        "BodyTooLarge": _refusal(
            f"The body has more than {MAX_BODY_BYTES // 1024} KiB.",
            "Request Entity Too Large",
        ),
        "Invalid": _answer(
            "The request fails validation. A repeated create must pass it too.",
            _ref("ValidationFailed"),
            {
                "invalid": {
                    "message": "The request is not valid.",
                    "errors": examples.errors_of_invalid_create(),
                }
            },
        ),
        "TooManyRequests": _refusal(
            "Your application calls faster than it may.",
            "Too many requests. Please try again in 1 s.",
            "Retry-After",
        ),
        "ServerError": _refusal(
            "Something broke on our side. A create can be sent again: its reference keeps it from happening twice.",
            "Internal Server Error",
        ),
        "Unavailable": _refusal(
            "We cannot answer at the moment. A create can be sent again.",
            "The service is temporarily unavailable. Please try again.",
            "Retry-After",
        ),
    }


def intent_answer(description: str, checkout_public_url: str, status: IntentStatus) -> dict[str, Any]:
    body = examples.intent_body(checkout_public_url, status)
    return _answer(description, _ref("Envelope"), {status.value: body})


def headers(*more: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *more)}


def shared_answer(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{name}"}


def _refusal(description: str, message: str, *more_headers: str) -> dict[str, Any]:
    return _answer(description, _ref("Message"), {"refusal": _message(message)}, *more_headers)


def _answer(
    description: str, schema: dict[str, Any], bodies: dict[str, Any], *more_headers: str
) -> dict[str, Any]:
    content = {"schema": schema, "examples": {name: {"value": body} for name, body in bodies.items()}}
    return {"description": description, "headers": headers(*more_headers), "content": {JSON: content}}


def _message(text: str) -> dict[str, str]:
    return {"message": text}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"{SCHEMAS}{name}"}
