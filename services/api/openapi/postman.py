"""A Postman collection, made from the OpenAPI document. Postman, Bruno, Insomnia and newman read it.

Its variables are the base address and the credentials. Creating an intent stores its uuid for the other requests.
"""

import json
from collections.abc import Iterator
from typing import Any

from services.api.openapi.document import Document

Collection = dict[str, Any]

_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_JSON = "application/json"
_UUID_VARIABLE = "payment_intent"
_STORE_UUID = (
    "if (pm.response.code < 300) "
    f'pm.collectionVariables.set("{_UUID_VARIABLE}", pm.response.json().data.uuid);'
)
_NEW_REFERENCE = "order-{{$randomUUID}}"
"""Postman's own variable: each request creates another intent."""


def make_collection(document: Document) -> Collection:
    return {
        "info": {
            "name": document["info"]["title"],
            "description": document["info"]["summary"],
            "version": document["info"]["version"],
            "schema": _SCHEMA,
        },
        "variable": [
            {"key": "base_url", "value": document["servers"][0]["url"]},
            {"key": "api_key", "value": ""},
            {"key": "access_token", "value": ""},
            {"key": _UUID_VARIABLE, "value": ""},
        ],
        "auth": {
            "type": "bearer",
            "bearer": [{"key": "token", "value": "{{access_token}}", "type": "string"}],
        },
        "item": [
            item
            for path, operations in document["paths"].items()
            for verb, operation in operations.items()
            for item in _items(path, verb.upper(), operation)
        ],
    }


def _items(path: str, verb: str, operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a request for each example of a body, or one. Operations without credentials are left out."""
    if operation.get("security") == []:
        return
    examples = operation.get("requestBody", {}).get("content", {}).get(_JSON, {}).get("examples")
    if examples is None:
        yield {"name": operation["summary"], "request": _request(path, verb, operation)}
        return
    for example in examples.values():
        yield {
            "name": f"{operation['summary']}: {example['summary'].lower()}",
            "event": [{"listen": "test", "script": {"type": "text/javascript", "exec": [_STORE_UUID]}}],
            "request": {**_request(path, verb, operation), "body": _body(example["value"])},
        }


def _request(path: str, verb: str, operation: dict[str, Any]) -> dict[str, Any]:
    for parameter in operation.get("parameters", ()):
        path = path.replace(f"{{{parameter['name']}}}", f"{{{{{_UUID_VARIABLE}}}}}")
    header = {"Accept": _JSON, "X-API-Key": "{{api_key}}"}
    if "requestBody" in operation:
        header["Content-Type"] = _JSON
    return {
        "method": verb,
        "description": operation["description"],
        "header": [{"key": name, "value": value} for name, value in header.items()],
        "url": "{{base_url}}" + path,
    }


def _body(example: dict[str, Any]) -> dict[str, Any]:
    body = {**example, "merchant_reference": _NEW_REFERENCE}
    return {"mode": "raw", "raw": json.dumps(body, indent=2), "options": {"raw": {"language": "json"}}}
