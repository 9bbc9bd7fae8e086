"""What the reference page shows, read off the document."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from services.api.openapi.answers import JSON
from services.api.openapi.document import INTENTS, Document
from services.api.openapi.examples import WEBHOOK_SECRET, raw
from services.api.openapi.markdown import Section, sections
from services.api.openapi.rows import Row, resolved, row_of, rows_of

_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=:))|(?P<string>"(?:[^"\\]|\\.)*")|(?P<value>true|false|null|-?\d[\d.]*)'
)


@dataclass(frozen=True)
class Answer:
    status: str
    description: str
    headers: list[str]
    examples: list[Markup]

    @property
    def is_refusal(self) -> bool:
        return self.status >= "400"


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Row]
    fields: list[Row]
    answers: list[Answer]
    curl: Markup


@dataclass(frozen=True)
class Event:
    name: str
    sent_when: str
    signature: str
    body: str


@dataclass(frozen=True)
class Page:
    title: str
    summary: str
    server: str
    overview: Section
    guide: list[Section]
    operations: list[Operation]
    intent: list[Row]
    webhooks: Section
    events: list[Event]
    delivery: list[Row]
    secret: str
    """What the example of a delivery is signed with."""
    errors: Section
    refusals: list[Answer]


def page_of(document: Document) -> Page:
    schemas = document["components"]["schemas"]
    operations = list(_operations(document))
    answers = {answer.status: answer for operation in operations for answer in operation.answers}
    overview, *guide, webhooks, errors = sections(document["info"]["description"])
    return Page(
        title=document["info"]["title"],
        summary=document["info"]["summary"],
        server=document["servers"][0]["url"],
        overview=overview,
        guide=guide,
        operations=operations,
        intent=list(rows_of(document, schemas["PaymentIntent"])),
        webhooks=webhooks,
        events=list(_events(document)),
        delivery=list(rows_of(document, schemas["Delivery"])),
        secret=WEBHOOK_SECRET,
        errors=errors,
        refusals=[answer for _, answer in sorted(answers.items()) if answer.is_refusal],
    )


def pretty(body: Any) -> Markup:
    """A body as JSON, coloured a little; on one line if it says just one thing."""
    text = json.dumps(body, indent=2 if len(body) > 1 or "data" in body else None, ensure_ascii=False)
    html, end = Markup(""), 0
    for token in _TOKEN.finditer(text):
        html += escape(text[end : token.start()])
        html += Markup('<span class="{}">{}</span>').format(token.lastgroup, token[0])
        end = token.end()
    return html + escape(text[end:])


def _operations(document: Document) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if INTENTS in operation["tags"]:
                yield _operation(document, method.upper(), path, operation)


def _operation(document: Document, method: str, path: str, operation: dict[str, Any]) -> Operation:
    body = operation.get("requestBody", {}).get("content", {}).get(JSON)
    return Operation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=operation["description"],
        parameters=[
            row_of(document, each["name"], {**each, **each["schema"]}, required=each["required"])
            for each in operation.get("parameters", ())
        ],
        fields=list(rows_of(document, body["schema"])) if body else [],
        answers=[_answer(document, status, answer) for status, answer in operation["responses"].items()],
        curl=_curl(document["servers"][0]["url"], path, operation, body),
    )


def _answer(document: Document, status: str, answer: dict[str, Any]) -> Answer:
    answer = resolved(document, answer)
    examples = answer["content"][JSON]["examples"].values()
    return Answer(
        status=status,
        description=answer["description"],
        headers=list(answer["headers"]),
        examples=[pretty(example["value"]) for example in examples],
    )


def _events(document: Document) -> Iterator[Event]:
    for name, methods in document["webhooks"].items():
        operation = methods["post"]
        yield Event(
            name=name,
            sent_when=operation["description"],
            signature=operation["parameters"][0]["example"],
            body=raw(operation["requestBody"]["content"][JSON]["examples"]["delivery"]["value"]).decode(),
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
            Markup("-d '{}'").format(pretty(body["examples"]["full"]["value"]).replace("\n", "\n  "))
        )
    return Markup(" \\\n  ").join(lines)
