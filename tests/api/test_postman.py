"""The Postman collection works as it is: every request succeeds once the credentials are filled in."""

import json
from typing import Any
from uuid import uuid4

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.api.conftest import Merchant

_STORES_UUID = 'pm.collectionVariables.set("payment_intent", pm.response.json().data.uuid)'


def _collection(client: FlaskClient) -> dict[str, Any]:
    response = client.get("/docs/postman.json")
    assert response.status_code == 200
    collection: dict[str, Any] = json.loads(response.data)
    return collection


class _Runner:
    """Sends requests of a collection, as Postman does."""

    def __init__(self, client: FlaskClient, collection: dict[str, Any]) -> None:
        self._client = client
        self.variables = {one["key"]: one["value"] for one in collection["variable"]}
        (self._token,) = collection["auth"]["bearer"]

    def send(self, item: dict[str, Any]) -> TestResponse:
        sent = item["request"]
        headers = {one["key"]: self._fill(one["value"]) for one in sent["header"]}
        headers["Authorization"] = f"Bearer {self._fill(self._token['value'])}"
        body = self._fill(sent["body"]["raw"]) if "body" in sent else None
        url = self._fill(sent["url"])
        response = self._client.open(url, method=sent["method"], headers=headers, data=body)
        if any(_STORES_UUID in line for event in item.get("event", ()) for line in event["script"]["exec"]):
            self.variables["payment_intent"] = response.json["data"]["uuid"]  # type: ignore[index]
        return response

    def _fill(self, text: str) -> str:
        for name, value in {**self.variables, "$randomUUID": str(uuid4())}.items():
            text = text.replace(f"{{{{{name}}}}}", value)
        assert "{{" not in text, text
        return text


def test_every_request_succeeds_with_the_credentials_filled_in(merchant: Merchant) -> None:
    collection = _collection(merchant.client)
    runner = _Runner(merchant.client, collection)
    runner.variables["api_key"] = merchant.application.api_key
    runner.variables["access_token"] = merchant.application.access_token
    responses = {item["name"]: runner.send(item) for item in collection["item"]}
    assert {name: response.status_code for name, response in responses.items()} == {
        "Create a payment intent: with all optional fields": 201,
        "Create a payment intent: only required fields": 201,
        "Retrieve a payment intent": 200,
    }
    *_, created, retrieved = responses.values()
    assert retrieved.json == created.json


def test_collection_contains_no_credentials_and_the_address_of_the_api(client: FlaskClient) -> None:
    collection = _collection(client)
    variables = {one["key"]: one["value"] for one in collection["variable"]}
    document = client.get("/api/v1/openapi.json").get_json()
    assert variables == {
        "base_url": document["servers"][0]["url"],
        "api_key": "",
        "access_token": "",
        "payment_intent": "",
    }
    assert collection["info"]["version"] == document["info"]["version"]


def test_reference_links_to_the_collection(client: FlaskClient) -> None:
    for lang in ("ar", "en"):
        assert 'href="/docs/postman.json"' in client.get(f"/docs?lang={lang}").text
