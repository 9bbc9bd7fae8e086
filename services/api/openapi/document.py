"""Puts the document together."""

from importlib.resources import files
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from services.api.create_schema import CreateSchema, CustomerSchema
from services.api.openapi import answers, examples, webhooks
from services.api.openapi.field_schemas import describe_field
from shared.domain.intents.states import IntentStatus
from shared.platform.settings import PublicUrls

Document = dict[str, Any]

INTENTS = "Payment intents"
_CREDENTIALS: dict[str, list[str]] = {"ApiKey": [], "AccessToken": []}


def make_document(public_urls: PublicUrls, base_path: str) -> Document:
    plugin = MarshmallowPlugin()
    spec = APISpec(
        title="Mizan API",
        version="1.0.0",
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
                "description": "Create an intent, send the customer to pay it, look how it went.",
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
    made = spec.to_dict()
    return {"openapi": made.pop("openapi"), **made}


def _add_components(spec: APISpec, plugin: MarshmallowPlugin) -> None:
    assert plugin.converter is not None
    plugin.converter.add_attribute_function(describe_field)  # type: ignore[no-untyped-call]
    spec.components.schema("NewCustomer", schema=CustomerSchema)
    spec.components.schema("NewPaymentIntent", schema=CreateSchema)
    for name, schema in {**answers.schemas(), **webhooks.schemas()}.items():
        spec.components.schema(name, schema)
    for name, header in answers.HEADERS.items():
        spec.components.header(name, header)
    for name, answer in answers.refusals().items():
        spec.components.response(name, answer)
    spec.components.security_scheme(
        "ApiKey",
        {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "Your application's API key, `pk_…`.",
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
    def answer(description: str, status: IntentStatus) -> dict[str, Any]:
        link = {
            "operationId": "retrievePaymentIntent",
            "parameters": {"paymentIntent": "$response.body#/data/uuid"},
        }
        made = answers.intent_answer(description, public_urls.checkout, status)
        return {**made, "links": {"retrieve": link}}

    return {
        "operationId": "createPaymentIntent",
        "summary": "Create a payment intent",
        "description": "Creates the intent of this `merchant_reference`, or finds it: a reference makes one intent "
        "only, however often it is sent. Fields we do not know are ignored; an optional field that is null counts "
        "as not sent.",
        "tags": [INTENTS],
        "requestBody": {
            "required": True,
            "description": "A JSON object of at most 64 KiB, no key twice.",
            "content": {
                answers.JSON: {
                    "schema": "NewPaymentIntent",
                    "examples": {
                        "full": {"summary": "With all that is optional", "value": examples.create_body()},
                        "smallest": {
                            "summary": "Only what is required",
                            "value": examples.smallest_create_body(),
                        },
                    },
                }
            },
        },
        "responses": {
            "201": answer("The intent was created.", IntentStatus.REQUIRES_PAYMENT_METHOD),
            "200": answer(
                "This `merchant_reference` has an intent already: here it is, unchanged, whatever its status.",
                IntentStatus.SUCCEEDED,
            ),
            **_refusals("Unauthorized", "BodyTooLarge", "Invalid"),
        },
    }


def _retrieve(public_urls: PublicUrls) -> dict[str, Any]:
    found = "The intent as it is now. This, and no webhook, is the source of truth."
    return {
        "operationId": "retrievePaymentIntent",
        "summary": "Retrieve a payment intent",
        "description": "The current state of an intent of your application. Ask when a webhook arrives and when "
        "the customer returns; fulfil the order only when `status` is `succeeded` and the amount is right.",
        "tags": [INTENTS],
        "parameters": [
            {
                "name": "paymentIntent",
                "in": "path",
                "required": True,
                "description": "The intent's `uuid`.",
                "schema": {"type": "string", "format": "uuid"},
                "example": str(examples.UUID_OF_INTENT),
            }
        ],
        "responses": {
            "200": answers.intent_answer(found, public_urls.checkout, IntentStatus.SUCCEEDED),
            **_refusals("Unauthorized", "Forbidden", "NotFound"),
        },
    }


def _read_document() -> dict[str, Any]:
    content = {answers.JSON: {"schema": {"type": "object"}}}
    return {
        "operationId": "readDocument",
        "summary": "Read this document",
        "description": "Needs no credentials.",
        "tags": ["This reference"],
        "security": [],
        "responses": {
            "200": {"description": "This document.", "headers": answers.headers(), "content": content},
            "304": {
                "description": "It is still what your `If-None-Match` names.",
                "headers": answers.headers(),
            },
            "500": answers.shared_answer("ServerError"),
        },
    }


_STATUS_OF = {
    "Unauthorized": "401",
    "Forbidden": "403",
    "NotFound": "404",
    "BodyTooLarge": "413",
    "Invalid": "422",
    "TooManyRequests": "429",
    "ServerError": "500",
    "Unavailable": "503",
}


def _refusals(*names: str) -> dict[str, dict[str, str]]:
    always = ("TooManyRequests", "ServerError", "Unavailable")
    return {_STATUS_OF[name]: answers.shared_answer(name) for name in (*names, *always)}
