"""The OpenAPI document is valid and complete, has the limits of the spec, and its examples are true."""

import compileall
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import jsonschema_rs
import pytest
import regress
import schemathesis
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from services.api.app import BASE_PATH, make_app
from services.api.fields import ReturnUrl
from services.api.openapi.document import make_document
from shared import VERSION
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database
from shared.platform.settings import PublicUrls, Settings
from shared.platform.web.app import MAX_BODY_BYTES
from tests.api.conftest import PATH, MakeApplication, Merchant, merchant_of
from tests.constants import CHECKOUT_URL

DOCUMENT = f"{BASE_PATH}/openapi.json"

Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Document:
    """The document as the API serves it."""
    made = make_document(PublicUrls(api="https://api.mizan.example", checkout=CHECKOUT_URL), BASE_PATH)
    parsed: Document = json.loads(json.dumps(made))
    return parsed


def test_document_is_valid_openapi_3_1(document: Document) -> None:
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["version"] == VERSION
    schemathesis.openapi.from_dict(document).validate()
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_patterns_are_valid_in_javascript(document: Document) -> None:
    """Validators such as Ajv compile them with the "u" flag, which refuses needless escapes."""
    patterns = set(_patterns(document))
    assert ReturnUrl.pattern in patterns
    for pattern in patterns:
        regress.Regex(pattern, "u")


