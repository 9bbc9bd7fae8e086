"""Fixtures for tests of the API: the application on the test's database, and a merchant as its client."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from services.api.app import make_app
from shared.domain.applications.registry import CreatedApplication, NewApplication, create_application
from shared.domain.intents.states import IntentTrigger
from shared.domain.intents.store import apply_trigger
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.settings import DatabaseSettings, Settings
from tests.database_roles import open_as

PATH = "/api/v1/payment-intents"

MakeApplication = Callable[[str], CreatedApplication]


@dataclass(frozen=True)
class Merchant:
    """A merchant's server: an HTTP client with the credentials of one application."""

    client: FlaskClient
    application: CreatedApplication
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def application_id(self) -> UUID:
        return self.application.id

    def create(self, **fields: Any) -> TestResponse:
        """Create an intent with a valid body, changed by `fields`."""
        body = {"merchant_reference": "order-1", "amount": 25_000, "currency": "LYD", **fields}
        return self.client.post(PATH, json=body, headers=dict(self.headers))

    def post(self, body: bytes | str, **headers: str) -> TestResponse:
        """Create an intent with exactly this body."""
        return self.client.post(PATH, data=body, headers={**self.headers, **headers})

    def get(self, uuid: object) -> TestResponse:
        return self.client.get(f"{PATH}/{uuid}", headers=dict(self.headers))

    def with_headers(self, **changed: str | None) -> "Merchant":
        """Return the same merchant with other headers. None removes one. `X_API_Key` stands for X-API-Key."""
        headers = {**self.headers, **{name.replace("_", "-"): value for name, value in changed.items()}}
        return replace(self, headers={name: value for name, value in headers.items() if value is not None})


@pytest.fixture
def make_application(database: Database) -> MakeApplication:
    box = SecretBox((Fernet.generate_key().decode(),))

    def make(name: str) -> CreatedApplication:
        with database.transaction() as connection:
            return create_application(connection, box, NewApplication(name))

    return make


@pytest.fixture
def api_database(database_settings: DatabaseSettings) -> Iterator[Database]:
    """The database with the role of the API."""
    with open_as("mizan_api", database_settings, "api") as made:
        yield made


@pytest.fixture
def client(settings: Settings, api_database: Database) -> FlaskClient:
    return make_app(settings, api_database).test_client()


@pytest.fixture
def merchant(client: FlaskClient, make_application: MakeApplication) -> Merchant:
    return merchant_of(client, make_application("Tripoli Coffee"))


@pytest.fixture
def other_merchant(client: FlaskClient, make_application: MakeApplication) -> Merchant:
    return merchant_of(client, make_application("Benghazi Books"))


def merchant_of(client: FlaskClient, application: CreatedApplication) -> Merchant:
    return Merchant(client, application, credentials_of(application))


def credentials_of(application: CreatedApplication) -> dict[str, str]:
    return {
        "X-API-Key": application.api_key,
        "Authorization": f"Bearer {application.access_token}",
        "Accept": "application/json",
    }


def errors_of(answer: TestResponse) -> dict[str, list[str]]:
    """Return the errors of a 422 response, after checking the format of §7."""
    assert answer.status_code == 422, answer.text
    body = answer.get_json()
    assert set(body) == {"message", "errors"}
    assert isinstance(body["message"], str)
    for texts in body["errors"].values():
        assert texts
        assert all(isinstance(text, str) for text in texts)
    errors: dict[str, list[str]] = body["errors"]
    return errors


def data_of(answer: TestResponse, status: int) -> dict[str, Any]:
    """Return the intent in a response with this status, after checking the envelope of §2.1."""
    assert answer.status_code == status, answer.text
    body = answer.get_json()
    assert list(body) == ["data"]
    data: dict[str, Any] = body["data"]
    return data


def written(database: Database) -> tuple[int, int, int]:
    """Return the number of intents, events and outbox rows."""
    with database.transaction() as connection:
        row = connection.execute(
            """select (select count(*) from payment_intents), (select count(*) from intent_events),
                      (select count(*) from outbox)"""
        ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def move_intent(database: Database, uuid: str, *triggers: IntentTrigger) -> None:
    """Apply triggers to an intent, as the checkout and the scheduler do."""
    for trigger in triggers:
        with database.transaction() as connection:
            apply_trigger(connection, UUID(uuid), trigger)
