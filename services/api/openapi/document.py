"""Builds the OpenAPI document, and describes our marshmallow fields in JSON Schema for apispec."""

from functools import singledispatch
from importlib.resources import files
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from marshmallow import fields, validate

from services.api.create_schema import CreateSchema, CustomerSchema
from services.api.fields import Metadata, MinorUnits, Moment, ReturnUrl, Text
from services.api.openapi import examples, responses, webhooks
from shared import VERSION
from shared.domain.intents.states import IntentStatus
from shared.platform.settings import PublicUrls

JsonSchema = dict[str, Any]

# Unpaired surrogates are refused too, but regular expression engines do not agree on how to write that.
_NO_NUL = r"^[^\x00]*$"


Document = dict[str, Any]

INTENTS = "Payment intents"
_CREDENTIALS: dict[str, list[str]] = {"ApiKey": [], "AccessToken": []}
_STATUS_BY_NAME = {
    "Unauthorized": "401",
    "Forbidden": "403",
    "NotFound": "404",
    "MethodNotAllowed": "405",
    "BodyTooLate": "408",
    "BodyTooLarge": "413",
    "Invalid": "422",
    "TooManyRequests": "429",
}


def make_document(public_urls: PublicUrls, base_path: str) -> Document:
    plugin = MarshmallowPlugin()
    spec = APISpec(
        title="Mizan API",
        version=VERSION,
        openapi_version="3.1.0",
        plugins=[plugin],
        info={
            "summary": "Accept payments in Libyan dinar.",
            "description": files(__package__).joinpath("guide.md").read_text("utf-8"),
        },
        servers=[{"url": f"{public_urls.api}{base_path}"}],
        security=[_CREDENTIALS],
        tags=[
            {
                "name": INTENTS,
                "description": "Create an intent, send the customer to pay it, check the result.",
            },
            {"name": "Webhooks", "description": "What we send to your webhook URL."},
            {"name": "This reference", "description": "The document you are reading."},
        ],
        webhooks=webhooks.webhooks(),
    )
    _add_components(spec, plugin)
    spec.path("/payment-intents", operations={"post": _create(public_urls)})
    spec.path("/payment-intents/{paymentIntent}", operations={"get": _retrieve(public_urls)})
    spec.path("/openapi.json", operations={"get": _read_document()})
    document = spec.to_dict()
    return {"openapi": document.pop("openapi"), **document}


def _add_components(spec: APISpec, plugin: MarshmallowPlugin) -> None:
    assert plugin.converter is not None
    plugin.converter.add_attribute_function(describe_field)  # type: ignore[no-untyped-call]
    spec.components.schema("NewCustomer", schema=CustomerSchema)
    spec.components.schema("NewPaymentIntent", schema=CreateSchema)
    for name, schema in {**responses.schemas(), **webhooks.schemas()}.items():
        spec.components.schema(name, schema)
    for name, header in responses.HEADERS.items():
        spec.components.header(name, header)
    for name, response in responses.error_responses().items():
        spec.components.response(name, response)
    spec.components.security_scheme(
        "ApiKey",
        {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "Your application's API key, `pk_test_…` or `pk_live_…`.",
        },
    )
    spec.components.security_scheme(
        "AccessToken",
        {
            "type": "http",
            "scheme": "bearer",
            "description": "An access token of the same application: `Authorization: Bearer <token>`.",
        },
    )


def _create(public_urls: PublicUrls) -> dict[str, Any]:
    def response(description: str, status: IntentStatus) -> dict[str, Any]:
        link = {
            "operationId": "retrievePaymentIntent",
            "parameters": {"paymentIntent": "$response.body#/data/uuid"},
        }
        documented = responses.intent_response(description, public_urls.checkout, status)
        return {**documented, "links": {"retrieve": link}}

    return {
        "operationId": "createPaymentIntent",
        "summary": "Create a payment intent",
        "description": "Creates the intent of this `merchant_reference`, or returns it if it exists: a reference has "
        "one intent, however often it is sent. Unknown fields are ignored. An optional field that is null counts as "
        "not sent.",
        "tags": [INTENTS],
        "requestBody": {
            "required": True,
            "description": "A JSON object of at most 64 KiB without repeated keys.",
            "content": {
                responses.JSON: {
                    "schema": "NewPaymentIntent",
                    "examples": {
                        "full": {"summary": "With all optional fields", "value": examples.create_body()},
                        "smallest": {
                            "summary": "Only required fields",
                            "value": examples.smallest_create_body(),
                        },
                    },
                }
            },
        },
        "responses": {
            "201": response("The intent was created.", IntentStatus.REQUIRES_PAYMENT_METHOD),
            "200": response(
                "This `merchant_reference` already has an intent. It is returned unchanged, whatever its status.",
                IntentStatus.SUCCEEDED,
            ),
            **_error_responses("Unauthorized", "BodyTooLate", "BodyTooLarge", "Invalid"),
            **responses.failures("Send it again: its reference prevents a second intent."),
        },
    }


