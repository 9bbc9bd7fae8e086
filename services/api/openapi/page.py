"""What the reference page shows, read from the OpenAPI document: operations, events, and tables of fields."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from services.api.openapi.document import INTENTS, Document
from services.api.openapi.examples import WEBHOOK_SECRET, encode_body
from services.api.openapi.markdown import Section, split_sections
from services.api.openapi.responses import JSON

_FORMATS = {"uuid": "UUID", "uri": "URL", "date-time": "ISO 8601 date-time"}
_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=:))|(?P<string>"(?:[^"\\]|\\.)*")|(?P<value>true|false|null|-?\d[\d.]*)'
)


@dataclass(frozen=True)
class FieldRow:
    name: str
    type: str
    required: bool
    limits: list[str]
    description: str


@dataclass(frozen=True)
class DocumentedResponse:
    status: str
    description: str
    headers: list[str]
    examples: list[Markup]

    @property
    def is_error(self) -> bool:
        return self.status >= "400"


@dataclass(frozen=True)
class DocumentedOperation:
    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[FieldRow]
    fields: list[FieldRow]
    responses: list[DocumentedResponse]
    curl: Markup


@dataclass(frozen=True)
class DocumentedEvent:
    name: str
    sent_when: str
    signature: str
    body: str


@dataclass(frozen=True)
class ReferencePage:
    title: str
    summary: str
    server: str
    overview: Section
    guide: list[Section]
    operations: list[DocumentedOperation]
    intent: list[FieldRow]
    webhooks: Section
    events: list[DocumentedEvent]
    delivery: list[FieldRow]
    secret: str
    """The secret that signs the example of a delivery."""
    errors: Section
    errors_by_status: list[DocumentedResponse]


def make_page(document: Document) -> ReferencePage:
    schemas = document["components"]["schemas"]
    operations = list(_operations(document))
    responses = {each.status: each for operation in operations for each in operation.responses}
    overview, *guide, webhooks, errors = split_sections(document["info"]["description"])
    return ReferencePage(
        title=document["info"]["title"],
        summary=document["info"]["summary"],
        server=document["servers"][0]["url"],
        overview=overview,
        guide=guide,
        operations=operations,
        intent=list(list_rows(document, schemas["PaymentIntent"])),
        webhooks=webhooks,
        events=list(_events(document)),
        delivery=list(list_rows(document, schemas["Delivery"])),
        secret=WEBHOOK_SECRET,
        errors=errors,
        errors_by_status=[each for _, each in sorted(responses.items()) if each.is_error],
    )


def highlight_json(body: Any) -> Markup:
    """Return a body as JSON with spans for colours; on one line if it has one field."""
    text = json.dumps(body, indent=2 if len(body) > 1 or "data" in body else None, ensure_ascii=False)
    html, end = Markup(""), 0
    for token in _TOKEN.finditer(text):
        html += escape(text[end : token.start()])
        html += Markup('<span class="{}">{}</span>').format(token.lastgroup, token[0])
        end = token.end()
    return html + escape(text[end:])


def _operations(document: Document) -> Iterator[DocumentedOperation]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if INTENTS in operation["tags"]:
                yield _operation(document, method.upper(), path, operation)


def _operation(document: Document, method: str, path: str, operation: dict[str, Any]) -> DocumentedOperation:
    body = operation.get("requestBody", {}).get("content", {}).get(JSON)
    return DocumentedOperation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=operation["description"],
        parameters=[
            make_row(document, each["name"], {**each, **each["schema"]}, required=each["required"])
            for each in operation.get("parameters", ())
        ],
        fields=list(list_rows(document, body["schema"])) if body else [],
        responses=[_response(document, status, each) for status, each in operation["responses"].items()],
        curl=_curl(document["servers"][0]["url"], path, operation, body),
    )


def _response(document: Document, status: str, response: dict[str, Any]) -> DocumentedResponse:
    response = resolve(document, response)
    examples = response["content"][JSON]["examples"].values()
    return DocumentedResponse(
        status=status,
        description=response["description"],
        headers=list(response["headers"]),
        examples=[highlight_json(example["value"]) for example in examples],
    )


def _events(document: Document) -> Iterator[DocumentedEvent]:
    for name, methods in document["webhooks"].items():
        operation = methods["post"]
        yield DocumentedEvent(
            name=name,
            sent_when=operation["description"],
            signature=operation["parameters"][0]["example"],
            body=encode_body(
                operation["requestBody"]["content"][JSON]["examples"]["delivery"]["value"]
            ).decode(),
        )


def _curl(server: str, path: str, operation: dict[str, Any], body: dict[str, Any] | None) -> Markup:
    for parameter in operation.get("parameters", ()):
        path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
    lines = [
        f"curl {server}{path}",
        '-H "X-API-Key: $MIZAN_API_KEY"',
        '-H "Authorization: Bearer $MIZAN_ACCESS_TOKEN"',
        '-H "Accept: application/json"',
    ]
    if body:
        lines.append('-H "Content-Type: application/json"')
        lines.append(
            Markup("-d '{}'").format(highlight_json(body["examples"]["full"]["value"]).replace("\n", "\n  "))
        )
    return Markup(" \\\n  ").join(lines)


def list_rows(document: Document, schema: dict[str, Any], prefix: str = "") -> Iterator[FieldRow]:
    """Yield one row for each property. Those of a nested object follow it, by dotted name."""
    schema = resolve(document, schema)
    for name, declared in schema["properties"].items():
        yield make_row(document, f"{prefix}{name}", declared, required=name in schema.get("required", ()))
        prop, _ = _without_null(document, declared)
        if "properties" in prop:
            yield from list_rows(document, prop, f"{prefix}{name}.")


def make_row(document: Document, name: str, declared: dict[str, Any], *, required: bool) -> FieldRow:
    prop, nullable = _without_null(document, declared)
    return FieldRow(
        name=name,
        type=_type(prop) + (" or null" if nullable else ""),
        required=required,
        limits=list(_limits(prop)),
        description=declared["description"],
    )


def resolve(document: Document, node: dict[str, Any]) -> dict[str, Any]:
    """Return what `node` refers to, or `node` itself."""
    if "$ref" not in node:
        return node
    found: Any = document
    for step in node["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return {**found, **{name: value for name, value in node.items() if name != "$ref"}}


def _without_null(document: Document, declared: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the schema and whether it may be null, written as a choice of two or as a list of two types."""
    if "anyOf" in declared:
        return resolve(document, declared["anyOf"][0]), True
    if isinstance(declared.get("type"), list):
        return {**declared, "type": declared["type"][0]}, True
    return resolve(document, declared), False


def _type(prop: dict[str, Any]) -> str:
    if "additionalProperties" in prop:
        return f"object of {prop['additionalProperties']['type']}s"
    kind: str = prop["type"]
    return f"{kind}, {_FORMATS[prop['format']]}" if "format" in prop else kind


def _limits(prop: dict[str, Any]) -> Iterator[str]:
    if "enum" in prop:
        only, values = len(prop["enum"]) == 1, ", ".join(f"`{value}`" for value in prop["enum"])
        yield f"only {values}" if only else f"one of {values}"
    if "maximum" in prop:
        yield f"{prop['minimum']:,} to {prop['maximum']:,}"
    if "maxLength" in prop:
        yield f"{prop.get('minLength', 0)} to {prop['maxLength']} characters"
    if "maxProperties" in prop:
        yield f"at most {prop['maxProperties']} keys"
        yield f"keys up to {prop['propertyNames']['maxLength']} characters"
        yield f"values up to {prop['additionalProperties']['maxLength']} characters"