@pytest.mark.long
@pytest.mark.parametrize(
    ("generator", "file", "function"),
    [
        ("python", "openapi_client/api/payment_intents_api.py", "def create_payment_intent("),
        ("typescript-fetch", "apis/PaymentIntentsApi.ts", "async createPaymentIntent("),
    ],
)
def test_clients_can_be_generated(
    document: Document, tmp_path: Path, generator: str, file: str, function: str
) -> None:
    """OpenAPI Generator validates the document and makes a client from it."""
    source = tmp_path / "openapi.json"
    source.write_text(json.dumps(document))
    program = Path(sys.executable).with_name("openapi-generator-cli")
    command: list[str | Path] = [program, "generate", "-i", source, "-g", generator, "-o", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert function in (tmp_path / file).read_text()
    if file.endswith(".py"):  # not the whole client: OpenAPI Generator 7 writes invalid Python for `webhooks`
        assert compileall.compile_file(tmp_path / file, quiet=1)
        assert compileall.compile_dir(tmp_path / "openapi_client" / "models", quiet=1)


def test_every_route_is_documented_and_nothing_else(
    settings: Settings, api_database: Database, document: Document
) -> None:
    rules = make_app(settings, api_database).url_map.iter_rules()
    routes = {
        (method, re.sub(r"<.*?>", "{}", rule.rule.removeprefix(BASE_PATH)))
        for rule in rules
        if rule.rule.startswith(BASE_PATH)
        for method in (rule.methods or set()) - {"HEAD"}
    }
    documented = {
        (method.upper(), re.sub(r"\{.*?\}", "{}", path))
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert documented == routes


def test_limits_in_the_document_are_those_of_the_spec(document: Document) -> None:  # §4.1, §8
    limits: dict[str, dict[str, Any]] = {
        "merchant_reference": {"minLength": 1, "maxLength": 255},
        "amount": {"type": "integer", "minimum": 1_000, "maximum": 1_000_000_000},
        "currency": {"type": "string", "enum": ["LYD"]},
        "description": {"type": ["string", "null"]},
        "return_url": {"type": ["string", "null"], "format": "uri"},
        "metadata": {"type": ["object", "null"], "maxProperties": 20},
        "expires_at": {"type": ["string", "null"], "format": "date-time"},
    }
    create = document["components"]["schemas"]["NewPaymentIntent"]
    fields = create["properties"]
    assert {
        name: {keyword: fields[name].get(keyword) for keyword in limits[name]} for name in limits
    } == limits
    assert fields["metadata"]["propertyNames"]["maxLength"] == 40
    assert fields["metadata"]["additionalProperties"]["type"] == "string"
    assert fields["metadata"]["additionalProperties"]["maxLength"] == 255
    assert set(create["required"]) == {"merchant_reference", "amount", "currency"}


def test_document_requires_all_fields_of_an_intent(document: Document) -> None:  # §2.1
    intent = document["components"]["schemas"]["PaymentIntent"]
    assert intent["required"] == list(intent["properties"])
    assert intent["properties"]["status"]["enum"] == [state.value for state in IntentStatus]


def test_document_requires_both_credentials_together(document: Document) -> None:  # §5
    assert document["security"] == [{"ApiKey": [], "AccessToken": []}]
    assert document["components"]["securitySchemes"]["ApiKey"]["name"] == "X-API-Key"
    assert document["components"]["securitySchemes"]["AccessToken"]["scheme"] == "bearer"


def test_every_field_is_described_in_the_document(document: Document) -> None:
    for name, schema in document["components"]["schemas"].items():
        for field, declared in schema["properties"].items():
            assert declared.get("description") or "$ref" in declared, f"{name}.{field}"


def test_examples_are_valid_against_their_schemas(document: Document) -> None:
    examples = list(_examples(document))
    assert len(examples) > 20
    for where, schema, example in examples:
        errors = [error.message for error in _validator(document, schema).iter_errors(example)]
        assert errors == [], where


@pytest.mark.parametrize("name", ["full", "smallest"])
def test_api_accepts_the_examples_of_a_create(merchant: Merchant, document: Document, name: str) -> None:
    content = document["paths"]["/payment-intents"]["post"]["requestBody"]["content"]["application/json"]
    answer = merchant.create(**content["examples"][name]["value"])
    assert answer.status_code == 201
    example = _bodies(document, "POST", 201)[0]
    assert list(answer.get_json()["data"]) == list(example["data"])


def test_api_responds_with_the_examples_of_errors(
    merchant: Merchant, other_merchant: Merchant, document: Document, subtests: pytest.Subtests
) -> None:
    calls: list[tuple[int, Callable[[], TestResponse]]] = [
        (401, lambda: merchant.with_headers(X_API_Key=None).create()),
        (401, lambda: merchant.with_headers(Authorization="Bearer at_wrong").create()),
        (403, lambda: other_merchant.get(merchant.create().get_json()["data"]["uuid"])),
        (404, lambda: merchant.get(uuid4())),
        (405, lambda: merchant.client.post(f"{PATH}/{uuid4()}", headers=dict(merchant.headers))),
        (413, lambda: merchant.create(description="x" * MAX_BODY_BYTES)),
        (422, lambda: merchant.create(amount="25.5", metadata={"branch": 7})),
    ]
    for status, call in calls:
        with subtests.test(status=status):
            answer = call()
            assert answer.status_code == status
            assert answer.get_json() in _bodies(document, answer.request.method, status)


def test_api_responds_with_the_example_of_too_many_requests(
    settings: Settings, api_database: Database, make_application: MakeApplication, document: Document
) -> None:
    slow = replace(settings, api=replace(settings.api, rate_limit=1.0, rate_burst=1))
    merchant = merchant_of(make_app(slow, api_database).test_client(), make_application("Tripoli Coffee"))
    merchant.create()
    answer = merchant.create()
    assert answer.status_code == 429
    assert answer.get_json() in _bodies(document, "POST", 429)


def test_server_url_is_the_public_url_and_not_the_host_header(
    client: FlaskClient, document: Document
) -> None:
    answer = client.get(DOCUMENT, headers={"Host": "evil.example"})
    assert answer.get_json() == document
    assert document["servers"] == [{"url": "https://api.mizan.example/api/v1"}]
    assert b"evil" not in answer.data


def test_document_is_cached_and_revalidated_with_its_etag(client: FlaskClient) -> None:
    first = client.get(DOCUMENT)
    again = client.get(DOCUMENT, headers={"If-None-Match": first.headers["ETag"]})
    assert "max-age" in first.headers["Cache-Control"]
    assert (again.status_code, again.data) == (304, b"")


def test_webhooks_in_the_document_are_the_two_events_with_body_and_signature(
    document: Document,
) -> None:  # §6
    assert set(document["webhooks"]) == {"payment_intent.succeeded", "payment_intent.canceled"}
    for event, methods in document["webhooks"].items():
        delivery = methods["post"]
        body = delivery["requestBody"]["content"]["application/json"]["examples"]["delivery"]["value"]
        assert body["event"] == event
        assert delivery["parameters"][0]["name"] == "Service-Signature"


def _patterns(node: Any) -> Iterator[str]:
    """Yield every pattern in the document."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return
    if isinstance(node.get("pattern"), str):
        yield node["pattern"]
    for inner in node.values():
        yield from _patterns(inner)


def _validator(document: Document, schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """Return a validator for a schema with references into the document."""
    return jsonschema_rs.validator_for(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **schema,
            "components": document["components"],
        },
        validate_formats=True,
    )


def _examples(node: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield every example in the document with the schema that it must match."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return
    if "schema" in node and "example" in node:
        yield where, node["schema"], node["example"]
    for name, example in node.get("examples", {}).items() if "schema" in node else ():
        yield f"{where}/{name}", node["schema"], example["value"]
    if isinstance(node.get("examples"), list):
        for example in node["examples"]:
            yield where, node, example
    for name, inner in node.items():
        if name not in ("example", "examples"):
            yield from _examples(inner, f"{where}/{name}")


def _bodies(document: Document, method: str, status: int) -> list[dict[str, Any]]:
    """Return the examples of a response to a create or a retrieve."""
    path = {"POST": "/payment-intents", "GET": "/payment-intents/{paymentIntent}"}[method]
    answer = document["paths"][path][method.lower()]["responses"][str(status)]
    if "$ref" in answer:
        answer = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return [example["value"] for example in answer["content"]["application/json"]["examples"].values()]