def _retrieve(public_urls: PublicUrls) -> dict[str, Any]:
    found = "The current intent. This response, not a webhook, is the source of truth."
    return {
        "operationId": "retrievePaymentIntent",
        "summary": "Retrieve a payment intent",
        "description": "Returns the current state of an intent of your application. Call it when a webhook arrives and "
        "when the customer returns. Fulfil the order only when `status` is `succeeded` and the amount is right.",
        "tags": [INTENTS],
        "parameters": [
            {
                "name": "paymentIntent",
                "in": "path",
                "required": True,
                "description": "The intent's `uuid`.",
                "schema": {"type": "string", "format": "uuid"},
                "example": str(examples.INTENT_UUID),
            }
        ],
        "responses": {
            "200": responses.intent_response(found, public_urls.checkout, IntentStatus.SUCCEEDED),
            **_error_responses("Unauthorized", "Forbidden", "NotFound"),
            **responses.failures("Ask again."),
        },
    }


def _read_document() -> dict[str, Any]:
    content = {responses.JSON: {"schema": {"type": "object"}}}
    return {
        "operationId": "readDocument",
        "summary": "Read this document",
        "description": "Needs no credentials.",
        "tags": ["This reference"],
        "security": [],
        "responses": {
            "200": {"description": "This document.", "headers": responses.headers(), "content": content},
            "304": {
                "description": "It has not changed since the version in your `If-None-Match`.",
                "headers": responses.headers(),
            },
            "405": responses.shared_response("MethodNotAllowed"),
            "500": responses.failures("Ask again.")["500"],
        },
    }


def _error_responses(*names: str) -> dict[str, dict[str, str]]:
    always = ("MethodNotAllowed", "TooManyRequests")
    return {_STATUS_BY_NAME[name]: responses.shared_response(name) for name in (*names, *always)}


def describe_field(_converter: object, field: fields.Field[Any], **_: Any) -> JsonSchema:
    """Return what to add to apispec's description of `field`; apispec knows only marshmallow's own fields."""
    described = _json_schema(field)
    if field.allow_none and "type" in described:
        described["type"] = [described["type"], "null"]
    return described


@singledispatch
def _json_schema(_field: fields.Field[Any]) -> JsonSchema:
    return {}


@_json_schema.register
def _(field: Text) -> JsonSchema:
    if any(isinstance(validator, validate.OneOf) for validator in field.validators):
        return {"type": "string"}
    return _text(field.at_least, field.at_most)


@_json_schema.register
def _(field: ReturnUrl) -> JsonSchema:
    return {"type": "string", "format": "uri", "pattern": field.pattern}


@_json_schema.register
def _(field: MinorUnits) -> JsonSchema:
    return {"type": "integer", "minimum": field.at_least, "maximum": field.at_most}


@_json_schema.register
def _(_field: Moment) -> JsonSchema:
    return {"type": "string", "format": "date-time"}


@_json_schema.register
def _(field: Metadata) -> JsonSchema:
    return {
        "type": "object",
        "maxProperties": field.max_keys,
        "propertyNames": _text(0, field.key_at_most),
        "additionalProperties": _text(0, field.value_at_most),
    }


def _text(at_least: int, at_most: int | None) -> JsonSchema:
    limits = {"minLength": at_least or None, "maxLength": at_most}
    return {"type": "string", **{name: limit for name, limit in limits.items() if limit}, "pattern": _NO_NUL}
