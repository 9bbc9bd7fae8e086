"""Every response of the API, with its headers, its body and an example (§4, §7)."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from services.api.openapi import examples
from services.api.representation import Envelope
from shared.domain.intents.states import IntentStatus
from shared.platform.web.app import MAX_BODY_BYTES, REQUEST_LIMIT_S
from shared.platform.web.errors import UNAVAILABLE_MESSAGE

JSON = "application/json"
SCHEMAS = "#/components/schemas/"

HEADERS: dict[str, Any] = {
    "X-Request-Id": {
        "description": "Identifies this request in our logs; quote it when you contact us about it. "
        "It is your own if you sent one of 1 to 64 letters, digits, dots, hyphens and underscores.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "example": examples.REQUEST_ID,
    },
    "Retry-After": {
        "description": "Seconds to wait before you send the same request again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
        "example": 1,
    },
    "Allow": {
        "description": "The methods that exist at this address.",
        "required": True,
        "schema": {"type": "string"},
        "example": "GET, HEAD",
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
    """Return the schemas of all response bodies, by name."""
    structs = (Envelope, ApiKeyRefused, Message, ValidationFailed)
    _, components = msgspec.json.schema_components(structs, ref_template=f"{SCHEMAS}{{name}}")
    return components


def error_responses() -> dict[str, Any]:
    """Return the error responses that several operations share, by name."""
    return {
        "Unauthorized": _response(
            "A credential is missing or invalid. The API key is checked first: `error` is about the key, "
            "`message` about the access token.",
            {"oneOf": [_ref("ApiKeyRefused"), _ref("Message")]},
            {
                "api_key": {"error": "The X-API-Key header is missing."},
                "access_token": _message(
                    "The access token is invalid or revoked, or belongs to another application."
                ),
            },
        ),
        "Forbidden": _error(
            "The intent was created by another application.",
            "This payment intent belongs to another application.",
        ),
        "NotFound": _error(
            "No intent has this uuid.",
            "There is no payment intent with this uuid.",
        ),
        "MethodNotAllowed": _error(
            "The address exists, but not with this method.",
            "Method Not Allowed",
            "Allow",
        ),
        "BodyTooLate": _error(
            f"The body took longer than {REQUEST_LIMIT_S:.0f} seconds to arrive. The create can be sent again.",
            "The request's body did not arrive in time.",
        ),
        "BodyTooLarge": _error(
            f"The body has more than {MAX_BODY_BYTES // 1024} KiB.",
            "Request Entity Too Large",
        ),
        "Invalid": _response(
            "The request fails validation. A repeated create must pass it too.",
            _ref("ValidationFailed"),
            {
                "invalid": {
                    "message": "The request is not valid.",
                    "errors": examples.invalid_create_errors(),
                }
            },
        ),
        "TooManyRequests": _error(
            "Your application exceeds its rate limit.",
            "Too many requests. Please try again in 1 s.",
            "Retry-After",
        ),
    }


def failures(what_to_do: str) -> dict[str, Any]:
    """Return the responses to a call that fails on our side, by status."""
    return {
        "500": _error(f"An error on our side. {what_to_do}", "Internal Server Error"),
        "503": _error(
            f"The service is temporarily unavailable. {what_to_do}",
            UNAVAILABLE_MESSAGE,
            "Retry-After",
        ),
    }


def intent_response(description: str, checkout_public_url: str, status: IntentStatus) -> dict[str, Any]:
    body = examples.intent_body(checkout_public_url, status)
    return _response(description, _ref("Envelope"), {status.value: body})


def headers(*more: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *more)}


def shared_response(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{name}"}


def _error(description: str, message: str, *more_headers: str) -> dict[str, Any]:
    return _response(description, _ref("Message"), {"refusal": _message(message)}, *more_headers)


def _response(
    description: str, schema: dict[str, Any], bodies: dict[str, Any], *more_headers: str
) -> dict[str, Any]:
    content = {"schema": schema, "examples": {name: {"value": body} for name, body in bodies.items()}}
    return {"description": description, "headers": headers(*more_headers), "content": {JSON: content}}


def _message(text: str) -> dict[str, str]:
    return {"message": text}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"{SCHEMAS}{name}"}
